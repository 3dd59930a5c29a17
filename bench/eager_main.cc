// eager [seconds per row]: prints pass or miss for each bar of eager code.
#include <cstdlib>

#include "bench/eager.h"

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  // First, while this process is small: a child's peak counts what its parent held when it forked.
  int missed = print_all(process_bars(TIDEMARK_FIRST_TENSOR, TIDEMARK_LIBRARY));
  missed += print_all(tiny_bars(budget_s));
  missed += print_all(torch_bars());
  for (const int threads : {1, 2}) missed += print_all(memory_bars(budget_s, threads));
  missed += print_all(random_bars(budget_s));
  return missed == 0 ? 0 : 1;
}

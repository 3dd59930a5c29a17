// bench/plan [--data DIR] [--seconds S] [--json]: exit code 1 if a bar is missed.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "bench/plan.h"

int main(int argc, char** argv) {
  tidemark::bench::PlanOptions options;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json") {
      json = true;
    } else if (argument == "--data" && i + 1 < argc) {
      options.data = argv[++i];
    } else if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else {
      std::cerr << "usage: plan [--data DIR] [--seconds S] [--json]\n"
                   "DIR holds challenging/A.1048576.csv to K.1048576.csv of google/minimalloc.\n";
      return 2;
    }
  }
  try {
    const std::vector<tidemark::bench::Bar> bars =
        tidemark::bench::plan_bars(options, json ? std::cerr : std::cout);
    if (json) {
      tidemark::bench::print_json(std::cout, bars);
    } else {
      tidemark::bench::print_all(bars);
    }
    return std::ranges::all_of(bars, &tidemark::bench::Bar::pass) ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "plan: " << error.what() << '\n';
    return 2;
  }
}

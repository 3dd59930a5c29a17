// budget_planning: what it costs to find programs within budgets, in ms of this thread and in bytes
// of the heap. A deep network's gradients are planned within half its peak, then within other
// budgets, then at its floor.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/cpu_clock.h"
#include "tidemark/tidemark.h"

namespace {
int64_t heap_bytes = 0, most_heap_bytes = 0;  // One thread plans.
}  // namespace

void* operator new(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  heap_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  most_heap_bytes = std::max(most_heap_bytes, heap_bytes);
  return memory;
}
void operator delete(void* memory) noexcept {
  heap_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace tidemark::bench {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kStepsOfALayer = 5;  // Two forward, three backward.

std::vector<Tensor> gradients(const Tensor& x, const std::vector<Tensor>& weights) {
  GradientTape tape;
  tape.watch(weights);
  Tensor h = x;
  for (const Tensor& weight : weights) h = tanh(matmul(h, weight));
  return tape.gradient(mean(square(h)), weights);
}

class Planned {
 public:
  explicit Planned(int64_t steps)
      : weights_(static_cast<size_t>(steps / kStepsOfALayer), spec({kWidth, kWidth})),
        before_(heap_bytes),
        plan_(function_.plan(x_, weights_)),
        results_(static_cast<int64_t>(weights_.size()) * kWidth * kWidth * 4) {
    most_heap_bytes = heap_bytes;
  }

  // Planning within a share of the arena.
  double ms_within(double share) const {
    const auto arena = static_cast<double>(plan_.peak().count - results_);
    const Bytes budget(results_ + static_cast<int64_t>(arena * share));
    return cpu_ms_of(CLOCK_THREAD_CPUTIME_ID, [&] { plan_.within(budget); });
  }
  double ms_of_floor() const {
    return cpu_ms_of(CLOCK_THREAD_CPUTIME_ID, [&] { plan_.floor(); });
  }
  // The most that planning has held so far, the function and its usual plan included.
  double most_mib() const {
    return static_cast<double>(most_heap_bytes - before_) / static_cast<double>(1 << 20);
  }
  void print_floor() const {
    std::printf("peak %.2f MiB, floor %.2f MiB, results %.2f MiB\n", mib(plan_.peak().count),
                mib(plan_.floor().count), mib(results_));
  }

 private:
  static double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

  Tensor x_ = spec({4 * kWidth, kWidth});
  std::vector<Tensor> weights_;
  int64_t before_ = 0;
  Function<std::vector<Tensor>(const Tensor&, const std::vector<Tensor>&)> function_ =
      function(gradients);
  Plan plan_;
  int64_t results_ = 0;
};

int run() {
  std::vector<Bar> bars;
  {
    const Planned planned(3000);
    bars.push_back(at_most("ms: 3,000 steps, the first budget", planned.ms_within(0.5), 1000));
    double most = 0;
    for (const double share : {0.9, 0.7, 0.4, 0.25, 0.15})
      most = std::max(most, planned.ms_within(share));
    bars.push_back(at_most("ms: another budget, the slowest of five", most, 100));
    bars.push_back(at_most("ms: the floor", planned.ms_of_floor(), 2000));
    bars.push_back(at_most("MiB: heap of all that", planned.most_mib(), 64));
    planned.print_floor();
  }
  const Planned planned(10'000);
  bars.push_back(at_most("ms: 10,000 steps, the first budget", planned.ms_within(0.5), 5000));
  bars.push_back(at_most("MiB: heap of that", planned.most_mib(), 64));
  return print_all(bars) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main() { return tidemark::bench::run(); }

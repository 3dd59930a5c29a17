// functions [seconds per row]: prints pass or miss for each bar of compiled functions: what a call
// costs, what compiling costs, and that a call's growth of the process is what its plan says.
#include <malloc.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"
#include "tidemark/tidemark.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

constexpr double kMiB = 1 << 20;

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

// The most that was resident since the last reset.
double peak_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && file >> kib) return kib * 1024;
  }
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

// ---- calls --------------------------------------------------------------------------------------

Bar call_overhead(double budget_s) {
  const auto f = td::function([](const td::Tensor& x) { return x + 1.0; });
  const td::Tensor x = td::ones({4});
  if (f(x).to_vector<float>()[3] != 2) std::exit(1);
  std::vector<Candidate> ours = {{"call", [&] { f(x); }}};
  interleave(ours, budget_s, false);
  return at_most("call of a compiled function of one op, ns", ours[0].best() * 1e9, 300);
}

Bar donated_call_overhead(double budget_s) {
  const auto f = td::function([](const td::Tensor& x) { return x + 1.0; });
  td::Tensor x = td::zeros({4});
  std::vector<Candidate> ours = {{"call", [&] { x = f(std::move(x)); }}};
  interleave(ours, budget_s, false);
  return at_most("the same of an argument that is given away, ns", ours[0].best() * 1e9, 300);
}

// ---- compiling ----------------------------------------------------------------------------------

// Programs of many ops. Products of small matrices keep kernels apart; what stands between them is
// the same a few times over, or differs.
td::Tensor many_ops(const td::Tensor& x, int64_t ops, int64_t kinds) {
  constexpr int64_t in_block = 10;  // A product, and nine that fuse.
  td::Tensor y = x;
  for (int64_t block = 0; block * in_block < ops; ++block) {
    y = td::matmul(y, x);
    for (int64_t bits = block % kinds, k = 0; k < in_block - 1; ++k, bits /= 3) {
      y = bits % 3 == 0 ? td::tanh(y) : bits % 3 == 1 ? y * 0.5 + x : td::maximum(y, x);
      if (bits % 3 == 1) ++k;
    }
  }
  return y;
}

struct Cost {
  double seconds = 0, cpu_s = 0, kernels = 0, peak_mib = 0;
};

Cost compile_once(int64_t ops, int64_t kinds) {
  const td::Tensor x = td::ones({8, 8});
  malloc_trim(0);
  td::memory::release();
  const double before = resident_bytes();
  reset_peak();
  Cost cost;
  const double start = now_s(), start_cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
  const auto f = td::function([=](const td::Tensor& x) { return many_ops(x, ops, kinds); });
  f(x);
  cost.seconds = now_s() - start;
  cost.cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - start_cpu;
  cost.peak_mib = (peak_bytes() - before) / kMiB;
  cost.kernels = static_cast<double>(std::min(kinds, ops / 10));
  return cost;
}

// The better of two: kernels go with the function, so that each compiles all.
Cost compile_cost(int64_t ops, int64_t kinds) {
  const Cost first = compile_once(ops, kinds), second = compile_once(ops, kinds);
  return first.seconds < second.seconds ? first : second;
}

std::string seconds_text(const char* what, double seconds) {
  char text[64];
  std::snprintf(text, sizeof(text), "%s %.3f s", what, seconds);
  return text;
}

void add_compile_bars(std::vector<Bar>& bars) {
  {
    const auto warm_up = td::function([](const td::Tensor& x) { return many_ops(x, 20, 2); });
    warm_up(td::ones({8, 8}));
  }
  const auto promised = [](double ops, const Cost& cost) {
    return 2.5e-3 * cost.kernels + 50e-6 * ops + 30e-3;
  };
  const auto bar = [&](const std::string& name, double ops, const Cost& cost, double most) {
    Bar total = at_most(name + ", s", cost.seconds, most);
    Bar each = at_most(name + ", of 2.5 ms a kernel + 50 us an op + 30 ms",
                       cost.seconds / promised(ops, cost), 1);
    total.note = seconds_text("on all threads together", cost.cpu_s);
    each.note = seconds_text("which is", promised(ops, cost));
    bars.push_back(std::move(total));
    bars.push_back(std::move(each));
  };
  const Cost small = compile_cost(1'000, 20);
  bar("1,000 ops, 20 kernels", 1'000, small, 1);
  const Cost varied = compile_cost(1'000, 100);
  bar("1,000 ops, 100 kernels", 1'000, varied, 1);
  const Cost few = compile_cost(10'000, 500);
  bar("10,000 ops, 500 kernels", 10'000, few, 2);
  const Cost many = compile_cost(10'000, 1'000);
  bar("10,000 ops, 1,000 kernels", 10'000, many, 8);
  const double most = std::max({small.peak_mib, varied.peak_mib, few.peak_mib, many.peak_mib});
  bars.push_back(at_most("memory to compile, MiB", most, 400));
  const Cost fifth = compile_cost(2'000, 100), whole = compile_cost(10'000, 500);
  bars.push_back(
      at_most("10,000 ops against five times 2,000", whole.seconds / (5 * fifth.seconds), 1.3));
}

// The plan of a function that has been traced: what is left is where its values lie.
Bar plan_cost() {
  const auto f = td::function([](const td::Tensor& x) { return many_ops(x, 3'000, 20); });
  f.plan(td::spec({8, 8}));
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    // Another number of threads needs another plan of the same trace.
    td::set_num_threads(3 + i);
    const double start = now_s();
    f.plan(td::spec({8, 8}));
    best = std::min(best, now_s() - start);
  }
  return at_most("plan of 3,000 ops after tracing, ms", best * 1e3, 100);
}

// ---- growth -------------------------------------------------------------------------------------

// What a call adds to the process, the second time it is called, of what its plan says in pages.
Bar growth() {
  const auto f = td::function([](const td::Tensor& x) {
    const td::Tensor a = td::exp(x), b = td::transpose(a);
    return td::matmul(a, b) + td::sum(b, 0);
  });
  const td::Tensor x = td::full({2048, 2048}, 0.001);
  const double planned = static_cast<double>(f.plan(x).peak().count);
  f(x);
  double ratio = 0;
  for (int i = 0; i < 3; ++i) {
    malloc_trim(0);
    td::memory::release();
    const double before = resident_bytes();
    reset_peak();
    const td::Tensor y = f(x);
    ratio = (peak_bytes() - before) / (std::ceil(planned / 4096) * 4096);
  }
  Bar bar = at_most("growth of the process over a call, of its plan in pages", ratio, 1.01);
  bar.note = std::to_string(static_cast<int64_t>(planned)) + " bytes planned";
  return bar;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  std::vector<Bar> bars = {growth(), call_overhead(budget_s), donated_call_overhead(budget_s)};
  add_compile_bars(bars);
  bars.push_back(plan_cost());
  return print_all(bars) == 0 ? 0 : 1;
}

// compile_cost [most nodes] [name...]: CPU time in ms of planning a function (with its tracing), of
// its first call, which makes the kernels, and of printing it, as the function grows; with the
// exponent of growth over the last decade: 1 is linear, 2 is quadratic.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/cpu_clock.h"
#include "bench/growing_functions.h"

namespace tidemark::bench {
namespace {

template <class Do>
double ms_of(Do run) {
  return cpu_ms_of(CLOCK_PROCESS_CPUTIME_ID, run);
}

constexpr const char* kWays[] = {"plan", "first call", "text", "plan's text", "JSON", "page"};
constexpr size_t kCounted = std::size(kWays);

std::vector<double> measured(const GrowingFunction& each, int64_t size, const std::string& page) {
  const auto f = function([&](const Tensor& x) { return each.make(x, size); });
  const TensorSpec x = spec({8});
  std::vector<double> ms;
  Plan plan;
  ms.push_back(ms_of([&] { plan = f.plan(x); }));
  ms.push_back(ms_of([&] { f(ones({8})); }));
  ms.push_back(ms_of([&] { f.text("trace"); }));
  ms.push_back(ms_of([&] { cat(plan); }));
  ms.push_back(ms_of([&] { plan.to_json(); }));
  ms.push_back(ms_of([&] { report::write_html(page, plan); }));
  return ms;
}

void print_row(const std::string& name, int64_t nodes, const std::vector<double>& ms,
               const std::vector<double>& before) {
  std::printf("%-18s %8lld", name.c_str(), static_cast<long long>(nodes));
  for (size_t i = 0; i < kCounted; ++i) {
    std::printf(" %9.1f", ms[i]);
    // Below a few ms it is the clock that grows.
    if (!before.empty() && before[i] > 2)
      std::printf(" ^%.2f", std::log10(ms[i] / before[i]));
    else
      std::printf("      ");
  }
  // One mark for each doubling of the ms.
  std::printf("  %s\n", std::string(static_cast<size_t>(std::log2(1 + ms[0])), '*').c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const int64_t most = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  const std::string page =
      (std::filesystem::temp_directory_path() / "tidemark_compile_cost.html").string();
  std::printf("%-18s %8s", "ms of CPU", "nodes");
  for (const char* const way : kWays) std::printf(" %14s", way);
  std::printf("\n");
  for (const GrowingFunction& each : growing_functions()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), each.name) == wanted.end())
      continue;
    std::vector<double> before;
    for (int64_t nodes = 100; nodes <= most; nodes *= 10) {
      const std::vector<double> ms = measured(each, nodes / each.nodes_each, page);
      print_row(each.name, nodes, ms, before);
      before = ms;
    }
  }
  std::filesystem::remove(page);
}

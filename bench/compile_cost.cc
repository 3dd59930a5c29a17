// compile_cost [most nodes] [shape...]: what tracing, planning and compiling a function costs as it
// grows, and what writing it out costs, in ms of CPU time; with the exponent of growth over the
// last decade: 1 is in proportion, 2 is quadratic.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;
using Tensors = std::vector<Tensor>;
using Body = std::function<Tensors(const Tensor& x, int64_t size)>;

Tensors terms(const Tensor& x, int64_t size) {
  Tensors list;
  for (int64_t i = 0; i < size; ++i) list.push_back(x * static_cast<double>(i));
  return list;
}

Tensor as_tree(Tensors list) {
  while (list.size() > 1) {
    Tensors halves;
    for (size_t i = 0; i + 1 < list.size(); i += 2) halves.push_back(list[i] + list[i + 1]);
    if (list.size() % 2 != 0) halves.push_back(list.back());
    list = std::move(halves);
  }
  return list[0];
}

Tensor one_after_another(const Tensor& x, int64_t size, const std::function<Tensor(Tensor)>& step) {
  Tensor y = x;
  for (int64_t i = 0; i < size; ++i) y = step(y);
  return y;
}

struct Shaped {
  std::string name;
  int64_t nodes_each;  // How many nodes one more of its size is.
  Body body;
};

std::vector<Shaped> shapes() {
  return {
      {"chain", 1,
       [](const Tensor& x, int64_t n) -> Tensors {
         return {one_after_another(x, n, [](const Tensor& y) { return td::sin(y); })};
       }},
      {"squares", 1,
       [](const Tensor& x, int64_t n) -> Tensors {
         return {one_after_another(x, n, [](const Tensor& y) { return y * y; })};
       }},
      {"steps", 1,
       [](const Tensor& x, int64_t n) -> Tensors {
         return {one_after_another(x, n, [](const Tensor& y) { return td::cumsum(y, 0); })};
       }},
      {"tree", 3,
       [](const Tensor& x, int64_t n) -> Tensors { return {as_tree(terms(td::exp(x), n))}; }},
      {"wide sum", 3,
       [](const Tensor& x, int64_t n) -> Tensors {
         Tensor sum = x;
         for (const Tensor& term : terms(x, n)) sum = sum + term;
         return {sum};
       }},
      {"fan", 4,
       [](const Tensor& x, int64_t n) -> Tensors {
         Tensor sum = x[0];
         for (const Tensor& term : terms(td::tanh(x), n)) sum = sum + td::sum(term);
         return {sum};
       }},
      {"results", 2, terms},
      {"stack", 3, [](const Tensor& x, int64_t n) -> Tensors { return {td::stack(terms(x, n))}; }},
      {"gradient", 4,
       [](const Tensor& x, int64_t n) -> Tensors {
         const auto loss = [n](const Tensor& y) {
           return td::sum(one_after_another(y, n, [](const Tensor& z) { return td::tanh(z); }));
         };
         return {td::grad(loss)(x)};
       }},
  };
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Do>
double ms_of(Do run) {
  const double before = cpu_ms();
  run();
  return cpu_ms() - before;
}

constexpr const char* kWays[] = {"plan", "text", "plan's text", "JSON", "page"};
constexpr size_t kCounted = std::size(kWays);

std::vector<double> measured(const Shaped& shape, int64_t size, const std::string& page) {
  const auto f = td::function([&](const Tensor& x) { return shape.body(x, size); });
  const td::TensorSpec x = td::spec({8});
  std::vector<double> ms;
  td::Plan plan;
  ms.push_back(ms_of([&] { plan = f.plan(x); }));
  ms.push_back(ms_of([&] { f.text("trace"); }));
  ms.push_back(ms_of([&] { td::cat(plan); }));
  ms.push_back(ms_of([&] { plan.to_json(); }));
  ms.push_back(ms_of([&] { td::report::write_html(page, plan); }));
  return ms;
}

void print_row(const std::string& name, int64_t nodes, const std::vector<double>& ms,
               const std::vector<double>& before) {
  std::printf("%-10s %8lld", name.c_str(), static_cast<long long>(nodes));
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
  std::printf("%-10s %8s", "ms of CPU", "nodes");
  for (const char* const way : kWays) std::printf(" %14s", way);
  std::printf("\n");
  for (const Shaped& shape : shapes()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), shape.name) == wanted.end())
      continue;
    std::vector<double> before;
    for (int64_t nodes = 100; nodes <= most; nodes *= 10) {
      const std::vector<double> ms = measured(shape, nodes / shape.nodes_each, page);
      print_row(shape.name, nodes, ms, before);
      before = ms;
    }
  }
  std::filesystem::remove(page);
}

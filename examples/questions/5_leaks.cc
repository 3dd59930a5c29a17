// Question 5: training leaks. Who holds the bytes, and how is it found?
#include <cstdio>
#include <iostream>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

namespace {

// Calls it again and again, and asks who grew.
template <class F, class X>
bool stays_flat(const char* what, int calls, const F& f, const X& x) {
  f(x);
  double time = 0;
  const td::WatchReport report =
      td::memory::watch(calls, [&] { time += lesson::milliseconds([&] { f(x); }); });
  std::printf("  %-46s %6d calls: %s, %s bytes planned, %.3f ms a call\n", what, calls,
              td::name(report.verdict()), lesson::digits(f.plan(x).peak().count).c_str(),
              time / calls);
  return report.verdict() == td::Growth::flat;
}

bool show_flat(bool small) {
  const int64_t elements = small ? 100 : 10'000;
  const auto stacked = td::function([elements](const td::Tensor& first) {
    const auto [array, last] = td::fori_loop(
        0, elements,
        [](const td::Tensor& i, td::TensorArray each, const td::Tensor& now) {
          return std::tuple{std::move(each).write(i, now), now + 1};
        },
        std::tuple{td::TensorArray(td::f32, {.size = elements, .element_shape = td::Shape{2}}),
                   first});
    return array.stack();
  });
  const auto accumulated = td::function([](const td::Tensor& start) {
    return td::fori_loop(
        0, 100, [](const td::Tensor& i, const td::Tensor& sum) { return sum + i; }, start);
  });
  std::printf("what looks like a leak elsewhere:\n");
  const bool stacks = stays_flat(
      small ? "collect and stack 100 tensors of [2]" : "collect and stack 10,000 tensors of [2]",
      100, stacked, td::constant({1, 2}, td::f32));
  const bool sums =
      stays_flat("add 100 numbers up", small ? 200 : 10'000, accumulated, td::constant(0.5f));
  return stacks && sums;
}

// Plain C++ state is frozen when a function is traced; what changed since is found, with its line
// and both values.
bool show_captured() {
  const td::Tensor x = td::ones({2});
  int counter = 0;
  const auto f = td::function([&counter](const td::Tensor& each) {
    ++counter;
    return each * counter;
  });
  std::cout << "\ncaptured state: call 1 gives " << f(x) << ", call 2 gives " << f(x)
            << ": the body ran once\n";
  const std::string found = f.check_captures();
  std::cout << found << '\n';
  const td::Variable kept(1, {.name = "counter", .dtype = td::i32});
  const auto right = td::function([kept](const td::Tensor& each) {
    kept.assign_add(1);
    return each * kept.value();
  });
  right(x);
  std::cout << "with a Variable, call 2 gives " << right(x) << "\n\n";
  return !found.empty();
}

// A list that truly grows.
bool show_growing() {
  std::vector<td::Tensor> losses;
  td::StepMonitor monitor;
  for (int step = 0; step < 300; ++step) {
    const td::Tensor x = td::random::normal({64, 64});
    losses.push_back(td::mean(x * x, 0));
    monitor.step();
  }
  const td::WatchReport report = monitor.report();
  std::cout << report;
  return report.verdict() == td::Growth::growing;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const bool is_flat = show_flat(small);
  const bool is_found = show_captured();
  return show_growing() && is_flat && is_found ? 0 : 1;
}

// What tracing, planning and compiling a function cost grows in proportion to the function: counted
// in steps (base/work.h) and in bytes asked of the heap, never timed. Replaces operator new, so it
// is a program of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "bench/growing_functions.h"
#include "tests/unit/machine_code.h"
#include "tidemark/base/work.h"
#include "tidemark/tidemark.h"

namespace {
std::atomic<int64_t> asked_bytes{0};
}  // namespace

// AddressSanitizer has an operator new of its own and minds another: there steps alone are counted.
#ifndef __SANITIZE_ADDRESS__
// Not inlined: the compiler would see free meet what it knows as new.
[[gnu::noinline]] void* operator new(size_t bytes) {
  asked_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  void* const data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
#endif

namespace {

namespace td = tidemark;
using td::Tensor;
using Tensors = std::vector<Tensor>;

Tensor repeated(Tensor y, int64_t size, Tensor (*step)(const Tensor&)) {
  for (int64_t i = 0; i < size; ++i) y = step(y);
  return y;
}

struct Cost {
  int64_t steps = 0, bytes = 0;
};

template <class Plan>
Cost cost_of(Plan plan) {
  const Cost before{td::Work::so_far(), asked_bytes.load()};
  plan();
  return {td::Work::so_far() - before.steps, asked_bytes.load() - before.bytes};
}

Cost cost_of(const td::bench::GrowingFunction& each, int64_t size) {
  // The first call does all of it: tracing, passes, layout, and the kernels.
  return cost_of(
      [&] { td::function([&](const Tensor& x) { return each.make(x, size); })(td::ones({8})); });
}

// n log n, and a little for what comes in jumps.
void expect_in_proportion(const Cost& once, const Cost& often, double times, const char* what) {
  const double most = 1.25 * times;
  EXPECT_LE(static_cast<double>(often.steps), most * static_cast<double>(once.steps)) << what;
  EXPECT_LE(static_cast<double>(often.bytes), most * static_cast<double>(once.bytes)) << what;
}

TEST(CompileCost, GrowsInProportionToTheFunction) {
  const td::MachineCode machine;
  for (const td::bench::GrowingFunction& each : td::bench::growing_functions()) {
    cost_of(each, 20);  // What is made once is made.
    expect_in_proportion(cost_of(each, 500), cost_of(each, 4000), 8, each.name);
  }
}

// Small enough that 2^n shows in the count, and not in the hours. Inside a kernel, whose size is
// bounded, twice as much may cost four times as much; 2^n would be 256 times.
constexpr double kKernel = 4;

TEST(CompileCost, DoesNotDoubleWithEveryValueReadTwice) {
  const td::MachineCode machine;
  for (const td::bench::GrowingFunction& each : td::bench::growing_functions().first(2)) {
    cost_of(each, 4);
    expect_in_proportion(cost_of(each, 8), cost_of(each, 16), kKernel, each.name);
  }
  const auto looped = [](int64_t size) {
    return cost_of([size] {
      td::function([size](const Tensor& x) {
        return td::fori_loop(
            0, 4,
            [&](const Tensor& i, const Tensor& c) {
              const Tensor at = repeated(i, size, [](const Tensor& y) { return y + y; });
              return c + td::gather(x, at % 8);
            },
            Tensor(0.0f));
      }).plan(td::spec({8}));
    });
  };
  looped(4);
  expect_in_proportion(looped(8), looped(16), kKernel, "index of a loop");
}

// What lies between the two passes over a chain is looked through within a budget.
TEST(CompileCost, OfAGradientIsBoundedByItsNodes) {
  constexpr int64_t size = 4000, nodes = 4 * size;
  const auto gradient = [] {
    const auto loss = [](const Tensor& y) {
      return td::sum(repeated(y, size, [](const Tensor& z) { return td::tanh(z); }));
    };
    td::function([&](const Tensor& x) { return td::grad(loss)(x); }).plan(td::spec({8}));
  };
  EXPECT_LE(cost_of(gradient).steps, 2'000'000 + 1000 * nodes);
}

TEST(CompileCost, GrowsInProportionToArgumentsAndVariables) {
  const auto cost = [](size_t count) {
    const Tensors given(count, td::ones({8}));
    std::vector<td::Variable> variables;
    for (size_t i = 0; i < count; ++i) variables.emplace_back(td::zeros({8}));
    return cost_of([&] {
      td::function([&](const Tensors& x) {
        Tensor sum = x[0];
        for (size_t i = 0; i < x.size(); ++i) {
          variables[i].assign_add(x[i]);
          sum = sum + variables[i].value();
        }
        return sum;
      }).plan(given);
    });
  };
  cost(20);
  expect_in_proportion(cost(500), cost(4000), 8, "Variables");
}

}  // namespace

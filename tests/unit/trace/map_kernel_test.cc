// Maps whose body is one kernel: one step of the program, and the bits of eager code.
#include <gtest/gtest.h>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

// The body slice by slice, without any map.
template <class Body>
Tensor slice_by_slice(const Body& body, const Tensor& xs) {
  std::vector<Tensor> each;
  for (int64_t i = 0; i < xs.shape()[0]; ++i) each.push_back(body(xs[i]));
  return td::stack(each);
}

template <class Body>
void expect_one_kernel(const Body& body, const Tensor& xs) {
  const Tensor expected = slice_by_slice(body, xs);
  const int before = td::num_threads();
  for (const int threads : {1, 2}) {
    td::set_num_threads(threads);
    for (const int64_t chunk : {1, 3}) {
      const auto f =
          td::function([&](const Tensor& all) { return td::map_fn(body, all, {.chunk = chunk}); });
      EXPECT_TRUE(td::identical(f(xs), expected)) << f(xs) << expected;
      const td::Plan plan = f.plan(xs);
      EXPECT_EQ(plan.timeline().size(), 1U) << plan.to_text();
      EXPECT_LE(f.profile(xs).second.touched, plan.peak());
    }
  }
  td::set_num_threads(before);
}

TEST(MapKernel, IsPointwise) {
  const Tensor weight = td::random::normal({5, 1}), bias = td::random::normal({7});
  expect_one_kernel([&](const Tensor& x) { return td::tanh(x * weight + bias); },
                    td::random::normal({11, 5, 7}));
  expect_one_kernel([](const Tensor& x) { return x * x * 2.0 + 1.0; }, td::random::normal({1000}));
}

TEST(MapKernel, ReducesEveryAxis) {
  const Tensor xs = td::random::normal({6, 9, 300});
  expect_one_kernel([](const Tensor& x) { return td::sum(td::sin(x)); }, xs);
  expect_one_kernel([](const Tensor& x) { return td::sum(td::sin(x), 0); }, xs);
  expect_one_kernel([](const Tensor& x) { return td::max(x * x, 1); }, xs);
  expect_one_kernel([](const Tensor& x) { return td::sum(td::exp(x)); },
                    td::random::normal({3, 70'000}));
}

TEST(MapKernel, SweepsItsRowsSeveralTimes) {
  expect_one_kernel([](const Tensor& x) { return (x - td::mean(x)) * td::softmax(x * 0.5); },
                    td::random::normal({5, 200}));
}

TEST(MapKernel, RepeatsAndCounts) {
  const auto repeats = [](const Tensor& e) { return td::sum(td::repeat(e, 1000)); };
  expect_one_kernel(repeats, td::random::normal({50}));
  const auto sines = [](const Tensor& e) {
    return td::sum(td::sin(td::repeat(e, 10'000) * td::cast(td::arange(10'000), td::f32)));
  };
  expect_one_kernel(sines, td::random::normal({7}));
  const auto ramp = [](const Tensor& e) { return e * td::cast(td::arange(33), td::f32) + 1; };
  expect_one_kernel(ramp, td::random::normal({20}));
  expect_one_kernel(ramp, td::random::normal({20, 33}));
}

TEST(MapKernel, WalksArraysThatAreNotDense) {
  const Tensor wide = td::random::normal({40, 6});
  const auto body = [](const Tensor& x) { return td::sum(td::exp(x)); };
  const auto by_column = [&](const Tensor& all) { return td::map_fn(body, td::transpose(all)); };
  const auto f = td::function(by_column);
  EXPECT_TRUE(td::identical(f(wide), slice_by_slice(body, td::transpose(wide))));
  const auto same = [&](const Tensor& x) {
    return td::map_fn(body, td::broadcast_to(x, {4, 40, 6}));
  };
  EXPECT_TRUE(td::identical(td::function(same)(wide), same(wide)));
}

TEST(MapKernel, GivesSeveralResultsInAnyOrder) {
  const auto body = [](const Tensor& x, const Tensor& y) {
    const Tensor both = x + y;
    return std::tuple{td::sum(both * 3), both, td::max(both)};
  };
  const Tensor a = td::random::normal({9, 31}), b = td::random::normal({9});
  const auto f = td::function(
      [&](const Tensor& x, const Tensor& y) { return td::map_fn(body, std::tuple{x, y}); });
  const auto [total, both, most] = f(a, b);
  EXPECT_TRUE(td::identical(both, a + td::reshape(b, {9, 1})));
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(td::identical(total[i], td::sum(both[i] * 3)));
    EXPECT_TRUE(td::identical(most[i], td::max(both[i])));
  }
}

TEST(MapKernel, KeepsStepsForWhatItCannotDo) {
  // Numbers counted over two axes.
  const auto grid = [](const Tensor& e) {
    return e * td::cast(td::reshape(td::arange(12), {3, 4}), td::f32) + td::ones({3, 1});
  };
  const Tensor xs = td::random::normal({5});
  const auto f = td::function([&](const Tensor& all) { return td::map_fn(grid, all); });
  EXPECT_TRUE(td::identical(f(xs), slice_by_slice(grid, xs)));
  const auto product = [](const Tensor& m) { return td::matmul(m, m); };
  const Tensor ms = td::random::normal({4, 8, 8});
  const auto g = td::function([&](const Tensor& all) { return td::map_fn(product, all); });
  EXPECT_TRUE(td::identical(g(ms), slice_by_slice(product, ms)));
}

TEST(MapKernel, NeedsItsOutputAlone) {
  const td::MachineCode machine;
  const auto f = td::function([](const Tensor& xs) {
    const auto body = [](const Tensor& e) { return td::sum(td::sin(td::repeat(e, 100'000))); };
    return td::map_fn(body, xs);
  });
  EXPECT_EQ(f.plan(td::spec({100})).peak().count, 448);
}

}  // namespace

// Arrays of tensors: values, in one tensor taken once.
#include "tidemark/api/tensor_array.h"

#include <gtest/gtest.h>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;
using td::TensorArray;

namespace {

std::vector<int> ints(const Tensor& x) { return x.to_vector<int>(); }

TEST(TensorArray, IsAValue) {
  const TensorArray empty(td::i32, {.size = 3, .element_shape = td::Shape{}});
  const TensorArray one = empty.write(1, 7);
  const TensorArray two = one.write(-1, 8).write(1, 9);
  EXPECT_EQ(ints(empty.stack()), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(ints(one.stack()), (std::vector<int>{0, 7, 0}));
  EXPECT_EQ(ints(two.stack()), (std::vector<int>{0, 9, 8}));
  EXPECT_EQ(two.read(2).item<int>(), 8);
  EXPECT_EQ(ints(two.gather(td::constant({2, 2, 0}))), (std::vector<int>{8, 8, 0}));
  EXPECT_EQ(two.size().item<int>(), 3);
}

TEST(TensorArray, TakesTheShapeOfTheFirstElement) {
  TensorArray array(td::f32, {.size = 2});
  array = std::move(array).write(0, td::ones({3, 4}));
  EXPECT_EQ(array.stack().shape(), (td::Shape{2, 3, 4}));
}

TEST(TensorArray, WritesInPlaceWhenMoved) {
  TensorArray array(td::f32, {.size = 1000, .element_shape = td::Shape{10}});
  const Tensor x = td::ones({10});
  const td::MemoryScope scope("writes");
  for (int i = 0; i < 1000; ++i) array = std::move(array).write(i, x);
  EXPECT_LT(scope.peak().count, 1000);
  EXPECT_EQ(td::sum(array.stack()).item<float>(), 10000);
}

TEST(TensorArray, GrowsUpToItsBound) {
  TensorArray array(td::i32, {.max_size = 4});
  for (int i = 0; i < 3; ++i) array = std::move(array).push_back(i + 5);
  EXPECT_EQ(array.size().item<int>(), 3);
  EXPECT_EQ(ints(array.stack()), (std::vector<int>{5, 6, 7, 0}));
}

TEST(TensorArray, IsMadeOfAStackAndScattered) {
  const TensorArray array =
      TensorArray(td::i32, {.size = 2}).unstack(td::constant({{1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(array.size().item<int>(), 3);
  EXPECT_EQ(ints(array.read(1)), (std::vector<int>{3, 4}));
  const TensorArray bounded = TensorArray(td::i32, {.max_size = 3}).unstack(td::constant({1, 2}));
  EXPECT_EQ(ints(bounded.push_back(3).stack()), (std::vector<int>{1, 2, 3}));
  const TensorArray scattered =
      TensorArray(td::i32, {.size = 4}).scatter(td::constant({3, 0}), td::constant({7, 8}));
  EXPECT_EQ(ints(scattered.stack()), (std::vector<int>{8, 0, 0, 7}));
}

Tensor squares(const Tensor& n, bool with_shape) {
  TensorArray array(td::f32, {.size = 10});
  if (with_shape) array = TensorArray(td::f32, {.size = 10, .element_shape = td::Shape{2}});
  return td::fori_loop(
             0, n,
             [](const Tensor& i, const TensorArray& a) {
               const Tensor x = td::cast(i, td::f32);
               return a.write(i, td::stack({x, x * x}));
             },
             array)
      .stack();
}

TEST(TensorArray, IsCarriedByLoops) {
  for (const bool with_shape : {true, false}) {
    const auto f = td::function([=](const Tensor& n) { return squares(n, with_shape); });
    for (const int n : {1, 4, 10}) {
      const Tensor all = f(n);
      EXPECT_TRUE(td::identical(all, squares(n, with_shape)));
      for (int i = 0; i < 10; ++i) {
        const float wanted = i < n ? static_cast<float>(i * i) : 0;
        EXPECT_EQ(all.to_vector<float>()[static_cast<size_t>(2 * i + 1)], wanted);
      }
    }
    EXPECT_THROW(f(11), td::UserError);
  }
}

TEST(TensorArray, IsWrittenInPlaceByAnEagerLoopThatTakesItByValue) {
  const Tensor x = td::ones({10});
  const TensorArray array(td::f32, {.size = 1000, .element_shape = td::Shape{10}});
  const td::MemoryScope scope("loop");
  const TensorArray all = td::fori_loop(
      0, 1000, [&](const Tensor& i, TensorArray a) { return std::move(a).write(i, x); }, array);
  // The one copy: `array` stays as it was.
  EXPECT_LT(scope.peak().count, 40'000 + 1000);
  EXPECT_EQ(td::sum(all.stack()).item<float>(), 10'000);
  EXPECT_EQ(td::sum(array.stack()).item<float>(), 0);
}

TEST(TensorArray, IsWrittenInPlaceByACompiledLoop) {
  const td::MachineCode machine;
  const auto f = td::function([](const Tensor& x) {
    return td::fori_loop(
               0, 1000, [&](const Tensor& i, const TensorArray& a) { return a.write(i, x); },
               TensorArray(td::f32, {.size = 1000}))
        .stack();
  });
  const Tensor x = td::ones({100});
  const td::Plan plan = f.plan(x);
  EXPECT_LT(plan.peak().count, 400'000 + 1000);
  const auto [result, profile] = f.profile(x);
  EXPECT_EQ(profile.touched, plan.peak());
  EXPECT_EQ(td::sum(result).item<float>(), 100'000);
}

TEST(TensorArray, GrowsInALoopThatStopsByItself) {
  const auto halves = [](const Tensor& start) {
    const auto [x, array] = td::while_loop(
        [](const Tensor& x, const TensorArray&) { return x > 0; },
        [](const Tensor& x, const TensorArray& a) {
          return std::tuple{td::floor_divide(x, 2), a.push_back(x)};
        },
        std::tuple{start, TensorArray(td::i32, {.max_size = 5, .element_shape = td::Shape{}})});
    return std::pair{array.stack(), array.size()};
  };
  const auto f = td::function([&](const Tensor& start) { return halves(start); });
  for (const int start : {1, 9, 31}) {
    const auto [all, size] = halves(td::constant(start));
    const auto [compiled, compiled_size] = f(td::constant(start));
    EXPECT_TRUE(td::identical(all, compiled));
    EXPECT_TRUE(td::identical(size, compiled_size));
    EXPECT_EQ(all.to_vector<int>()[0], start);
  }
  EXPECT_THROW(f(td::constant(32)), td::UserError);
  EXPECT_THROW(halves(td::constant(32)), td::UserError);
}

TEST(TensorArray, GoesIntoAndOutOfFunctions) {
  const auto f = td::function([](const TensorArray& a) { return a.write(1, a.read(0) * 2); });
  const TensorArray array = TensorArray(td::f32, {.size = 2}).write(0, td::ones({3}));
  EXPECT_EQ(f(array).read(1).to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

}  // namespace

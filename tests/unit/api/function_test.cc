// Functions: traced once, planned, run in one arena, the same bits as eager code.
#include <gtest/gtest.h>

#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

TEST(Function, GivesTheBitsOfEagerCode) {
  const auto f = [](const td::Tensor& x, const td::Tensor& y) {
    const td::Tensor a = td::matmul(x, y) + 1.5;
    return td::softmax(td::tanh(a) * a, -1) / td::sum(a, 0, td::keepdims);
  };
  const auto compiled = td::function(f, {.name = "f"});
  const td::Tensor x = td::random::normal({37, 65}, {.key = td::random::Key(1)});
  const td::Tensor y = td::random::normal({65, 29}, {.key = td::random::Key(2)});
  const td::Tensor expected = f(x, y);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(td::identical(compiled(x, y), expected));
  EXPECT_EQ(compiled.cache_info().traces, 1);
}

TEST(Function, RunsInThePlannedBytes) {
  const auto f = td::function([](const td::Tensor& x) {
    const td::Tensor a = td::exp(x);
    const td::Tensor b = td::sin(a) + a;
    return td::transpose(b) * a;
  });
  const td::Tensor x = td::random::normal({100, 100});
  const td::Plan plan = f.plan(x);
  const auto [result, profile] = f.profile(x);
  EXPECT_EQ(profile.touched, plan.peak());
  EXPECT_EQ(profile.planned, plan.peak());
  const td::MemoryScope scope("call");
  const td::Tensor again = f(x);
  EXPECT_EQ(scope.peak(), plan.peak());
  EXPECT_EQ(scope.current(), again.size_bytes());
}

TEST(Function, ReadsVariablesAndWritesThemInPlace) {
  td::Variable v(td::zeros({1000}), {.name = "v"});
  const auto step = td::function([v](const td::Tensor& x) {
    v.assign_add(x);
    return td::sum(v);
  });
  const td::Tensor x = td::ones({1000});
  EXPECT_EQ(step(x).item<float>(), 1000);
  EXPECT_EQ(step(x).item<float>(), 2000);
  EXPECT_EQ(v.value().to_vector<float>()[999], 2);
  EXPECT_EQ(step.plan(x).of(td::ByteClass::shadow), td::Bytes(0));
}

TEST(Function, TakesNumbersAsRunTimeValues) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& rate) { return x * rate; });
  const td::Tensor x = td::constant({1, 2, 3}, td::f32);
  EXPECT_TRUE(td::identical(f(x, 0.1), x * 0.1));
  EXPECT_TRUE(td::identical(f(x, 0.7), x * 0.7));
  EXPECT_EQ(f.cache_info().traces, 1);
  EXPECT_TRUE(td::identical(f(x, 2), x * 2));
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(Function, UsesTheBytesOfArgumentsMovedIn) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
  td::Tensor x = td::ones({1000});
  const td::Tensor expected = td::exp(x) * 2;
  const td::MemoryScope scope("call");
  const td::Tensor y = f(std::move(x));
  EXPECT_EQ(scope.peak(), td::Bytes(0));
  EXPECT_TRUE(td::identical(y, expected));
}

}  // namespace

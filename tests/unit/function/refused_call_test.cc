// What is refused for want of memory changes nothing: neither the generator nor Variables that
// would have got their first value.
#include <gtest/gtest.h>

#include <functional>

#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

// In its life so many bytes may be taken beside those there are.
class Limited {
 public:
  explicit Limited(int64_t more) : before_(td::memory::limit()) {
    td::memory::release();
    td::memory::set_limit(td::memory::current() + td::Bytes(more));
  }
  ~Limited() { td::memory::set_limit(before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  td::Bytes before_;
};

void expect_refusal_changes_nothing(const char* name, const std::function<td::Tensor()>& draw) {
  td::random::seed(5);
  const td::Tensor first = draw(), second = draw();
  for (const int64_t room : {0, 64, 128, 1000, 100'000, 400'000}) {
    td::random::seed(5);
    (void)draw();
    const td::Tensor before = td::identity(td::random::state());
    {
      const Limited limited(room);
      EXPECT_THROW((void)draw(), td::OutOfMemory) << name << " in " << room;
    }
    EXPECT_TRUE(td::identical(td::random::state(), before)) << name << " in " << room;
    EXPECT_TRUE(td::identical(draw(), second)) << name << " in " << room;
  }
}

TEST(RefusedDraw, LeavesTheGeneratorAsItWas) {
  const td::Tensor p = td::full({1000, 1000}, 0.5);
  const auto draws = [&] {
    expect_refusal_changes_nothing("normal", [] { return td::random::normal({1000, 1000}); });
    expect_refusal_changes_nothing("uniform", [] { return td::random::uniform({1000, 1000}); });
    expect_refusal_changes_nothing("integers",
                                   [] { return td::random::integers({1000, 1000}, {.high = 9}); });
    expect_refusal_changes_nothing("bernoulli", [] { return td::random::bernoulli({1000, 1000}); });
    expect_refusal_changes_nothing("bernoulli of a tensor",
                                   [&] { return td::random::bernoulli(p, {1000, 1000}); });
    expect_refusal_changes_nothing("permutation", [] { return td::random::permutation(1000000); });
    expect_refusal_changes_nothing("dropout", [&] { return td::dropout(p); });
  };
  draws();
  // From now on the generator stands in a Variable.
  td::random::set_state(td::random::state());
  draws();
}

TEST(RefusedDraw, InAFunctionLeavesTheGeneratorAsItWas) {
  const auto f =
      td::function([](const td::Tensor& x) { return td::random::normal({1000, 1000}) + x; });
  expect_refusal_changes_nothing("function", [&] { return f(0.0); });
}

TEST(RefusedDraw, OverBudgetLeavesTheGeneratorAsItWas) {
  const auto f =
      td::function([](const td::Tensor& x) { return td::random::normal({1000, 100}) + x; },
                   {.budget = td::Bytes(100)});
  td::random::seed(5);
  const td::Tensor expected = td::random::normal({3});
  td::random::seed(5);
  EXPECT_THROW((void)f(0.0), td::OverBudget);
  EXPECT_TRUE(td::identical(td::random::normal({3}), expected));
}

// Another draw came after it: what was drawn stays drawn, and no number comes twice.
TEST(RefusedDraw, GivesNothingBackThatOthersHaveDrawnAfter) {
  td::random::seed(5);
  std::vector<td::Tensor> inner;
  const td::Variable v(td::Shape{2}, [&](const td::Shape& shape, td::DType) {
    inner.push_back(td::random::normal({4}));
    throw UserError("no value");
    return td::ones(shape);
  });
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)v.value(), td::UserError);
  ASSERT_EQ(inner.size(), 2U);
  EXPECT_TRUE(td::identical(inner[0], inner[1]));
}

struct FirstCall {
  td::nn::Sequential model{td::nn::Dense(512), td::nn::Dense(512), td::nn::Dense(10)};
  td::Tensor x = td::ones({64, 300});
};

TEST(RefusedFirstCall, LeavesVariablesWithoutAValue) {
  td::random::seed(9);
  const float expected = [] {
    const FirstCall call;
    return td::function([&](const td::Tensor& x) { return td::sum(call.model(x)); })(call.x)
        .item<float>();
  }();
  for (int percent = 0; percent <= 90; percent += 10) {
    td::random::seed(9);
    const FirstCall call;
    const auto f = td::function([&](const td::Tensor& x) { return td::sum(call.model(x)); });
    const td::Plan plan = f.plan(call.x);
    const int64_t all = plan.peak().count + plan.of(td::ByteClass::variables).count;
    const td::Tensor state = td::identity(td::random::state());
    const int64_t before = td::memory::current().count;
    {
      const Limited limited(all * percent / 100);
      EXPECT_THROW((void)f(call.x), td::OutOfMemory) << percent;
    }
    EXPECT_EQ(td::memory::current().count, before) << percent;
    EXPECT_TRUE(td::identical(td::random::state(), state)) << percent;
    EXPECT_EQ(f(call.x).item<float>(), expected) << percent;
  }
}

}  // namespace
}  // namespace tidemark

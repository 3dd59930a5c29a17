// The work that a plan predicts is what a run counts, step by step and trip by trip.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

Tensor drawn(const td::Shape& shape, uint64_t seed) {
  return td::random::normal(shape, {.key = td::random::Key(seed)}) * 0.1;
}

using Gradient = std::function<Tensors(const Tensor& x, const Tensors& weights)>;

// The plan and the run of each point of the trade count the same, and points differ from the usual
// program by what they do again.
void expect_counted(const Gradient& gradient, const Tensor& x, const Tensors& weights,
                    bool can_need_less = true) {
  const auto usual = td::function(gradient);
  const td::Plan plan = usual.plan(x, weights);
  const auto [expected, counted] = usual.profile(x, weights);
  EXPECT_GT(plan.flop(), 0);
  EXPECT_EQ(counted.flop, plan.flop());
  EXPECT_EQ(counted.bytes_moved, plan.bytes_moved());
  EXPECT_EQ(plan.floor() < plan.peak(), can_need_less);
  for (const td::TradeoffPoint& point : plan.tradeoff()) {
    const auto within = td::function(gradient, {.budget = point.peak});
    const td::Profile profile = within.profile(x, weights).second;
    EXPECT_EQ(profile.planned, point.peak);
    EXPECT_NEAR(profile.flop - counted.flop, point.flop, 1e-9 * counted.flop) << point.peak;
    EXPECT_NEAR(profile.bytes_moved - counted.bytes_moved, point.bytes_moved,
                1e-9 * counted.bytes_moved)
        << point.peak;
    const td::Plan same = within.plan(x, weights);
    EXPECT_EQ(same.flop(), profile.flop);
    EXPECT_EQ(same.bytes_moved(), profile.bytes_moved);
  }
}

template <class Loss>
Gradient gradient_of(Loss loss) {
  return [loss](const Tensor& x, const Tensors& weights) {
    auto [value, gradients] =
        td::value_and_grad([&](const Tensors& w) { return loss(x, w); })(weights);
    gradients.insert(gradients.begin(), value);
    return gradients;
  };
}

TEST(Work, OfAProductIsTwoOperationsForEachTerm) {
  const auto f = td::function([](const Tensor& a, const Tensor& b) { return td::matmul(a, b); });
  const td::Plan plan = f.plan(td::spec({32, 48}), td::spec({48, 64}));
  EXPECT_EQ(plan.flop(), 2.0 * 32 * 48 * 64);
  EXPECT_EQ(plan.bytes_moved(), 4.0 * (32 * 48 + 48 * 64 + 32 * 64));
}

TEST(Work, OfLayersIsAsPredicted) {
  Tensors weights;
  for (uint64_t i = 0; i < 5; ++i) weights.push_back(drawn({32, 32}, i));
  const auto loss = [](const Tensor& x, const Tensors& w) {
    Tensor h = x;
    for (const Tensor& each : w) h = td::gelu(td::matmul(h, each));
    return td::mean(td::square(h));
  };
  expect_counted(gradient_of(loss), drawn({128, 32}, 20), weights);
}

TEST(Work, OfConvolutionsIsAsPredicted) {
  Tensors weights;
  for (uint64_t i = 0; i < 4; ++i) weights.push_back(drawn({3, 3, 8, 8}, i));
  const auto loss = [](const Tensor& x, const Tensors& w) {
    Tensor h = x;
    for (const Tensor& each : w)
      h = h + td::relu(td::conv2d(h, each, {.padding = td::Padding::same}));
    return td::mean(td::square(h));
  };
  expect_counted(gradient_of(loss), drawn({2, 12, 12, 8}, 20), weights);
}

Tensor looped(const Tensor& x, const Tensors& w, td::Save save) {
  const Tensor y = td::fori_loop(
      0, 40, [&](const Tensor&, const Tensor& c) { return td::sin(td::matmul(c, w[0])) + c; }, x,
      {.save = save});
  return td::mean(td::square(y));
}

TEST(Work, OfLoopsThatAreWalkedBackwardsIsAsPredicted) {
  for (const td::Save save : {td::Save::automatic(), td::Save::all(), td::Save::slots(3),
                              td::Save::slots(1), td::Save::every(7)}) {
    const auto loss = [save](const Tensor& x, const Tensors& w) { return looped(x, w, save); };
    const auto f = td::function(gradient_of(loss));
    const Tensor x = drawn({64, 16}, 1);
    const Tensors w = {drawn({16, 16}, 2)};
    const td::Plan plan = f.plan(x, w);
    const td::Profile profile = f.profile(x, w).second;
    EXPECT_EQ(profile.flop, plan.flop());
    EXPECT_EQ(profile.bytes_moved, plan.bytes_moved());
  }
}

TEST(Work, OfLoopsThatKeepLessIsAsPredicted) {
  const auto loss = [](const Tensor& x, const Tensors& w) {
    return looped(x, w, td::Save::automatic());
  };
  expect_counted(gradient_of(loss), drawn({64, 16}, 1), {drawn({16, 16}, 2)});
}

TEST(Work, OfAScanIsAsPredicted) {
  const auto loss = [](const Tensor& xs, const Tensors& w) {
    const auto body = [&](const Tensor& h, const Tensor& x) {
      const Tensor next = td::tanh(td::matmul(h, w[0]) + td::matmul(x, w[1]));
      return std::pair{next, next};
    };
    const auto [last, all] = td::scan(body, td::zeros({8, 16}), xs);
    return td::mean(td::square(all)) + td::mean(last);
  };
  expect_counted(gradient_of(loss), drawn({24, 8, 16}, 1),
                 {drawn({16, 16}, 2), drawn({16, 16}, 3)});
}

TEST(Work, OfMapsIsAsPredicted) {
  const auto loss = [](const Tensor& xs, const Tensors& w) {
    const auto body = [&](const Tensor& x) { return td::sum(td::sin(td::matmul(x, w[0])), 0); };
    return td::mean(td::square(td::map_fn(body, xs, {.chunk = 2})));
  };
  expect_counted(gradient_of(loss), drawn({6, 32, 16}, 1), {drawn({16, 16}, 2)}, false);
}

// A run counts the trips and the branch that it took.
TEST(Work, OfWhatIsKnownOnlyThenIsCounted) {
  const auto f = td::function([](const Tensor& x) {
    return td::while_loop([](const Tensor& c) { return td::sum(c) < 1000; },
                          [](const Tensor& c) { return td::matmul(c, c) * 0.5 + 1; }, x);
  });
  const Tensor x = td::zeros({32, 32});
  const td::Profile profile = f.profile(x).second;
  int64_t trips = 0;
  for (const td::ProfileStep& step : profile.steps)
    if (step.name == "matmul") trips += step.runs;
  double flop = 0;
  for (const td::ProfileStep& step : profile.steps)
    if (step.name == "matmul") flop += step.flop;
  EXPECT_GT(trips, 0);
  EXPECT_EQ(flop, static_cast<double>(trips) * 2 * 32 * 32 * 32);
}

}  // namespace

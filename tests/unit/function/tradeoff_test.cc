// Functions that need more than their budget do work again until they fit. Plans say how far that
// goes, what it costs and what was done; the bits stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::Tensor;

namespace {

Tensor drawn(const td::Shape& shape, uint64_t key) {
  return td::random::normal(shape, {.stddev = 0.1, .key = td::random::Key(key)});
}

// A training step of layers that all keep a value of [rows, 32] for the gradient.
struct Net {
  std::vector<td::Variable> weights;

  explicit Net(int layers) {
    for (int i = 0; i < layers; ++i)
      weights.emplace_back(drawn({32, 32}, static_cast<uint64_t>(i)), td::VariableOptions{});
  }
  Tensor loss(Tensor x) const {
    for (const td::Variable& w : weights) x = td::sin(td::matmul(x, w));
    return td::mean(td::square(x));
  }
};

auto step_of(const Net& net, td::FunctionOptions options = {}) {
  return td::function(
      [net](const Tensor& x) {
        td::GradientTape tape;
        const Tensor loss = net.loss(x);
        const std::vector<td::Gradient> gradients = tape.gradient(loss, net.weights);
        for (size_t i = 0; i < gradients.size(); ++i)
          net.weights[i].assign_sub(0.1 * gradients[i].dense());
        return loss;
      },
      std::move(options));
}

int64_t floor_in_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const td::OverBudget& error) {
    return error.floor().count;
  }
  return -1;
}

// The loss of three steps and all weights.
template <class Step>
std::vector<Tensor> trained(const Net& net, const Step& step) {
  std::vector<Tensor> seen;
  for (uint64_t i = 0; i < 3; ++i) seen.push_back(step(drawn({256, 32}, 100 + i)));
  for (const td::Variable& w : net.weights) seen.push_back(w.value());
  return seen;
}

void expect_identical(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(td::identical(a[i], b[i])) << "tensor " << i;
}

// ---- floor, within, tradeoff --------------------------------------------------------------------

TEST(Tradeoff, TheFloorRunsAndAByteLessIsRefused) {
  const Net net(12), same(12);
  const td::Plan plan = step_of(net).plan(td::spec({256, 32}));
  ASSERT_LT(plan.floor().count, plan.peak().count / 2);
  const auto at_floor = step_of(net, {.budget = plan.floor()});
  expect_identical(trained(net, at_floor), trained(same, step_of(same)));
  EXPECT_EQ(at_floor.plan(td::spec({256, 32})).peak(), plan.floor());
  const auto below = step_of(net, {.budget = plan.floor() - 1});
  EXPECT_EQ(floor_in_error([&] { below(drawn({256, 32}, 1)); }), plan.floor().count);
  EXPECT_EQ(floor_in_error([&] { plan.within(plan.floor() - 1); }), plan.floor().count);
}

TEST(Tradeoff, GoesFromThePeakToTheFloor) {
  const td::Plan plan = step_of(Net(12)).plan(td::spec({256, 32}));
  const std::vector<td::TradeoffPoint> points = plan.tradeoff();
  ASSERT_GT(points.size(), 3U);
  EXPECT_EQ(points.front().peak, plan.peak());
  EXPECT_EQ(points.front().more_work, 0);
  EXPECT_EQ(points.back().peak, plan.floor());
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_LT(points[i].peak, points[i - 1].peak);
    EXPECT_GT(points[i].more_work, points[i - 1].more_work);
    EXPECT_GT(points[i].estimated_ms, points[i - 1].estimated_ms);
  }
}

TEST(Tradeoff, EachPointIsAPlan) {
  const auto step = step_of(Net(12));
  const td::Plan plan = step.plan(td::spec({256, 32}));
  for (const td::TradeoffPoint& point : step.tradeoff(td::spec({256, 32}))) {
    const td::Plan within = plan.within(point.peak);
    EXPECT_EQ(within.peak(), point.peak);
    EXPECT_DOUBLE_EQ(within.more_work(), point.more_work);
    EXPECT_EQ(step.plan(td::spec({256, 32}), {.budget = point.peak}).peak(), point.peak);
  }
}

TEST(Tradeoff, OfAProgramThatCannotNeedLessIsOnePoint) {
  const auto f = td::function([](const Tensor& x) { return td::exp(x); });
  const td::Plan plan = f.plan(td::spec({256, 256}));
  EXPECT_EQ(plan.floor(), plan.peak());
  EXPECT_EQ(plan.tradeoff().size(), 1U);
  EXPECT_TRUE(plan.decisions().empty());
}

TEST(Tradeoff, PlansWithinABudgetAreThoseOfTheFunction) {
  const Net net(12);
  const td::Plan plan = step_of(net).plan(td::spec({256, 32}));
  const td::Bytes budget = (plan.floor().count + plan.peak().count) / 2;
  const td::Plan within = plan.within(budget);
  EXPECT_LE(within.peak(), budget);
  EXPECT_EQ(step_of(net, {.budget = budget}).plan(td::spec({256, 32})).peak(), within.peak());
  EXPECT_EQ(within.floor(), plan.floor());
  EXPECT_EQ(within.within(plan.peak()).peak(), plan.peak()) << "and back";
}

// Each layer reads all layers before it, so that the gradient of a layer is the sum of slices of
// the gradients of all layers after it. Added slice by slice, none of these is held whole.
TEST(Tradeoff, GradientsThroughSlicesAreAddedAsTheyCome) {
  const auto f = [](td::FunctionOptions options) {
    return td::function(
        [](const Tensor& x, const std::vector<Tensor>& weights) {
          return td::grad([&](const std::vector<Tensor>& all) {
            std::vector<Tensor> layers = {x};
            for (const Tensor& w : all)
              layers.push_back(td::sin(td::matmul(td::concat(layers, 1), w)));
            return td::mean(td::square(td::concat(layers, 1)));
          })(weights);
        },
        std::move(options));
  };
  std::vector<Tensor> weights;
  for (int64_t i = 1; i <= 8; ++i) weights.push_back(drawn({16 * i, 16}, static_cast<uint64_t>(i)));
  const Tensor x = drawn({256, 16}, 20);
  const td::Plan plan = f({}).plan(x, weights);
  EXPECT_LT(plan.floor().count * 5, plan.peak().count * 3);
  expect_identical(f({.budget = plan.floor()})(x, weights), f({})(x, weights));
}

// ---- decisions ----------------------------------------------------------------------------------

TEST(Decisions, AddUpToTheWorkThatIsDoneAgain) {
  const td::Plan plan = step_of(Net(12)).plan(td::spec({256, 32}));
  EXPECT_TRUE(plan.decisions().empty());
  EXPECT_EQ(plan.more_work(), 0);
  const td::Plan least = plan.within(plan.floor());
  double more_work = 0;
  for (const td::PlanDecision& each : least.decisions()) {
    EXPECT_FALSE(each.what.empty());
    EXPECT_GE(each.times, 1);
    more_work += each.more_work;
  }
  EXPECT_GT(more_work, 0);
  EXPECT_NEAR(more_work, least.more_work(), 1e-9);
}

TEST(Decisions, AreTheStepsThatRunAgain) {
  const auto step = step_of(Net(12));
  const td::Plan plan = step.plan(td::spec({256, 32})), least = plan.within(plan.floor());
  int64_t again = 0;
  for (const td::PlanDecision& each : least.decisions())
    again += each.what.starts_with("computes ") ? each.times : 0;
  EXPECT_EQ(least.timeline().size(), plan.timeline().size() + static_cast<size_t>(again));
}

TEST(Decisions, NameTheLine) {
  const td::Plan plan = step_of(Net(12)).plan(td::spec({256, 32}));
  const std::vector<td::PlanDecision> all = plan.within(plan.floor()).decisions();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const td::PlanDecision& each) {
    return each.line.starts_with("tradeoff_test.cc:") && each.bytes.count > 0 && each.flop > 0;
  }));
}

// ---- measured -----------------------------------------------------------------------------------

TEST(Tradeoff, ARunTouchesNoMoreThanPlanned) {
  const Net net(12);
  const td::Plan plan = step_of(net).plan(td::spec({256, 32}));
  for (int i = 0; i <= 4; ++i) {
    const int64_t budget = plan.floor().count + (plan.peak() - plan.floor()).count * i / 4;
    const auto step = step_of(net, {.budget = td::Bytes(budget)});
    const Tensor x = drawn({256, 32}, 5);
    const td::Profile profile = step.profile(x).second;
    EXPECT_LE(profile.planned.count, budget);
    EXPECT_LE(profile.touched, profile.planned);
    const td::Bytes before = td::memory::current();
    td::memory::reset_peak();
    step(x);
    EXPECT_EQ((td::memory::peak() - before), profile.planned);
  }
}

// ---- Budget::available --------------------------------------------------------------------------

class Limit {
 public:
  explicit Limit(td::Bytes above) { td::memory::set_limit(td::memory::current() + above); }
  ~Limit() { td::memory::set_limit(before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  td::Bytes before_ = td::memory::limit();
};

TEST(BudgetAvailable, IsWhatTheLimitLeaves) {
  const Net net(12);
  const auto step = step_of(net, {.budget = td::Budget::available});
  const Tensor x = drawn({256, 32}, 1);
  const td::Plan usual = step.plan(x);
  EXPECT_EQ(usual.more_work(), 0);
  const Limit limit((usual.peak().count + usual.floor().count) / 2);
  const auto fresh = step_of(net, {.budget = td::Budget::available});
  EXPECT_LE(fresh.plan(x).peak(), td::memory::limit() - td::memory::current());
  EXPECT_GT(fresh.plan(x).more_work(), 0);
  fresh(x);
}

TEST(BudgetAvailable, FollowsTheLimitFromPlanToPlan) {
  const Net net(12);
  const auto step = step_of(net, {.budget = td::Budget::available});
  const Tensor x = drawn({256, 32}, 1), other = drawn({64, 32}, 1);
  const td::Bytes peak = step.plan(x).peak(), floor = step.plan(x).floor();
  step(x);
  step(other);
  const Limit limit((peak.count + floor.count) / 2);
  step(x);  // Planned again, since the last plan no longer fits.
  EXPECT_LT(step.plan(x).peak(), peak);
}

TEST(BudgetAvailable, BelowTheFloorIsRefused) {
  const Net net(12);
  const auto step = step_of(net, {.budget = td::Budget::available});
  const Tensor x = drawn({256, 32}, 1);
  const td::Bytes floor = step.plan(x).floor();
  const Limit limit(floor - 1);
  EXPECT_EQ(floor_in_error([&] { step_of(net, {.budget = td::Budget::available})(x); }),
            floor.count);
}

// ---- largest ------------------------------------------------------------------------------------

// By asking for a plan of each size.
int64_t largest_by_hand(const std::function<td::Plan(int64_t)>& plan, td::Bytes budget,
                        int64_t fits, int64_t fails) {
  while (fails - fits > 1) {
    const int64_t middle = (fits + fails) / 2;
    (plan(middle).floor() <= budget ? fits : fails) = middle;
  }
  return fits;
}

TEST(Largest, RunsAndOneMoreIsRefused) {
  const Net net(6);
  const auto open = [&](std::optional<td::Budget> budget) {
    return step_of(net, {.budget = budget, .input_signature = {td::spec({td::open, 32})}});
  };
  const auto step = open({});
  const td::Bytes budget = 100_KiB;
  const int64_t most = step.largest(td::spec({16, 32}), budget);
  ASSERT_GT(most, 16);
  const auto within = open(budget);
  within(drawn({most, 32}, 1));
  EXPECT_GT(floor_in_error([&] { within(drawn({most + 1, 32}, 1)); }), budget.count);
  const auto plan = [&](int64_t rows) { return step.plan(td::spec({rows, 32})); };
  EXPECT_EQ(most, largest_by_hand(plan, budget, 1, 4096));
}

// 1024 rows are four equal parts, and fit where fewer rows do not.
TEST(Largest, OfEqualPartsOfTheBatchIsFound) {
  const Net net(3);
  const auto open = [&](std::optional<td::Budget> budget) {
    return step_of(net, {.budget = budget, .input_signature = {td::spec({td::open, 32})}});
  };
  const auto step = open({});
  const td::Bytes budget = step.plan(td::spec({1024, 32})).floor();
  ASSERT_GT(step.plan(td::spec({1000, 32})).floor(), budget);
  for (const int64_t hint : {3, 16})
    EXPECT_EQ(step.largest(td::spec({hint, 32}), budget), 1024) << hint;
  const auto within = open(budget);
  within(drawn({1024, 32}, 1));
  EXPECT_GT(floor_in_error([&] { within(drawn({1025, 32}, 1)); }), budget.count);
}

TEST(Largest, TakesAllSizesThatAreEqual) {
  const auto f = td::function(
      [](const Tensor& x, const Tensor& y) { return td::exp(x) * td::reshape(y, {-1, 1}); },
      {.input_signature = {td::spec({td::open, 256}), td::spec({td::open})}});
  EXPECT_EQ(f.largest(td::spec({8, 256}), td::spec({8}), 64_KiB), 64);
}

TEST(Largest, IsZeroIfNothingFits) {
  const auto f = td::function([](const Tensor& x) { return td::exp(x); },
                              {.input_signature = {td::spec({td::open, 256})}});
  EXPECT_EQ(f.largest(td::spec({8, 256}), 1_KiB), 1);
  EXPECT_EQ(f.largest(td::spec({8, 256}), 1_KiB - 1), 0);
}

TEST(Largest, WithoutAnOpenSizeIsRefused) {
  const auto f = td::function([](const Tensor& x) { return td::exp(x); }, {.name = "f"});
  const std::string text =
      td::error_of<td::UserError>([&] { f.largest(td::spec({8, 256}), 1_KiB); });
  EXPECT_TRUE(text.starts_with("largest: f has no open size\n")) << text;
}

// Whatever the size, the result is a number.
TEST(Largest, OfAFunctionThatDoesNotGrowEnds) {
  const auto f = td::function([](const Tensor& x) { return td::sum(x); },
                              {.input_signature = {td::spec({td::open})}});
  EXPECT_GT(f.largest(td::spec({8}), 1_MiB), int64_t{1} << 20);
}

// Each size has a trace of its own.
TEST(Largest, OfAFunctionThatReadsItsSizeIsRefused) {
  const auto f = td::function(
      [](const Tensor& x) { return x.shape()[0] > 4 ? td::cumsum(td::exp(x), 0) : td::exp(x); });
  for (const int64_t rows : {8, 9}) f(td::ones({rows, 256}));
  const std::string text =
      td::error_of<td::UserError>([&] { f.largest(td::spec({td::open, 256}), 64_KiB); });
  EXPECT_TRUE(text.starts_with("largest: this trace serves only sizes with ")) << text;
}

// ---- what users wrote stays ---------------------------------------------------------------------

TEST(WhatUsersWrote, ALoopKeepsTheStatesOfItsSave) {
  const auto make = [](td::Save save) {
    return td::function([save](const Tensor& x) {
      td::GradientTape tape;
      tape.watch(x);
      const Tensor y = td::fori_loop(
          0, 64, [](const Tensor&, const Tensor& c) { return td::sin(td::matmul(c, c)) + c; }, x,
          {.save = save});
      return tape.gradient(td::sum(y), x);
    });
  };
  const td::Plan all = make(td::Save::all()).plan(td::spec({16, 16}));
  const td::Plan automatic = make(td::Save::automatic()).plan(td::spec({16, 16}));
  EXPECT_GE(all.floor().count, 64 * 16 * 16 * 4) << "all states are there at the end of the loop";
  EXPECT_LT(automatic.floor().count, all.floor().count / 3);
}

TEST(WhatUsersWrote, AMapRunsNoMoreBodiesThanItsChunk) {
  const auto f = td::function([](const Tensor& x) {
    const auto body = [](const Tensor& row) { return td::sum(td::sin(td::repeat(row, 64, 0))); };
    return td::map_fn(body, x, {.chunk = 4});
  });
  const td::Plan plan = f.plan(td::spec({64, 64}));
  EXPECT_LE(plan.floor(), plan.peak());
}

TEST(WhatUsersWrote, RecomputedLayersGiveTheSameBitsWithinBudgets) {
  const Tensor x = drawn({256, 32}, 1), w = drawn({32, 32}, 2);
  const auto f = [](td::FunctionOptions options) {
    return td::function(
        [](const Tensor& x, const Tensor& w) {
          td::GradientTape tape;
          tape.watch(w);
          const auto layer = td::recompute(
              [](const Tensor& h, const Tensor& w) { return td::sin(td::matmul(td::exp(h), w)); });
          Tensor h = x;
          for (int i = 0; i < 6; ++i) h = layer(h, w);
          return tape.gradient(td::mean(h), w);
        },
        std::move(options));
  };
  const auto usual = f({});
  const td::Plan plan = usual.plan(x, w);
  const Tensor expected = usual(x, w);
  for (const td::TradeoffPoint& point : plan.tradeoff())
    EXPECT_TRUE(td::identical(f({.budget = point.peak})(x, w), expected)) << point.peak;
}

TEST(WhatUsersWrote, NoGradientPassesStopGradientWithinABudget) {
  const auto f = [](td::FunctionOptions options) {
    return td::function(
        [](const Tensor& x) {
          td::GradientTape tape;
          tape.watch(x);
          const Tensor a = td::sin(x), b = td::stop_gradient(td::exp(a));
          return tape.gradient(td::sum(td::cumsum(a * b, 0)), x);
        },
        std::move(options));
  };
  const Tensor x = drawn({128, 64}, 1);
  const td::Plan plan = f({}).plan(x);
  EXPECT_TRUE(td::identical(f({.budget = plan.floor()})(x), f({})(x)));
}

// ---- tapes, donation ----------------------------------------------------------------------------

TEST(Tradeoff, ATapeAroundAFunctionWithABudgetGivesTheSameBits) {
  const Net net(8);
  const auto loss = [net](const Tensor& x) { return net.loss(x); };
  const Tensor x = drawn({256, 32}, 3);
  const auto gradients = [&](const td::Function<Tensor(const Tensor&)>& f) {
    td::GradientTape tape;
    std::vector<Tensor> all;
    for (const td::Gradient& each : tape.gradient(f(x), net.weights)) all.push_back(each.dense());
    return all;
  };
  const std::vector<Tensor> expected = gradients(td::function(loss));
  for (const td::Bytes budget : {1_GiB, 400_KiB, 300_KiB})
    expect_identical(gradients(td::function(loss, {.budget = budget})), expected);
}

TEST(Tradeoff, GivenArgumentsGiveTheSameBits) {
  const auto f = [](td::FunctionOptions options) {
    return td::function(
        [](const Tensor& x) {
          td::GradientTape tape;
          tape.watch(x);
          Tensor h = x;
          for (int i = 0; i < 6; ++i) h = td::sin(td::matmul(h, h));
          return tape.gradient(td::mean(h), x);
        },
        std::move(options));
  };
  const Tensor x = drawn({64, 64}, 1);
  const Tensor expected = f({})(x + 0);
  const td::Plan plan = f({}).plan(x + 0);
  for (const td::TradeoffPoint& point : plan.tradeoff())
    EXPECT_TRUE(td::identical(f({.budget = point.peak})(x + 0), expected)) << point.peak;
}

TEST(Tradeoff, APlanWithinABudgetRunsInMemoryOfTheCallers) {
  const Net net(8), same(8);
  const auto step = step_of(net);
  const Tensor x = drawn({256, 32}, 1);
  const td::Plan plan = step.plan(x), least = plan.within(plan.floor());
  std::vector<std::byte> arena(static_cast<size_t>(least.arena().count) + 64);
  void* begin = arena.data();
  size_t space = arena.size();
  std::align(64, static_cast<size_t>(least.arena().count), begin, space);
  const Tensor loss = step.run_in(
      least, {static_cast<std::byte*>(begin), static_cast<size_t>(least.arena().count)}, x);
  EXPECT_TRUE(td::identical(loss, step_of(same)(x)));
}

TEST(Tradeoff, MayBeAskedForByManyThreads) {
  const auto step = step_of(Net(6));
  const td::Plan plan = step.plan(td::spec({64, 32}));
  const td::Bytes floor = step_of(Net(6)).plan(td::spec({64, 32})).floor();
  std::vector<td::Bytes> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      found[i] = i % 2 == 0 ? plan.floor() : plan.within(floor).peak();
      step.plan(td::spec({64 + static_cast<int64_t>(i), 32}), {.budget = 1_MiB});
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(found, std::vector<td::Bytes>(4, floor));
}

TEST(Tradeoff, OfOpenSizesIsOfTheSizeAsked) {
  const Net net(8);
  const auto step = step_of(net, {.input_signature = {td::spec({td::open, 32})}});
  const td::Plan small = step.plan(td::spec({64, 32})), large = step.plan(td::spec({256, 32}));
  EXPECT_LT(small.floor(), large.floor());
  EXPECT_EQ(small.at({256}).floor(), large.floor());
  const td::Plan fixed = step_of(net).plan(td::spec({256, 32}));
  EXPECT_EQ(large.floor(), fixed.floor());
}

}  // namespace

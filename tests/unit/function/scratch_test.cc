// Steps whose scratch is too large for several threads run on fewer where bytes are scarce.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

constexpr int kThreads = 8;

struct Threads {
  explicit Threads(int count) { td::set_num_threads(count); }
  ~Threads() { td::set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before = td::num_threads();
};

// Products of transposed operands, whose packed copies are scratch of each thread.
td::Function<Tensor(const Tensor&, const Tensor&)> product(std::optional<td::Budget> budget = {}) {
  return td::function(
      [](const Tensor& x, const Tensor& w) {
        return td::matmul(td::sin(td::matmul(x, w, {.transpose_a = true})), w);
      },
      {.budget = budget});
}

Tensor drawn(const td::Shape& shape, uint64_t seed) {
  return td::random::normal(shape, {.key = td::random::Key(seed)});
}

bool runs_on_fewer(const td::Plan& plan) {
  const std::vector<td::PlanDecision> all = plan.decisions();
  return std::any_of(all.begin(), all.end(), [](const td::PlanDecision& each) {
    return each.what.starts_with("runs ") &&
           each.what.ends_with(" on fewer threads, for less scratch");
  });
}

TEST(LessScratch, TheFloorOfManyThreadsIsThatOfOne) {
  const Tensor x = td::spec({192, 256}), w = td::spec({192, 192});
  td::Bytes floor_of_one, peak_of_one;
  {
    const Threads one(1);
    const td::Plan plan = product().plan(x, w);
    floor_of_one = plan.floor();
    peak_of_one = plan.peak();
  }
  const Threads many(kThreads);
  const td::Plan plan = product().plan(x, w);
  ASSERT_GT(plan.peak(), peak_of_one) << "more threads have more scratch";
  EXPECT_EQ(plan.floor(), floor_of_one);
  EXPECT_TRUE(runs_on_fewer(plan.within(plan.floor())));
  EXPECT_FALSE(runs_on_fewer(plan));
}

TEST(LessScratch, StepsRunOnNoMoreThreadsThanTheirScratchIsFor) {
  const Threads many(kThreads);
  const Tensor x = drawn({192, 256}, 1), w = drawn({192, 192}, 2);
  const auto [expected, usual] = product().profile(x, w);
  const td::Plan plan = product().plan(x, w);
  const auto [result, least] = product(plan.floor()).profile(x, w);
  EXPECT_TRUE(td::identical(result, expected));
  EXPECT_EQ(least.planned, plan.floor());
  EXPECT_LE(least.touched, least.planned);
  // Of the product that runs on the fewest threads: not every product has scratch on every machine.
  const auto fewest_threads = [](const td::Profile& profile) {
    std::vector<std::set<int32_t>> threads(profile.steps.size());
    for (const td::ProfileSlice& slice : profile.slices)
      threads[static_cast<size_t>(slice.step)].insert(slice.thread);
    size_t fewest = kThreads;
    for (size_t i = 0; i < threads.size(); ++i)
      if (profile.steps[i].name == "matmul") fewest = std::min(fewest, threads[i].size());
    return fewest;
  };
  EXPECT_GT(fewest_threads(usual), 1U);
  EXPECT_EQ(fewest_threads(least), 1U);
}

TEST(LessScratch, TakesAsManyThreadsAsFit) {
  const Threads many(kThreads);
  const Tensor x = drawn({192, 256}, 1), w = drawn({192, 192}, 2);
  const Tensor expected = product()(x, w);
  const td::Plan plan = product().plan(x, w);
  td::Bytes before = plan.peak();
  for (int i = 20; i >= 0; --i) {
    const td::Bytes budget = plan.floor().count + (plan.peak() - plan.floor()).count * i / 20;
    const auto f = product(budget);
    EXPECT_TRUE(td::identical(f(x, w), expected));
    const td::Plan within = f.plan(x, w);
    EXPECT_LE(within.peak(), budget);
    EXPECT_LE(within.peak(), before) << "a smaller budget needs no more";
    before = within.peak();
  }
}

TEST(LessScratch, IsADecisionWithItsTime) {
  const Threads many(kThreads);
  const td::Plan plan = product().plan(td::spec({192, 256}), td::spec({192, 192}));
  const td::Plan least = plan.within(plan.floor());
  double more = 0;
  for (const td::PlanDecision& each : least.decisions()) more += each.more_work;
  EXPECT_GT(more, 0);
  EXPECT_NEAR(more, least.more_work(), 1e-9);
  EXPECT_NE(least.explain().find(" on fewer threads, for less scratch"), std::string::npos)
      << least.explain();
}

}  // namespace

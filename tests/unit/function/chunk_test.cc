// Maps with an automatic chunk: as many bodies at once as the budget has room for, found by trying
// them all.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::Tensor;

namespace {

constexpr int64_t kTrips = 11;

// A body that is no single kernel, so that each has memory of its own.
Tensor body(const Tensor& row) {
  const Tensor table = td::sin(td::reshape(row, {-1, 1}) * td::reshape(row, {1, -1}));
  return td::sum(td::matmul(table, table), 0);
}

struct Threads {
  explicit Threads(int count) { td::set_num_threads(count); }
  ~Threads() { td::set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before = td::num_threads();
};

td::Function<Tensor(const Tensor&)> mapped(td::MapOptions options,
                                           std::optional<td::Budget> budget = {}) {
  return td::function([options](const Tensor& xs) { return td::map_fn(body, xs, options); },
                      {.budget = budget});
}

// The step of the map in a plan.
std::string map_in(const td::Plan& plan) {
  for (const td::PlanStep& step : plan.timeline())
    if (step.name.starts_with("map")) return step.name;
  return "none";
}

std::string step_of(int64_t bodies) {
  return bodies == 1 ? "map, 1 body" : td::cat("map, ", bodies, " bodies at once");
}

TEST(AutomaticChunk, IsTheLargestThatFits) {
  const Tensor xs = td::spec({kTrips, 40});
  for (const int threads : {1, 2, 5}) {
    const Threads scope(threads);
    std::vector<td::Bytes> peaks = {td::Bytes(0)};
    for (int64_t chunk = 1; chunk <= kTrips; ++chunk)
      peaks.push_back(mapped({.chunk = chunk}).plan(xs).peak());
    const td::Bytes least = std::min(peaks[1], peaks[2]);
    for (td::Bytes budget = least; budget <= peaks.back() + 1000; budget = budget + 997) {
      int64_t largest = kTrips;
      while (peaks[static_cast<size_t>(largest)] > budget) --largest;
      const td::Plan plan = mapped({.chunk = td::automatic}, budget).plan(xs);
      EXPECT_EQ(plan.peak(), peaks[static_cast<size_t>(largest)]) << budget << ", " << threads;
      EXPECT_EQ(map_in(plan), step_of(largest)) << budget << ", " << threads;
      EXPECT_EQ(mapped({.chunk = td::automatic}).plan(xs, {.budget = budget}).peak(), plan.peak());
    }
  }
}

TEST(AutomaticChunk, WithoutABudgetIsOneForEachThread) {
  for (const int threads : {1, 2, 5, 16}) {
    const Threads scope(threads);
    const td::Plan plan = mapped({.chunk = td::automatic}).plan(td::spec({kTrips, 40}));
    EXPECT_EQ(map_in(plan), step_of(std::min<int64_t>(threads, kTrips / 2)));
    EXPECT_TRUE(plan.decisions().empty());
  }
}

TEST(AutomaticChunk, GivesTheSameBits) {
  const Tensor xs = td::random::normal({kTrips, 40}, {.key = td::random::Key(1)});
  const Tensor expected = td::map_fn(body, xs);
  EXPECT_TRUE(td::identical(td::map_fn(body, xs, {.chunk = td::automatic}), expected)) << "eager";
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    const td::Plan plan = mapped({.chunk = td::automatic}).plan(xs);
    for (const td::Bytes budget : {plan.floor(), plan.peak(), plan.peak() + 100_KiB, 10_MiB}) {
      const auto f = mapped({.chunk = td::automatic}, budget);
      const auto [result, profile] = f.profile(xs);
      EXPECT_TRUE(td::identical(result, expected)) << budget;
      EXPECT_LE(profile.planned, budget);
      EXPECT_EQ(profile.touched, profile.planned);
    }
  }
}

TEST(AutomaticChunk, BelowOneBodyTheFloorIsExact) {
  const Tensor xs = td::random::normal({kTrips, 40}, {.key = td::random::Key(1)});
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    const td::Bytes floor = mapped({.chunk = td::automatic}).plan(xs).floor();
    EXPECT_EQ(mapped({.chunk = td::automatic}, floor).plan(xs).peak(), floor);
    EXPECT_THROW(mapped({.chunk = td::automatic}, floor - 1)(xs), td::OverBudget);
  }
}

TEST(AutomaticChunk, OfVectorizedMapRunsSliceBySlice) {
  const auto f = td::function(
      [](const Tensor& xs) { return td::vectorized_map(body, xs, {.chunk = td::automatic}); },
      {.budget = 10_MiB});
  EXPECT_EQ(map_in(f.plan(td::spec({kTrips, 40}))), step_of(kTrips));
}

TEST(AutomaticChunk, OfGradientsAndOpenSizes) {
  const auto make = [](std::optional<td::Budget> budget) {
    return td::function(
        [](const Tensor& xs) {
          td::GradientTape tape;
          tape.watch(xs);
          const Tensor ys = td::map_fn(body, xs, {.chunk = td::automatic});
          return tape.gradient(td::sum(td::sin(ys)), xs);
        },
        {.budget = budget, .input_signature = {td::spec({td::open, 40})}});
  };
  const Tensor xs = td::random::normal({kTrips, 40}, {.key = td::random::Key(1)});
  const Tensor expected = make({})(xs);
  const td::Bytes peak = make({}).plan(xs).peak();
  td::Bytes before = 0;
  for (const td::Bytes budget : {peak - 5000, peak, peak + 50_KiB, 10_MiB}) {
    const auto f = make(budget);
    EXPECT_TRUE(td::identical(f(xs), expected)) << budget;
    EXPECT_LE(f.plan(xs).peak(), budget);
    EXPECT_GE(f.plan(xs).peak(), before);
    before = f.plan(xs).peak();
  }
}

TEST(AutomaticChunk, IsADecisionOfThePlan) {
  const td::Plan plan = mapped({.chunk = td::automatic}, 10_MiB).plan(td::spec({kTrips, 40}));
  ASSERT_EQ(plan.decisions().size(), 1U);
  EXPECT_EQ(plan.decisions()[0].what, "runs 11 bodies of a map at once");
  EXPECT_TRUE(plan.decisions()[0].line.starts_with("chunk_test.cc:"));
  EXPECT_EQ(plan.more_work(), 0);
  EXPECT_NE(plan.explain().find("\n  the budget has room for more than the usual "),
            std::string::npos)
      << plan.explain();
  EXPECT_NE(plan.explain().find("\n    runs 11 bodies of a map at once at chunk_test.cc:"),
            std::string::npos);
}

TEST(AutomaticChunk, BesideParallelIterationsIsRefused) {
  const std::string text = td::error_of<td::UserError>([] {
    td::map_fn(body, td::ones({2, 4}), {.parallel_iterations = 2, .chunk = td::automatic});
  });
  EXPECT_TRUE(text.starts_with("map_fn: an automatic chunk beside parallel_iterations\n")) << text;
  EXPECT_NE(text.find("\n  both say how many bodies run at once: leave one out"), std::string::npos)
      << text;
}

}  // namespace

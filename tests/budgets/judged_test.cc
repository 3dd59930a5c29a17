// The budgets of random training functions, judged by the optimum of exhaustive search.
//
// The optimum is of the steps that the function runs without a budget. A program within a budget
// may also take fusion groups apart, and so needs fewer bytes than the optimum now and then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "tests/budgets/optimum.h"
#include "tidemark/fit/cost.h"

namespace tidemark::testing {
namespace {

// Of 300 functions: 0.013, 1.081, 0.997 and 1.102.
constexpr double kFloorsMissed = 0.03, kWorstFloor = 1.1;
constexpr double kMeanWork = 1.0, kWorstWork = 1.15;

// In picoseconds, as the compiler estimates them.
int64_t estimated_work(const Graph& graph, const Node& node) {
  return std::max<int64_t>(1, std::llround(fit::cost_of(graph, node).seconds * 1e12));
}

// A ratio to the optimum, of one function.
struct Ratio {
  uint64_t seed = 0;
  double value = 0;
};

struct Judged {
  std::vector<Ratio> floors;
  std::vector<Ratio> work;  // Three budgets a function.
  int refused = 0;          // Budgets that the optimum keeps and the plan does not.
  int out_of_reach = 0;     // Functions that the search gave up on.
};

// As a multiple of the work without a budget; nothing if there is no plan within it.
std::optional<double> work_within(const RandomTraining& training, Bytes budget) try {
  return 1 + training.function.plan(training.specs(), {.budget = budget}).more_work();
} catch (const OverBudget&) {
  return {};
}

void judge(uint64_t seed, const RandomTraining& training, const Optimum& optimum, Judged& all) {
  const Bytes floor = training.function.plan(training.specs()).floor();
  all.floors.push_back(
      {seed, static_cast<double>(floor.count) / static_cast<double>(optimum.floor_bytes)});
  const double usual = fit::cost_of(optimum.graph, Graph::kBody).seconds * 1e12;
  for (const Optimum::Point& point : optimum.points) {
    if (const auto work = work_within(training, point.budget_bytes))
      all.work.push_back({seed, *work * usual / static_cast<double>(point.schedule.work)});
    else
      ++all.refused;
  }
}

size_t count_of_functions() {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  if (counts == nullptr) return 100;
  return std::string_view(counts) == "full" ? 300 : 30;
}

Judged judged_functions() {
  Judged all;
  for (uint64_t seed = 0; all.floors.size() < count_of_functions(); ++seed) {
    const RandomTraining training = random_training(seed);
    if (const std::optional<Optimum> optimum = optimum_of(training, estimated_work))
      judge(seed, training, *optimum, all);
    else
      ++all.out_of_reach;
  }
  return all;
}

const Ratio& worst(const std::vector<Ratio>& ratios) {
  return *std::max_element(ratios.begin(), ratios.end(),
                           [](const Ratio& a, const Ratio& b) { return a.value < b.value; });
}

double mean_of(const std::vector<Ratio>& ratios) {
  const auto add = [](double sum, const Ratio& each) { return sum + each.value; };
  return std::accumulate(ratios.begin(), ratios.end(), 0.0, add) /
         static_cast<double>(ratios.size());
}

int64_t above_the_optimum(const std::vector<Ratio>& ratios) {
  return std::count_if(ratios.begin(), ratios.end(),
                       [](const Ratio& each) { return each.value > 1; });
}

TEST(Judged, RandomTrainingFunctionsComeCloseToTheOptimum) {
  const Judged all = judged_functions();
  const auto functions = static_cast<double>(all.floors.size());
  const auto missed = static_cast<double>(above_the_optimum(all.floors));
  RecordProperty("floors_at_the_optimum", std::to_string(1 - missed / functions));
  RecordProperty("worst_floor", std::to_string(worst(all.floors).value));
  RecordProperty("mean_work", std::to_string(mean_of(all.work)));
  RecordProperty("worst_work", std::to_string(worst(all.work).value));
  RecordProperty("refused", all.refused);
  RecordProperty("out_of_reach", all.out_of_reach);
  EXPECT_LE(missed, std::ceil(kFloorsMissed * functions));  // One of 30.
  EXPECT_LE(worst(all.floors).value, kWorstFloor) << "seed " << worst(all.floors).seed;
  EXPECT_LE(mean_of(all.work), kMeanWork);
  EXPECT_LE(worst(all.work).value, kWorstWork) << "seed " << worst(all.work).seed;
  EXPECT_EQ(all.refused, 0);
}

constexpr double kFewMore = 1.05;

// Their work was 1.32, 1.47, 1.43 and 1.67 times that of the optimum.
TEST(Judged, FunctionsThatWereFarFromTheOptimumOnceAreNot) {
  int judged = 0;
  for (const uint64_t seed : {114, 225, 293, 301}) {
    Judged all;
    const RandomTraining training = random_training(seed);
    const std::optional<Optimum> optimum = optimum_of(training, estimated_work);
    if (!optimum) continue;  // With other caches a graph may be out of reach of the search.
    ++judged;
    judge(seed, training, *optimum, all);
    EXPECT_LE(worst(all.work).value, kFewMore) << "seed " << seed;
    EXPECT_EQ(all.refused, 0);
  }
  EXPECT_GE(judged, 3);
}

}  // namespace
}  // namespace tidemark::testing

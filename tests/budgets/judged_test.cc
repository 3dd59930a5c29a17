// The budgets of random training functions, judged by the optimum of exhaustive search.
//
// The optimum is of the steps that the function runs without a budget. A program within a budget
// may also take fusion groups apart, and so needs fewer bytes than the optimum now and then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>

#include "tests/budgets/optimum.h"
#include "tidemark/fit/cost.h"

namespace tidemark::testing {
namespace {

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
  std::vector<Ratio> work;  // Three budgets a function: infinite where it is refused.
  int out_of_reach = 0;     // Functions that the search gave up on.
};

double work_ratio(const RandomTraining& training, const Optimum::Point& point, double usual) {
  try {
    const Bytes budget(point.budget_bytes);
    const Plan plan = training.function.plan(training.specs(), {.budget = budget});
    return usual * (1 + plan.more_work()) / static_cast<double>(point.schedule.work);
  } catch (const OverBudget&) {
    return INFINITY;
  }
}

void judge(uint64_t seed, const RandomTraining& training, const Optimum& optimum, Judged& all) {
  const Bytes floor = training.function.plan(training.specs()).floor();
  all.floors.push_back(
      {seed, static_cast<double>(floor.count) / static_cast<double>(optimum.floor_bytes)});
  const double usual = fit::cost_of(optimum.graph, Graph::kBody).seconds * 1e12;
  for (const Optimum::Point& point : optimum.points)
    all.work.push_back({seed, work_ratio(training, point, usual)});
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

double share_at_the_optimum(const std::vector<Ratio>& ratios) {
  const auto reached = std::count_if(ratios.begin(), ratios.end(),
                                     [](const Ratio& each) { return each.value <= 1; });
  return static_cast<double>(reached) / static_cast<double>(ratios.size());
}

TEST(Judged, RandomTrainingFunctionsComeCloseToTheOptimum) {
  const Judged all = judged_functions();
  EXPECT_GE(share_at_the_optimum(all.floors), 0.9);
  EXPECT_LE(worst(all.floors).value, 1.15) << "seed " << worst(all.floors).seed;
  EXPECT_LE(mean_of(all.work), 1.05);
  EXPECT_LE(worst(all.work).value, 1.3) << "seed " << worst(all.work).seed;
  RecordProperty("out_of_reach", all.out_of_reach);
  RecordProperty("mean_work", std::to_string(mean_of(all.work)));
}

}  // namespace
}  // namespace tidemark::testing

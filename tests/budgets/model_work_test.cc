// The work that plans of the models in bench/budgets predict is what their runs count, without a
// budget, within a little less than the usual program needs, within half of it and at the floor.
// The models are small; as large as in bench/budgets with TIDEMARK_TEST_COUNTS=full.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bench/budget_models.h"
#include "tests/sweep/values.h"

namespace tidemark {
namespace {

void expect_counted(const bench::BudgetModel& model) {
  const Plan plan = model.plan({});
  const Profile profile = model.profile().second;
  EXPECT_EQ(profile.planned, plan.peak());
  EXPECT_GT(plan.flop(), 0);
  EXPECT_EQ(profile.flop, plan.flop());
  EXPECT_EQ(profile.bytes_moved, plan.bytes_moved());
}

class ModelWork : public ::testing::TestWithParam<bench::BudgetModelCase> {};

TEST_P(ModelWork, IsCountedAsPlanned) {
  const bool is_whole = sweep::full_counts();
  const auto make = [&](const FunctionOptions& options) {
    return is_whole ? GetParam().make(options) : GetParam().make_small(options);
  };
  const bench::BudgetModel usual = make({});
  expect_counted(usual);
  const Plan plan = usual.plan({});
  const Bytes peak = plan.peak(), floor = plan.floor();
  expect_counted(make({.budget = std::max(floor, Bytes(peak.count * 9 / 10))}));
  if (is_whole) return;
  expect_counted(make({.budget = std::max(floor, Bytes(peak.count / 2))}));
  expect_counted(make({.budget = floor}));
}

// `branches` is left out: a run takes the smaller branch in some trips. So is `map_sin`, whose one
// step has no value to drop.
bool has_known_work(const bench::BudgetModelCase& each) {
  const std::string_view name = each.name;
  return name != "branches" && name != "map_sin";
}

std::vector<bench::BudgetModelCase> models() {
  std::vector<bench::BudgetModelCase> list;
  for (const bench::BudgetModelCase& each : bench::budget_models())
    if (has_known_work(each)) list.push_back(each);
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, ModelWork, ::testing::ValuesIn(models()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tidemark

#include "tidemark/plan/corner_search.h"

#include <gtest/gtest.h>

#include "tests/unit/plan/problems.h"

namespace tidemark::plan {
namespace {

// The search alone, without the passes that usually find the answer before it: the least capacity
// is possible, one less is not.
TEST(CornerSearch, DecidesEveryCapacityOfSmallProblems) {
  Random random(1);
  int above_load = 0;
  for (int i = 0; i < 3000; ++i) {
    const Problem problem = tight_problem(random, 9, 6 + random.below(5), 2 + random.below(5));
    const int64_t least = BruteForce(problem).least();
    above_load += least > load_bytes(problem);
    const Model model = make_model(problem);
    ASSERT_TRUE(model.plain);
    const Limits limits;
    SearchLimit limit(limits);
    CornerSearch search(model.items, model.sections);
    const int64_t capacity = least / model.unit_bytes;
    ASSERT_EQ(search.run(capacity, 100'000, limit), CornerSearch::Outcome::found) << i;
    ASSERT_EQ(search.run(capacity - 1, 100'000, limit), CornerSearch::Outcome::impossible) << i;
  }
  EXPECT_GT(above_load, 0);
}

}  // namespace
}  // namespace tidemark::plan

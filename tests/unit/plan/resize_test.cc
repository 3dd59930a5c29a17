#include "tidemark/plan/resize.h"

#include <gtest/gtest.h>

#include "tests/unit/plan/problems.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/check.h"

namespace tidemark::plan {
namespace {

std::vector<int64_t> sizes_of(const Problem& problem) {
  std::vector<int64_t> sizes;
  for (const Buffer& buffer : problem.buffers) sizes.push_back(buffer.size_bytes);
  return sizes;
}

TEST(Replace, GivesTheSameOrLessForTheSameSizes) {
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_problem(random, {.buffers = 50, .steps = 30, .largest = 40});
    const Placement placement = place(problem, {.nodes = 200}).placement;
    const Placement again = resized(below_relation(problem, placement), sizes_of(problem));
    EXPECT_FALSE(check_placement(problem, again));
    EXPECT_LE(again.tidemark_bytes, placement.tidemark_bytes);
  }
}

TEST(Replace, IsValidForAnySizes) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    Problem problem = random_problem(
        random, {.buffers = 40, .steps = 30, .largest = 40, .alignments = i % 2 == 0});
    if (i % 3 == 0) problem.aliases = {{0, 1}, {1, 2}, {5, 9}};
    if (i % 4 == 0) problem.buffers[3].size_bytes = 0;
    const Relation relation = below_relation(problem, place(problem, {.nodes = 200}).placement);
    for (Buffer& buffer : problem.buffers) buffer.size_bytes = random.below(100);
    const Placement moved = resized(relation, sizes_of(problem));
    const std::optional<Fault> fault = check_placement(problem, moved);
    ASSERT_FALSE(fault) << fault->text();
  }
}

TEST(Replace, GrowsInStepWhenAllSizesDo) {
  Random random(3);
  const Problem problem = random_problem(random, {.buffers = 50, .steps = 30, .largest = 40});
  const Placement placement = place(problem).placement;
  std::vector<int64_t> sizes = sizes_of(problem);
  for (int64_t& size : sizes) size *= 3;
  EXPECT_LE(resized(below_relation(problem, placement), sizes).tidemark_bytes,
            3 * placement.tidemark_bytes);
}

// Few links: the pass is linear in the number of buffers however many are alive together.
TEST(Replace, KeepsOnlyDirectNeighbours) {
  Problem problem;
  for (int64_t i = 0; i < 1000; ++i) {
    problem.buffers.push_back({.lifetime = {0, 10}, .size_bytes = 64});
  }
  const Relation relation = below_relation(problem, place(problem).placement);
  EXPECT_EQ(relation.below.size(), 999U);
}

TEST(Replace, RefusesFixedOffsets) {
  const Problem problem{.buffers = {{.lifetime = {0, 1}, .size_bytes = 1, .fixed_offset = 0}}};
  EXPECT_THROW(below_relation(problem, {{0}, 1}), UserError);
}

}  // namespace
}  // namespace tidemark::plan

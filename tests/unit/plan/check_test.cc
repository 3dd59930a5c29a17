#include "tidemark/plan/check.h"

#include <gtest/gtest.h>

#include "tests/unit/plan/problems.h"

namespace tidemark::plan {
namespace {

// a and b side by side in time, c above both.
//
//   8 +--------+--------+
//     |        c        |
//   4 +--------+--------+
//     |   a    |   b    |
//   0 +--------+--------+
const Problem kProblem{.buffers = {{.lifetime = {0, 3}, .size_bytes = 4, .alignment = 4},
                                   {.lifetime = {3, 6}, .size_bytes = 4, .alignment = 4},
                                   {.lifetime = {0, 6}, .size_bytes = 4, .alignment = 4}}};

std::string fault_of(const Problem& problem, const Placement& placement) {
  const std::optional<Fault> fault = check_placement(problem, placement);
  return fault ? fault->text() : "none";
}

TEST(CheckPlacement, AcceptsAValidOne) {
  EXPECT_EQ(fault_of(kProblem, {{0, 0, 4}, 8}), "none");
  EXPECT_EQ(fault_of({}, {}), "none");
}

TEST(CheckPlacement, NamesEachFault) {
  EXPECT_EQ(fault_of(kProblem, {{0, 0}, 8}), "there is not one offset for each buffer");
  EXPECT_EQ(fault_of(kProblem, {{-4, 0, 4}, 8}),
            "buffer 0 lies outside the bytes that can be addressed");
  EXPECT_EQ(fault_of(kProblem, {{0, 0, 6}, 10}), "buffer 2 is not aligned");
  EXPECT_EQ(fault_of(kProblem, {{0, 4, 4}, 8}), "buffers 1 and 2 share a byte while both live");
  EXPECT_EQ(fault_of(kProblem, {{0, 0, 0}, 4}), "buffers 0 and 2 share a byte while both live");
  EXPECT_EQ(fault_of(kProblem, {{0, 0, 4}, 12}),
            "the tidemark is not the highest byte in use plus one");
  Problem fixed = kProblem;
  fixed.buffers[1].fixed_offset = 8;
  EXPECT_EQ(fault_of(fixed, {{0, 0, 4}, 8}), "buffer 1 is not at its fixed offset");
}

TEST(CheckPlacement, LetsOnlyAliasesShare) {
  Problem problem = kProblem;
  problem.aliases = {{0, 2}};
  EXPECT_EQ(fault_of(problem, {{0, 4, 0}, 8}), "none");
  EXPECT_EQ(fault_of(problem, {{0, 0, 0}, 4}), "buffers 1 and 2 share a byte while both live");
}

TEST(CheckPlacement, DoesNotMindEmptyBuffers) {
  Problem problem = kProblem;
  problem.buffers.push_back({.lifetime = {0, 6}, .size_bytes = 0, .alignment = 1});
  EXPECT_EQ(fault_of(problem, {{0, 0, 4, 2}, 8}), "none");
}

// Moves one buffer of a valid placement onto another that is alive with it: always found.
TEST(CheckPlacement, FindsEveryInjectedOverlap) {
  Random random(1);
  int injected = 0;
  for (int i = 0; i < 500; ++i) {
    const Problem problem = random_problem(random, {.buffers = 30, .steps = 20, .largest = 20});
    Placement placement = place(problem, {.nodes = 100}).placement;
    const auto a = random.below(30), b = random.below(30);
    const Buffer &x = problem.buffers[a], &y = problem.buffers[b];
    if (a == b || x.lifetime.end <= y.lifetime.begin || y.lifetime.end <= x.lifetime.begin)
      continue;
    placement.offsets[a] = placement.offsets[b] + random.below(y.size_bytes);
    ++injected;
    const std::optional<Fault> fault = check_placement(problem, placement);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, Fault::overlap);
  }
  EXPECT_GT(injected, 100);
}

}  // namespace
}  // namespace tidemark::plan

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/unit/plan/problems.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/check.h"
#include "tidemark/plan/plan.h"

namespace tidemark::plan {
namespace {

// Places and proves it valid; every test goes through here.
Result placed(const Problem& problem, const Limits& limits = {}) {
  Result result = place(problem, limits);
  const std::optional<Fault> fault = check_placement(problem, result.placement);
  EXPECT_FALSE(fault) << fault->text();
  EXPECT_GE(result.placement.tidemark_bytes, result.bound_bytes);
  EXPECT_GE(result.bound_bytes, result.load_bytes);
  if (result.proof != Proof::none) {
    EXPECT_EQ(result.placement.tidemark_bytes, result.bound_bytes);
  }
  return result;
}

TEST(Place, AnswersAnEmptyProblem) {
  const Result result = placed({});
  EXPECT_EQ(result.placement.tidemark_bytes, 0);
  EXPECT_EQ(result.proof, Proof::load);
}

// Three buffers, time to the right, offset upward; c takes a's place.
//
//   8 +--------+--------+
//     |   a    |   c    |
//   4 +--------+--------+
//     |        b        |
//   0 +--------+--------+
//     0        3        6
TEST(Place, ReusesThePlaceOfWhatIsGone) {
  const Problem problem{.buffers = {{.lifetime = {0, 3}, .size_bytes = 4, .alignment = 1},
                                    {.lifetime = {0, 6}, .size_bytes = 4, .alignment = 1},
                                    {.lifetime = {3, 6}, .size_bytes = 4, .alignment = 1}}};
  const Result result = placed(problem);
  EXPECT_EQ(result.placement.tidemark_bytes, 8);
  EXPECT_EQ(result.load_bytes, 8);
  EXPECT_EQ(result.proof, Proof::load);
}

TEST(Place, KeepsBuffersOfZeroBytes) {
  const Problem problem{
      .buffers = {{.lifetime = {0, 3}, .size_bytes = 0}, {.lifetime = {0, 6}, .size_bytes = 128}}};
  EXPECT_EQ(placed(problem).placement.tidemark_bytes, 128);
}

TEST(Place, EqualsBruteForceOnTenThousandSmallProblems) {
  Random random(1);
  int by_search = 0;
  for (int i = 0; i < 10'000; ++i) {
    const RandomShape shape{.buffers = 1 + random.below(9),
                            .steps = 2 + random.below(8),
                            .longest = 2 + random.below(9),
                            .largest = 1 + random.below(12)};
    const Problem problem = i % 2 == 0 ? random_problem(random, shape)
                                       : tight_problem(random, 9, 7 + random.below(4), 4);
    const Result result = placed(problem);
    ASSERT_EQ(result.placement.tidemark_bytes, BruteForce(problem).least()) << "problem " << i;
    ASSERT_NE(result.proof, Proof::none) << "problem " << i;
    by_search += result.proof == Proof::search;
  }
  // Some cannot reach their load, and search proves it.
  EXPECT_GT(by_search, 0);
}

TEST(Place, EqualsBruteForceWithAlignments) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const RandomShape shape{.buffers = 1 + random.below(6), .largest = 12, .alignments = true};
    Problem problem = random_problem(random, shape);
    if (i % 2 == 0) {
      for (Buffer& buffer : problem.buffers) buffer.alignment = 4;
    }
    const Result result = placed(problem);
    ASSERT_EQ(result.placement.tidemark_bytes, BruteForce(problem).least()) << "problem " << i;
  }
}

TEST(Place, EqualsBruteForceWithFixedOffsetsAndAliases) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    Problem problem =
        random_problem(random, {.buffers = 6, .largest = 6, .alignments = i % 3 == 0});
    if (i % 2 == 0) problem.buffers[0].fixed_offset = 8 * random.below(3);
    if (i % 5 != 0) {
      problem.aliases.push_back(
          {static_cast<int32_t>(random.below(3)), static_cast<int32_t>(3 + random.below(3))});
    }
    const Result result = placed(problem);
    ASSERT_EQ(result.placement.tidemark_bytes, BruteForce(problem).least()) << "problem " << i;
  }
}

TEST(Place, RefusesWhatCannotBe) {
  auto message = [](const Problem& problem) -> std::string {
    try {
      place(problem);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.buffers = {{.lifetime = {3, 3}, .size_bytes = 1}}}),
            "place: buffer 0 lives over [3, 3), which is empty");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 1}, .size_bytes = -1}}}),
            "place: buffer 0 has a negative size, -1");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 1}, .size_bytes = 1, .alignment = 0}}}),
            "place: buffer 0 has an alignment of 0");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 1}, .size_bytes = int64_t{1} << 61}}}),
            "place: buffer 0 brings the sum of all sizes past what 64 bits hold");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 1}, .size_bytes = 8, .fixed_offset = 32}}}),
            "place: buffer 0 is fixed at offset 32, which is not a multiple of its alignment 64");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 2}, .size_bytes = 65, .fixed_offset = 0},
                                 {.lifetime = {1, 3}, .size_bytes = 1, .fixed_offset = 64}}}),
            "place: buffers 0 and 1 are fixed at offsets 0 and 64, where they overlap while both "
            "are alive");
  EXPECT_EQ(message({.buffers = {{.lifetime = {0, 1}}}, .aliases = {{0, 1}}}),
            "place: an alias names buffers 0 and 1, but there are 1");
}

// ---- What must not change the answer ----------------------------------------------------------

constexpr RandomShape kMedium{.buffers = 60, .steps = 40, .largest = 30};

TEST(Place, PermutingTheBuffersKeepsAProvenTidemark) {
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    Problem problem = random_problem(random, {.buffers = 9});
    const Result before = placed(problem);
    for (size_t k = problem.buffers.size(); k > 1; --k) {
      std::swap(problem.buffers[k - 1], problem.buffers[random.below(static_cast<int64_t>(k))]);
    }
    const Result after = placed(problem);
    EXPECT_EQ(before.placement.tidemark_bytes, after.placement.tidemark_bytes);
    EXPECT_EQ(before.load_bytes, after.load_bytes);
  }
}

TEST(Place, ShiftingTimeChangesNothing) {
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    Problem problem = random_problem(random, kMedium);
    const Result before = placed(problem, {.nodes = 5000});
    for (Buffer& buffer : problem.buffers) {
      buffer.lifetime.begin -= 1'000'000'000'000;
      buffer.lifetime.end -= 1'000'000'000'000;
    }
    const Result after = placed(problem, {.nodes = 5000});
    EXPECT_EQ(before.placement.offsets, after.placement.offsets);
    EXPECT_EQ(before.nodes, after.nodes);
  }
}

TEST(Place, ScalingSizesScalesOffsets) {
  Random random(6);
  for (int i = 0; i < 20; ++i) {
    Problem problem = random_problem(random, kMedium);
    const Result before = placed(problem, {.nodes = 5000});
    for (Buffer& buffer : problem.buffers) buffer.size_bytes *= 1024;
    const Result after = placed(problem, {.nodes = 5000});
    EXPECT_EQ(before.placement.tidemark_bytes * 1024, after.placement.tidemark_bytes);
    EXPECT_EQ(before.load_bytes * 1024, after.load_bytes);
    EXPECT_EQ(before.proof, after.proof);
  }
}

TEST(Place, GivesTheSameAnswerForTheSameNodes) {
  Random random(8);
  for (int64_t nodes : {1, 100, 3000}) {
    const Problem problem = random_problem(random, {.buffers = 300, .steps = 200, .largest = 99});
    const Result first = placed(problem, {.nodes = nodes});
    const Result second = placed(problem, {.nodes = nodes});
    EXPECT_EQ(first.placement.offsets, second.placement.offsets);
    EXPECT_EQ(first.nodes, second.nodes);
    EXPECT_EQ(first.bound_bytes, second.bound_bytes);
  }
}

TEST(Place, MoreNodesNeverGiveAWorseAnswer) {
  Random random(9);
  const Problem problem = random_problem(random, {.buffers = 200, .steps = 100, .largest = 99});
  int64_t last = std::numeric_limits<int64_t>::max();
  for (int64_t nodes : {1, 50, 500, 5000, 50'000}) {
    const int64_t tidemark = placed(problem, {.nodes = nodes}).placement.tidemark_bytes;
    EXPECT_LE(tidemark, last);
    last = tidemark;
  }
}

TEST(Place, StopsAtTheCapacity) {
  Random random(10);
  const Problem problem = random_problem(random, kMedium);
  const Result roomy = placed(problem, {.capacity_bytes = 1'000'000});
  EXPECT_LE(roomy.placement.tidemark_bytes, 1'000'000);
  EXPECT_LT(roomy.nodes, 100);
}

TEST(Place, StopsWhenAsked) {
  Random random(11);
  const Problem problem = random_problem(random, {.buffers = 400, .steps = 300, .largest = 999});
  std::stop_source source;
  source.request_stop();
  const Result result = placed(problem, {.nodes = int64_t{1} << 60, .stop = source.get_token()});
  EXPECT_EQ(result.placement.offsets.size(), 400U);
}

// Nothing ends this search but the other thread.
TEST(Place, StopsWhenAnotherThreadAsks) {
  Random random(12);
  const Problem problem = random_problem(random, {.buffers = 400, .steps = 300, .largest = 999});
  std::stop_source source;
  std::atomic<bool> running = false;
  Limits limits{.nodes = int64_t{1} << 60, .stop = source.get_token()};
  limits.progress = [&](int64_t) { running = true; };
  std::thread other([&] {
    while (!running) std::this_thread::yield();
    source.request_stop();
  });
  placed(problem, limits);
  other.join();
}

// Steps, not seconds: four times the buffers may take little more than four times the steps.
TEST(Place, GrowsNearlyLinearly) {
  auto steps_of = [](int64_t buffers) {
    Problem problem;
    Random random(13);
    for (int64_t i = 0; i < buffers; ++i) {
      problem.buffers.push_back(
          {.lifetime = {i, i + 2 + random.below(20)}, .size_bytes = 64 * (1 + random.below(1000))});
    }
    const int64_t load = load_bytes(problem);
    const Result result = placed(problem, {.nodes = buffers, .capacity_bytes = load + load / 4});
    EXPECT_LE(result.placement.tidemark_bytes, load + load / 4);
    return result.nodes;
  };
  EXPECT_LE(steps_of(100'000), 8 * steps_of(25'000));
}

}  // namespace
}  // namespace tidemark::plan

// A loop walked back by its schedule alone: states are numbers, so that every move can be checked.
#include "tidemark/run/treeverse.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tidemark::run {
namespace {

struct Walked {
  int64_t advances = 0;  // Those of the loop itself among them, all but its last trip.
  int64_t went_back = 0;
  bool is_right = true;
};

// Runs a loop that keeps states, then walks it back.
Walked walk(int64_t trips, int64_t slots, bool is_known, int64_t every = 0) {
  std::vector<int64_t> words(static_cast<size_t>(2 * slots), -7);
  std::vector<int64_t> rows(static_cast<size_t>(slots), -7);
  Walked walked;
  const auto row = [&](int64_t number) -> int64_t& {
    walked.is_right &= number >= 0 && number < slots;
    return rows[static_cast<size_t>(number)];
  };
  Marks marks(words.data(), slots);
  Keeper keeper(marks, is_known ? trips : -1, every);
  for (int64_t trip = 0; trip < trips; ++trip) {
    if (const auto kept = keeper.at_start_of(trip)) {
      walked.is_right &= kept->row > 0 && (kept->trip == trip || kept->trip == trip - 1);
      row(kept->row) = kept->trip;
    }
    row(0) = trip;
  }
  marks.set_trips(trips);
  walked.advances = std::max<int64_t>(0, trips - 1);
  int64_t left = trips;
  Reversal reversal(marks);
  while (const auto move = reversal.next()) {
    const int64_t from = move->from_row == Marks::kStart ? 0 : row(move->from_row);
    walked.is_right &= from == move->from && move->to >= move->from;
    walked.advances += move->to - move->from;
    if (move->to_row != ReverseMove::kNoRow) row(move->to_row) = move->to;
    if (!move->goes_back) continue;
    walked.is_right &= move->to == --left;
    ++walked.went_back;
  }
  walked.is_right &= left == 0;
  return walked;
}

// By trying every cut: the first part is walked back last, with all slots again.
int64_t least(int64_t trips, int64_t slots, std::map<std::pair<int64_t, int64_t>, int64_t>& known) {
  if (trips <= 1) return 0;
  if (slots == 1) return trips * (trips - 1) / 2;
  const auto found = known.find({trips, slots});
  if (found != known.end()) return found->second;
  int64_t best = INT64_MAX;
  for (int64_t cut = 1; cut < trips; ++cut)
    best = std::min(best, cut + least(trips - cut, slots - 1, known) + least(cut, slots, known));
  return known[{trips, slots}] = best;
}

TEST(Treeverse, ClosedFormIsTheLeastOfAllSchedules) {
  std::map<std::pair<int64_t, int64_t>, int64_t> known;
  for (int64_t trips = 0; trips < 60; ++trips)
    for (int64_t slots = 1; slots < 8; ++slots)
      ASSERT_EQ(fewest_advances(trips, slots), least(trips, slots, known)) << trips << ' ' << slots;
}

TEST(Treeverse, WalksBackWithTheFewestAdvances) {
  const int64_t cases[][3] = {
      {100, 5, 316},      {100, 10, 222},       {1'000, 10, 3'636},    {1'000, 20, 2'747},
      {1'000, 44, 1'954}, {10'000, 20, 37'976}, {10'000, 100, 24'747}, {1'000'000, 20, 6'815'960}};
  for (const auto& [trips, slots, advances] : cases) {
    EXPECT_EQ(fewest_advances(trips, slots), advances);
    const Walked walked = walk(trips, slots, true);
    EXPECT_TRUE(walked.is_right);
    EXPECT_EQ(walked.went_back, trips);
    EXPECT_EQ(walked.advances, advances) << trips << " trips, " << slots << " slots";
  }
}

TEST(Treeverse, IsOptimalForAllSmallLoops) {
  for (int64_t trips = 0; trips < 120; ++trips) {
    for (int64_t slots = 1; slots < 12; ++slots) {
      const Walked walked = walk(trips, slots, true);
      ASSERT_TRUE(walked.is_right) << trips << ' ' << slots;
      ASSERT_EQ(walked.advances, fewest_advances(trips, slots)) << trips << ' ' << slots;
    }
  }
}

TEST(Treeverse, OnlineIsOptimalWhileEachTripIsRunTwice) {
  for (int64_t slots = 1; slots < 40; ++slots) {
    for (int64_t trips = 0; trips <= (slots + 1) * (slots + 2) / 2; ++trips) {
      const Walked walked = walk(trips, slots, false);
      ASSERT_TRUE(walked.is_right) << trips << ' ' << slots;
      ASSERT_EQ(walked.advances, fewest_advances(trips, slots)) << trips << ' ' << slots;
    }
  }
}

TEST(Treeverse, OnlineStaysNearTheOptimumBehindThat) {
  for (const int64_t slots : {2, 3, 5, 10, 32}) {
    for (const int64_t trips : {100, 1'000, 10'000}) {
      if (slots < 5 && trips > 1'000) continue;
      const Walked walked = walk(trips, slots, false);
      ASSERT_TRUE(walked.is_right) << trips << ' ' << slots;
      EXPECT_LE(walked.advances, 2 * fewest_advances(trips, slots)) << trips << ' ' << slots;
    }
  }
}

TEST(Treeverse, WhatIsRepeatedOnlineIsKnownBeforeTheLoopRuns) {
  for (int64_t slots = 1; slots < 9; ++slots) {
    for (int64_t trips = 0; trips < 150; ++trips) {
      const int64_t again = walk(trips, slots, false).advances - std::max<int64_t>(0, trips - 1);
      ASSERT_EQ(repeated_trips_online(trips, slots), again) << trips << ' ' << slots;
    }
  }
  EXPECT_EQ(repeated_trips_online(-1, 4), 0);  // No bound is known.
}

TEST(Treeverse, EverySoManyTripsRunsEachTripOnceMore) {
  for (const int64_t every : {1, 3, 10, 33}) {
    for (const int64_t trips : {0, 1, 2, 9, 10, 11, 100, 1'000}) {
      const int64_t kept = std::max<int64_t>(1, (trips + every - 1) / every);
      const Walked walked = walk(trips, kept + every - 1, true, every);
      EXPECT_TRUE(walked.is_right) << trips << ' ' << every;
      EXPECT_EQ(walked.advances, advances_every(trips, every)) << trips << ' ' << every;
      EXPECT_LE(walked.advances, 2 * trips) << trips << ' ' << every;
    }
  }
}

}  // namespace
}  // namespace tidemark::run

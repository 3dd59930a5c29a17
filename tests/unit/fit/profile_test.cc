// Bytes in use by slot, compared with sums over all slots.
#include "tidemark/fit/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tidemark::fit {
namespace {

constexpr int32_t kSlots = 37;  // Not a power of two.

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : random_(seed) {}
  int32_t below(int32_t end) {
    return static_cast<int32_t>(random_() % static_cast<uint64_t>(end));
  }
  RangeChange change() {
    const int32_t begin = below(kSlots), end = begin + 1 + below(kSlots - begin);
    return {begin, end, below(41) - 20};
  }

 private:
  std::mt19937_64 random_;
};

int64_t relief_by_sum(const std::vector<int64_t>& bytes, const RangeChange& change, int64_t limit) {
  int64_t relief = 0;
  for (int32_t slot = change.begin; slot < change.end; ++slot) {
    const int64_t before = bytes[static_cast<size_t>(slot)];
    relief += std::max(before, limit) - std::max(before + change.bytes, limit);
  }
  return relief;
}

TEST(Profile, AnswersAsSumsOverAllSlotsDo) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Numbers random(seed);
    Profile profile(kSlots);
    std::vector<int64_t> bytes(kSlots);
    for (int i = 0; i < 8; ++i) {
      const RangeChange changes[] = {random.change(), random.change()};
      profile.apply(changes);
      for (const RangeChange& each : changes)
        for (int32_t slot = each.begin; slot < each.end; ++slot)
          bytes[static_cast<size_t>(slot)] += each.bytes;
      ASSERT_EQ(profile.bytes(), bytes);
      EXPECT_EQ(profile.most(), *std::max_element(bytes.begin(), bytes.end()));
      const RangeChange asked = random.change();
      EXPECT_EQ(profile.most(asked.begin, asked.end),
                *std::max_element(bytes.begin() + asked.begin, bytes.begin() + asked.end));
      const int64_t limit = random.below(60) - 30;
      EXPECT_EQ(profile.relief(asked, limit), relief_by_sum(bytes, asked, limit)) << seed;
    }
  }
}

TEST(Profile, OfNoSlotsIsEmpty) { EXPECT_EQ(Profile(0).most(), 0); }

TEST(RangeChanges, AreTakenApartIntoPartsThatDoNotOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Numbers random(seed);
    const std::vector<RangeChange> changes = {random.change(), random.change(), random.change()};
    std::vector<RangeChange> parts;
    take_apart(changes, parts);
    Profile whole(kSlots), apart(kSlots);
    whole.apply(changes);
    apart.apply(parts);
    EXPECT_EQ(whole.bytes(), apart.bytes());
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_NE(parts[i].bytes, 0);
      EXPECT_LT(parts[i].begin, parts[i].end);
      if (i > 0) {
        EXPECT_GE(parts[i].begin, parts[i - 1].end);
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::fit

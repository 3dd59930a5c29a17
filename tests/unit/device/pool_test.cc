#include "tidemark/device/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <thread>
#include <vector>

#include "held.h"
#include "tidemark/device/ledger.h"
#include "tidemark/device/mapping.h"

namespace tidemark::device {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(Pool, CachesWhatIsGivenBackAndReleasesIt) {
  release_cached();
  ASSERT_EQ(cached(), 0);
  make(3 * kMiB).reset();
  EXPECT_EQ(cached(), 3 * kMiB);
  EXPECT_EQ(release_cached(), 3 * kMiB);
  EXPECT_EQ(cached(), 0);
  EXPECT_EQ(release_cached(), 0);
}

TEST(Pool, ReleasesEverythingItCachedWhateverWasTheSize) {
  release_cached();
  const Held stays = make(500);
  for (const int64_t bytes : {100, 1000, 5000, 8192, 8193, 50'000, 3'000'000}) make(bytes).reset();
  const int64_t before = cached();
  EXPECT_GT(before, 0);
  EXPECT_EQ(release_cached(), before);
  EXPECT_EQ(cached(), 0);
}

TEST(Pool, ReusesTheSameBytes) {
  release_cached();
  Held first = make(5 * kMiB);
  std::byte* const where = first.data();
  first.reset();
  const Held second = make(5 * kMiB);
  EXPECT_EQ(second.data(), where);
  EXPECT_EQ(cached(), 0);
}

TEST(Pool, SplitsALargeFreeBlockAndKeepsTheRest) {
  release_cached();
  Held large = make(8 * kMiB);
  std::byte* const where = large.data();
  large.reset();
  const Held part = make(kMiB + 64);
  EXPECT_EQ(part.data(), where);
  EXPECT_EQ(cached(), 7 * kMiB - kPageBytes);
  const Held rest = make(7 * kMiB - kPageBytes);
  EXPECT_EQ(rest.data(), where + kMiB + kPageBytes);
  EXPECT_EQ(cached(), 0);
}

TEST(Pool, MergesNeighboursAgain) {
  release_cached();
  Held large = make(8 * kMiB);
  std::byte* const where = large.data();
  large.reset();
  std::vector<Held> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(make(2 * kMiB));
  EXPECT_EQ(cached(), 0);
  // From the middle outward, so that merging goes both ways.
  for (const size_t i : {1U, 3U, 2U, 0U}) parts[i].reset();
  EXPECT_EQ(cached(), 8 * kMiB);
  const Held again = make(8 * kMiB);
  EXPECT_EQ(again.data(), where);
}

TEST(Pool, TakesTheBestFit) {
  release_cached();
  Held wide = make(8 * kMiB);
  Held close = make(3 * kMiB);
  std::byte* const where = close.data();
  wide.reset();
  close.reset();
  const Held held = make(2 * kMiB + 100);
  EXPECT_EQ(held.data(), where);
}

TEST(Pool, CacheNeverLiftsWhatIsHeldFarAboveTheMostInUse) {
  release_cached();
  const int64_t start = highest_in_use();
  // Each is too large for what the last left.
  for (int64_t size = 8 * kMiB; size < 64 * kMiB; size += 2 * kMiB) make(size).reset();
  EXPECT_LE(in_use() + cached(), std::max(start, in_use() + 64 * kMiB) + 4 * kMiB);
}

TEST(Pool, ResidentBytesAreTheGrantedOnesRoundedToAPage) {
  release_cached();
  const auto resident = [] { return resident_pages().ours[static_cast<int>(MappingOwner::pool)]; };
  // A huge page across the end of a block would hold 2 MiB more for each.
  make(4 * kMiB).reset();
  release_cached();
  const int64_t before = resident();
  std::vector<Held> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(make(2 * kMiB + 64));
    std::memset(blocks.back().data(), 1, 2 * kMiB + 64);
  }
  EXPECT_EQ(resident() - before, 10 * (2 * kMiB + kPageBytes));
}

TEST(Pool, PeakIsTheMostInUseAndStartsAgainWhenReset) {
  const Held stays = make(kMiB);
  reset_peak();
  EXPECT_EQ(peak(), in_use());
  const int64_t before = in_use();
  {
    const Held a = make(2 * kMiB);
    const Held b = make(3 * kMiB);
  }
  make(4 * kMiB).reset();
  EXPECT_EQ(peak() - before, 5 * kMiB);
  reset_peak();
  EXPECT_EQ(peak(), before);
}

TEST(Limit, AllowsExactlyItsBytes) {
  const LimitGuard limit(in_use() + 3 * kMiB + 64);
  const Held a = make(kMiB);
  const Held b = make(2 * kMiB);
  const Held c = make(64);
  EXPECT_THROW(make(1), OutOfMemory);
  EXPECT_THROW(make(kMiB), OutOfMemory);
  EXPECT_THROW(make(100), OutOfMemory);
}

TEST(Limit, CountsTheCacheAndGivesItBackBeforeRefusing) {
  const LimitGuard limit(in_use() + 4 * kMiB);
  make(4 * kMiB).reset();
  EXPECT_EQ(cached(), 4 * kMiB);
  // Smaller than what is cached, yet together too much: the cache is split and counts once.
  const Held part = make(3 * kMiB);
  EXPECT_LE(in_use() + cached(), limit_bytes());
  const Held tiny = make(64);
  EXPECT_LE(in_use() + cached(), limit_bytes());
  const Held medium = make(100'000);
  EXPECT_LE(in_use() + cached(), limit_bytes());
  EXPECT_THROW(make(kMiB), OutOfMemory);
}

TEST(Limit, HoldsAtEveryStepOfARandomProgram) {
  const LimitGuard limit(in_use() + 2 * kMiB);
  std::vector<Held> all;
  uint32_t state = 7;
  int refused = 0;
  for (int step = 0; step < 5000; ++step) {
    state = state * 1664525U + 1013904223U;
    const int64_t bytes = (state >> 8) % (step % 3 == 0 ? kMiB : 30'000);
    const int64_t before = in_use();
    try {
      all.push_back(make(bytes));
    } catch (const OutOfMemory&) {
      // Refused only when it truly does not fit.
      ++refused;
      ASSERT_GT(before + granted_bytes(bytes), limit_bytes());
      ASSERT_EQ(in_use(), before);
    }
    ASSERT_LE(in_use() + cached(), limit_bytes());
    if (all.size() > 12) all.erase(all.begin() + static_cast<int64_t>((state >> 9) % all.size()));
    ASSERT_LE(in_use() + cached(), limit_bytes());
  }
  EXPECT_GT(refused, 0);
}

TEST(Limit, LoweringItGivesTheCacheBack) {
  const LimitGuard limit(in_use() + 64 * kMiB);
  make(32 * kMiB).reset();
  set_limit_bytes(in_use() + kMiB);
  EXPECT_LE(in_use() + cached(), limit_bytes());
}

TEST(Limit, RefusesExactlyOneOfManyThreads) {
  constexpr int kThreads = 5;
  for (const int64_t bytes : {int64_t{64}, int64_t{1024}, int64_t{100'032}, kMiB + 64}) {
    for (int round = 0; round < 20; ++round) {
      const LimitGuard limit(in_use() + kThreads * bytes - 1);
      const int64_t before = in_use();
      reset_peak();
      std::atomic<int> refused{0};
      std::barrier all_asked(kThreads);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          Held held;
          all_asked.arrive_and_wait();
          try {
            held = make(bytes);
          } catch (const OutOfMemory&) {
            ++refused;
          }
          all_asked.arrive_and_wait();
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_EQ(refused, 1) << bytes;
      ASSERT_EQ(peak() - before, (kThreads - 1) * bytes);
      ASSERT_EQ(in_use(), before);
    }
  }
}

// Counts what goes through it.
class CountingResource : public std::pmr::memory_resource {
 public:
  int64_t live = 0, blocks = 0;
  bool refuse = false;
  int64_t most_blocks = std::numeric_limits<int64_t>::max();

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (refuse || blocks >= most_blocks) throw std::bad_alloc();
    live += static_cast<int64_t>(bytes);
    ++blocks;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* data, size_t bytes, size_t alignment) override {
    live -= static_cast<int64_t>(bytes);
    --blocks;
    std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(Resource, IsTheSourceOfAllBlocks) {
  CountingResource source;
  const Held ours = make(kMiB);
  ASSERT_EQ(set_resource(&source), nullptr);
  const int64_t before = in_use();
  Held a = make(1000);
  Held b = make(3 * kMiB);
  EXPECT_EQ(source.live, 1024 + 3 * kMiB);
  EXPECT_EQ(in_use() - before, 1024 + 3 * kMiB);
  EXPECT_EQ(foreign_bytes(), 1024 + 3 * kMiB);
  EXPECT_EQ(set_resource(nullptr), &source);
  const Held later = make(1000);
  // Blocks go back to where they came from.
  a.reset();
  b.reset();
  EXPECT_EQ(source.blocks, 0);
  EXPECT_EQ(foreign_bytes(), 0);
  EXPECT_EQ(in_use() - before, 1024);
}

TEST(Resource, MayRefuse) {
  CountingResource source;
  source.refuse = true;
  set_resource(&source);
  const int64_t before = in_use();
  try {
    make(1000, Source::here("r.cc", 1, "f"));
    ADD_FAILURE();
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("u8[1000] needs 1.0 KiB, which the system refused; "),
              std::string::npos)
        << error.what();
  }
  set_resource(nullptr);
  EXPECT_EQ(in_use(), before);
}

TEST(Resource, GivesAllThatACallNeedsOrNothing) {
  CountingResource source;
  set_resource(&source);
  const int64_t before = in_use();
  {
    const std::vector<Held> all = make_all({10, 1000, 2 * kMiB});
    EXPECT_EQ(source.blocks, 2);
    EXPECT_EQ(in_use() - before, 64 + 1024 + 2 * kMiB);
    EXPECT_EQ(foreign_bytes(), 1024 + 2 * kMiB);
  }
  source.most_blocks = 1;
  EXPECT_THROW(make_all({1000, 10, 2 * kMiB}), OutOfMemory);
  EXPECT_EQ(source.blocks, 0);
  EXPECT_EQ(foreign_bytes(), 0);
  set_resource(nullptr);
  EXPECT_EQ(in_use(), before);
}

}  // namespace
}  // namespace tidemark::device

#include "tidemark/device/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "held.h"
#include "tidemark/device/sanitizer.h"

namespace tidemark::device {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

LineSums sums_at(const char* file, unsigned line) {
  for (const LineReport& report : lines_now()) {
    if (report.at.line == line && std::strcmp(report.at.file, file) == 0) return report.sums;
  }
  return {};
}

TEST(Storage, CountsGrantedBytesToTheByte) {
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{64}, int64_t{65}, int64_t{1000}, int64_t{8192},
        int64_t{8193}, int64_t{100'000}, kMiB, kMiB + 1, 5 * kMiB + 4097}) {
    const int64_t before = in_use();
    {
      const Held held = make(bytes);
      EXPECT_EQ(in_use() - before, granted_bytes(bytes)) << bytes;
      EXPECT_EQ(held->storage.bytes, granted_bytes(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(held.data()) % 64, 0U);
      std::memset(held.data(), 0xA5, static_cast<size_t>(granted_bytes(bytes)));
    }
    EXPECT_EQ(in_use(), before) << bytes;
  }
}

TEST(Storage, KeepsSmallDataInTheCell) {
  const Held small = make(64);
  const Held large = make(65);
  EXPECT_EQ(small.data(), small->small);
  EXPECT_NE(large.data(), large->small);
}

TEST(Storage, GivesBackWithTheLastReference) {
  const int64_t before = in_use();
  Held held = make(1000);
  retain(held->storage);
  EXPECT_FALSE(is_unshared(held->storage));
  release(held->storage);
  EXPECT_TRUE(is_unshared(held->storage));
  EXPECT_EQ(in_use() - before, 1024);
  held.reset();
  EXPECT_EQ(in_use(), before);
}

TEST(Storage, NeverSharesBytesBetweenLiveStorages) {
  std::vector<Held> all;
  uint32_t state = 1;
  for (int step = 0; step < 4000; ++step) {
    state = state * 1664525U + 1013904223U;
    const uint32_t choice = state >> 8;
    if (all.size() > 60) {
      const size_t at = choice % all.size();
      const Held dead = std::move(all[at]);
      all[at] = std::move(all.back());
      all.pop_back();
      const auto mark = static_cast<unsigned char>(dead->storage.bytes / 64);
      for (int64_t i = 0; i < dead->storage.bytes; i += 997) {
        ASSERT_EQ(static_cast<unsigned char>(dead.data()[i]), mark);
      }
    }
    const int64_t bytes = choice % 5 == 0 ? choice % (3 * kMiB) : choice % 20'000;
    all.push_back(make(bytes));
    const auto mark = static_cast<unsigned char>(all.back()->storage.bytes / 64);
    std::memset(all.back().data(), mark, static_cast<size_t>(all.back()->storage.bytes));
  }
}

TEST(Storage, IsChargedToItsClass) {
  const int64_t before = bytes_of(ByteClass::saved);
  const Held small = make(10, Source::here(), ByteClass::saved);
  const Held large = make(kMiB, Source::here(), ByteClass::saved);
  EXPECT_EQ(bytes_of(ByteClass::saved) - before, 64 + kMiB);
}

TEST(Storage, ClassesAddUpToWhatIsInUse) {
  const Held a = make(10, Source::here(), ByteClass::saved);
  const Held b = make(kMiB, Source::here(), ByteClass::variables);
  int64_t sum = 0;
  for (int i = 0; i < kByteClasses; ++i) sum += bytes_of(static_cast<ByteClass>(i));
  EXPECT_EQ(sum, in_use());
}

TEST(Storage, IsChargedToItsLine) {
  const Source line = Source::here("lines.cc", 11, "f");
  Held a = make(10, line);
  Held b = make(kMiB, line);
  EXPECT_EQ(sums_at("lines.cc", 11).bytes, 64 + kMiB);
  EXPECT_EQ(sums_at("lines.cc", 11).count, 2);
  EXPECT_EQ(source_of(a->storage).text(), "lines.cc:11");
  a.reset();
  EXPECT_EQ(sums_at("lines.cc", 11).bytes, kMiB);
  b.reset();
  EXPECT_TRUE(sums_at("lines.cc", 11).empty());
}

TEST(Storage, KnowsALineByItsTextNotByItsAddress) {
  const std::string one = "same.cc";
  const std::string other = "same.cc";
  const Held a = make(1, Source::here(one.c_str(), 5, "f"));
  const Held b = make(1, Source::here(other.c_str(), 5, "f"));
  EXPECT_EQ(sums_at("same.cc", 5).count, 2);
}

TEST(Storage, ManyLinesThatShareASlotStayExact) {
  std::vector<Held> all;
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned line = 1; line <= 3000; ++line) {
      all.push_back(make(64, Source::here("many.cc", line, "f")));
    }
  }
  for (const unsigned line : {1U, 257U, 1500U, 3000U}) {
    EXPECT_EQ(sums_at("many.cc", line).bytes, 128) << line;
  }
  all.clear();
  for (const unsigned line : {1U, 257U, 1500U, 3000U}) {
    EXPECT_TRUE(sums_at("many.cc", line).empty()) << line;
  }
}

TEST(Storage, IsChargedToTheOutermostLibraryCall) {
  const SourceScope scope(Source::here("user.cc", 3, "main"));
  const Held held = make(100);
  EXPECT_EQ(source_of(held->storage).text(), "user.cc:3");
}

TEST(Storage, MayBeReleasedOnAnyThread) {
  const Source line = Source::here("threads.cc", 1, "f");
  const int64_t before = in_use();
  std::vector<Held> made;
  std::thread([&] {
    for (int i = 0; i < 2000; ++i) made.push_back(make(i % 2 == 0 ? 64 : 300, line));
  }).join();
  EXPECT_EQ(in_use() - before, 1000 * (64 + 320));
  EXPECT_EQ(sums_at("threads.cc", 1).count, 2000);
  // One thread that never allocated, and this one.
  std::thread([&] { made.resize(1000); }).join();
  made.clear();
  EXPECT_EQ(in_use(), before);
  EXPECT_TRUE(sums_at("threads.cc", 1).empty());
}

TEST(Storage, ThreadsAllocateAtOnceAndLeaveNothing) {
  const int64_t before = in_use();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::vector<Held> all;
      for (int i = 0; i < 3000; ++i) {
        all.push_back(make((i * 37 + t) % (i % 50 == 0 ? 100'000 : 3000)));
        if (all.size() > 40) all.erase(all.begin(), all.begin() + 20);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in_use(), before);
  release_cached();
  EXPECT_EQ(cached(), 0);
}

#ifdef TIDEMARK_ASAN
TEST(Storage, BytesGivenBackAreForbiddenToTheAddressSanitizer) {
  for (const int64_t bytes : {int64_t{64}, int64_t{3000}, int64_t{50'000}, 2 * kMiB}) {
    Held held = make(bytes);
    const std::byte* const data = held.data();
    EXPECT_EQ(__asan_region_is_poisoned(held.data(), static_cast<size_t>(bytes)), nullptr);
    held.reset();
    EXPECT_EQ(__asan_address_is_poisoned(data), 1) << bytes;
    EXPECT_EQ(__asan_address_is_poisoned(data + bytes - 1), 1) << bytes;
  }
}
#endif

TEST(AllStorages, AreReservedInOneStepOrNotAtAll) {
  const auto bytes = {int64_t{10}, int64_t{3000}, int64_t{200'000}, 2 * kMiB};
  const int64_t total = 64 + 3008 + 200'000 + 2 * kMiB;
  make_all(bytes);  // Cells and lines.
  const int64_t before = in_use();
  {
    const LimitGuard limit(before + total - 1);
    reset_peak();
    try {
      make_all(bytes);
      FAIL() << "more than the limit";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.asked(), Bytes(total));
      EXPECT_EQ(std::string(error.what()).find("out of memory: a call of a function needs 2.2 MiB"),
                0U);
    }
    EXPECT_EQ(in_use(), before);
    EXPECT_EQ(peak(), before);
  }
  const LimitGuard limit(before + total);
  const std::vector<Held> all = make_all(bytes);
  EXPECT_EQ(in_use(), before + total);
  EXPECT_EQ(peak(), before + total);
  for (const Held& held : all)
    std::memset(held.data(), 0xA5, static_cast<size_t>(held->storage.bytes));
}

// What the last call gave back serves the next, also where the limit has no room for both.
TEST(AllStorages, UseWhatIsCached) {
  const auto bytes = {int64_t{100'000}, int64_t{5000}, 2 * kMiB};
  const LimitGuard limit(in_use() + 3 * kMiB);
  const std::byte* large = nullptr;
  for (int i = 0; i < 3; ++i) {
    const std::vector<Held> all = make_all(bytes);
    EXPECT_TRUE(i == 0 || all[2].data() == large);
    large = all[2].data();
    EXPECT_LT(cached(), kMiB);
  }
  EXPECT_GE(cached(), 2 * kMiB);
}

TEST(View, CountsWhatItShowsAndWhatItPins) {
  const Source line = Source::here("views.cc", 7, "f");
  const Held base = make(kMiB);
  const int64_t before = in_use();
  Held view(allocate_view(base->storage, 4, line));
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(sums_at("views.cc", 7).viewed, 4);
  EXPECT_EQ(sums_at("views.cc", 7).pinned, kMiB);
  EXPECT_EQ(sums_at("views.cc", 7).bytes, 0);
  EXPECT_EQ(view.data(), base.data());
  EXPECT_EQ(source_of(view->storage).text(), "views.cc:7");
  view.reset();
  EXPECT_TRUE(sums_at("views.cc", 7).empty());
}

struct Borrowed {
  int calls = 0;
  int64_t in_use_then = -1;
  static void release(void* context) {
    auto* const self = static_cast<Borrowed*>(context);
    ++self->calls;
    // On no lock: the callback may allocate.
    const Held held = make(3 * kMiB);
    self->in_use_then = in_use();
  }
};

TEST(Borrow, ReleasesOnceWithTheLastReference) {
  Borrowed borrowed;
  alignas(64) std::byte data[256] = {};
  const int64_t before = in_use();
  Cell* const cell =
      borrow(data, 256, false, &Borrowed::release, &borrowed, {.at = Source::here()});
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(cell->storage.data, data);
  EXPECT_FALSE(cell->storage.writable);
  retain(cell->storage);
  release(cell->storage);
  EXPECT_EQ(borrowed.calls, 0);
  release(cell->storage);
  EXPECT_EQ(borrowed.calls, 1);
  EXPECT_EQ(borrowed.in_use_then, before + 3 * kMiB);
}

TEST(Borrow, NeedsNoCallback) {
  std::byte data[8] = {};
  const Held held(borrow(data, 8, true, nullptr, nullptr, {.at = Source::here()}));
  EXPECT_TRUE(held->storage.writable);
}

TEST(OutOfMemory, NamesWhatWasAskedWhoHoldsWhatAndTheRemedy) {
  const LimitGuard limit(in_use() + 64 * kMiB);
  ASSERT_EQ(in_use(), 0) << "the text below shows absolute numbers";
  const int64_t large[] = {4000, 4000};
  const int64_t small[] = {2, 3, 5};
  const Held a(allocate(64'000'000, {DType::f32, large, Source::here("src/train.cc", 12, "f"),
                                     ByteClass::variables}));
  const Held b(allocate(240, {DType::f64, small, Source::here("train.cc", 13, "f")}));
  const int64_t asked[] = {1000, 1000};
  try {
    allocate(4'000'000, {DType::f32, asked, Source::here("src/train.cc", 41, "f")});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(
        error.what(),
        "out of memory: f32[1000, 1000] needs 3.8 MiB, 61.0 MiB of 64.0 MiB are in use, 0 B "
        "cached\n"
        "  at train.cc:41\n"
        "  largest: f32[4000, 4000] 61.0 MiB (train.cc:12, variables); "
        "f64[2, 3, 5] 256 B (train.cc:13, temporaries)\n"
        "  free tensors you no longer need (x = {}), or raise the limit: td::memory::set_limit");
    EXPECT_EQ(error.asked(), Bytes(4'000'000));
    EXPECT_EQ(error.limit(), Bytes(64 * kMiB));
    EXPECT_EQ(error.in_use(), Bytes(64'000'000 + 256));
    EXPECT_EQ(error.source().line, 41U);
    const OutOfMemory copy = error;
    EXPECT_STREQ(copy.what(), error.what());
  }
}

TEST(OutOfMemory, ListsTheFiveLargest) {
  const LimitGuard limit(in_use() + 10 * kMiB);
  std::vector<Held> all;
  for (unsigned i = 1; i <= 7; ++i) {
    all.push_back(make(i * 1024, Source::here("many.cc", i, "f")));
  }
  try {
    make(20 * kMiB, Source::here("asks.cc", 1, "f"));
    FAIL();
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("  largest: u8[7168] 7.0 KiB (many.cc:7, temporaries); u8[6144] 6.0 KiB "
                        "(many.cc:6, temporaries); u8[5120]"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("u8[2048]"), std::string::npos);
    EXPECT_NE(text.find("\n  ask for less, or raise the limit: td::memory::set_limit"),
              std::string::npos);
  }
}

TEST(OutOfMemory, RefusesAbsurdSizes) {
  EXPECT_THROW(make(int64_t{1} << 61), OutOfMemory);
  EXPECT_THROW(make(std::numeric_limits<int64_t>::max()), OutOfMemory);
}

}  // namespace
}  // namespace tidemark::device

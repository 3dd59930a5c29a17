// Every k-th failure at the pool, at the page-mapping function and at operator new: afterwards the
// accounts are as they were, and the same call works.
#include "tidemark/device/fault.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <thread>
#include <vector>

#include "held.h"
#include "tidemark/api/memory.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/threads.h"

namespace {

// The k-th call of operator new from now fails, once, on any thread.
std::atomic<int64_t> new_countdown{0};

bool new_strikes() {
  const int64_t left = new_countdown.load(std::memory_order_relaxed);
  return left > 0 && new_countdown.fetch_sub(1) == 1;
}

void* allocate_or_strike(size_t bytes) {
  void* const data = new_strikes() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

// Not inlined: the compiler would see free meet what it knows as new.
[[gnu::noinline]] void* operator new(size_t bytes) { return allocate_or_strike(bytes); }
[[gnu::noinline]] void* operator new[](size_t bytes) { return allocate_or_strike(bytes); }
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete[](void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete[](void* data, size_t) noexcept { std::free(data); }

namespace tidemark::device {
namespace {

struct Snapshot {
  int64_t in_use, peak, classes[kByteClasses], bytes, count, viewed, pinned;
  bool operator==(const Snapshot&) const = default;
};

Snapshot snapshot() {
  Snapshot now = {};
  now.in_use = in_use();
  now.peak = peak();
  for (int i = 0; i < kByteClasses; ++i) now.classes[i] = bytes_of(static_cast<ByteClass>(i));
  for (const LineReport& report : lines_now()) {
    now.bytes += report.sums.bytes;
    now.count += report.sums.count;
    now.viewed += report.sums.viewed;
    now.pinned += report.sums.pinned;
  }
  return now;
}

enum class At { pool, mapping, heap };

void arm(At at, int64_t k) {
  if (at == At::heap) {
    new_countdown = k + 1;
  } else {
    fault::arm(at == At::pool ? fault::Site::pool : fault::Site::mapping, k);
  }
}
bool disarm(At at) {
  if (at == At::heap) return new_countdown.exchange(0) > 0;
  return fault::disarm(at == At::pool ? fault::Site::pool : fault::Site::mapping);
}

// A program that meets all paths: cells, chunks, spans, regions, views, borrowed memory, scopes,
// lines never seen before. `fresh` makes the lines new to every run.
void program(unsigned fresh) {
  const Source at = Source::here("fault.cc", fresh, "f");
  const Source other = Source::here("fault.cc", fresh + 1'000'000, "f");
  const MemoryScope scope("a scope with a name that does not fit into the string itself");
  const Held tiny = make(64, at);
  const Held chunk = make(3000, other, ByteClass::saved);
  const Held span = make(50'000, at);
  const Held large = make(3 << 20, other);
  const Held view(allocate_view(large->storage, 4, at));
  std::byte data[8];
  const Held borrowed(borrow(data, 8, true, nullptr, nullptr, {.at = at}));
  const std::vector<Held> call = make_all({10, 3000, 70'000, 64, 5 << 20}, other);
  std::vector<Held> cells;
  cells.reserve(1200);
  for (int i = 0; i < 1200; ++i) cells.push_back(make(1, at));
}

void on_new_thread(unsigned fresh, bool& refused) {
  std::thread([&] {
    try {
      program(fresh);
    } catch (const OutOfMemory& error) {
      EXPECT_NE(std::string(error.what()).find("which the system refused"), std::string::npos);
      refused = true;
    } catch (const std::bad_alloc&) {
      refused = true;  // From the scope's own name.
    }
  }).join();
}

void fail_every(At at) {
  const bool deep = at == At::pool;
  program(1);
  int64_t struck = 0;
  for (int64_t k = 0;; k += deep && k > 8 ? 97 : 1) {
    release_cached();
    const auto fresh = static_cast<unsigned>(2 + k + 10'000 * (static_cast<int>(at) + 1));
    const Snapshot before = snapshot();
    bool refused = false;
    arm(at, k);
    try {
      program(fresh);
    } catch (const OutOfMemory& error) {
      EXPECT_NE(std::string(error.what()).find("which the system refused"), std::string::npos);
      refused = true;
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    const bool over = disarm(at);
    Snapshot after = snapshot();
    after.peak = before.peak;  // Steps before the refused one took bytes and may have raised it.
    ASSERT_EQ(before, after) << "k = " << k;
    ASSERT_TRUE(over || refused || at != At::pool) << "k = " << k;
    program(fresh);
    ASSERT_EQ(snapshot().in_use, before.in_use);
    if (over) break;
    ++struck;
  }
  EXPECT_GT(struck, 0);
}

TEST(Fault, AtThePool) { fail_every(At::pool); }
TEST(Fault, AtTheMappingFunction) { fail_every(At::mapping); }
TEST(Fault, AtOperatorNew) { fail_every(At::heap); }

TEST(Fault, AtOperatorNewOnAThreadWithoutARecord) {
  for (int64_t k = 0; k < 12; ++k) {
    const int64_t before = in_use();
    bool refused = false;
    // One allocation is std::thread's own.
    arm(At::heap, k + 1);
    on_new_thread(static_cast<unsigned>(500'000 + k), refused);
    disarm(At::heap);
    ASSERT_EQ(in_use(), before) << "k = " << k;
  }
}

TEST(Fault, ARefusedRequestDoesNotShowInThePeak) {
  release_cached();
  reset_peak();
  const int64_t before = peak();
  fault::arm(fault::Site::mapping, 0);
  EXPECT_THROW(make(int64_t{64} << 20), OutOfMemory);
  fault::disarm(fault::Site::mapping);
  EXPECT_EQ(peak(), before);
}

TEST(Fault, TheCacheGoesBackBeforeTheSystemIsBelieved) {
  release_cached();
  make(2 << 20).reset();
  EXPECT_EQ(cached(), 2 << 20);
  fault::arm(fault::Site::mapping, 0);
  const Held held = make(16 << 20);
  EXPECT_FALSE(fault::disarm(fault::Site::mapping));
  EXPECT_EQ(cached(), 0);
}

TEST(Fault, WorkersThatCannotStartAreDoneWithout) {
  for (int64_t k = 0; k < 3; ++k) {
    set_num_threads(1);
    set_num_threads(4);
    fault::arm(fault::Site::mapping, k);
    std::atomic<int64_t> sum{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    fault::disarm(fault::Site::mapping);
    EXPECT_EQ(sum, 1000);
  }
  set_num_threads(1);
}

TEST(TinyTensors, NeedNoHeapAndNoMapping) {
  const Source at = Source::here();
  for (int i = 0; i < 100; ++i) make(64, at).reset();
  new_countdown = int64_t{1} << 40;
  fault::arm(fault::Site::mapping, int64_t{1} << 40);
  for (int i = 0; i < 1000; ++i) make(64, at).reset();
  EXPECT_EQ(new_countdown, int64_t{1} << 40);
  EXPECT_EQ(fault::detail::countdown[1], (int64_t{1} << 40) + 1);
  new_countdown = 0;
  fault::disarm(fault::Site::mapping);
}

TEST(Flat, AfterWarmUpNothingGrows) {
  struct Growth {
    int64_t in_use, cached, mappings, news;
    bool operator==(const Growth&) const = default;
  };
  const auto run = [](int rounds) {
    constexpr int64_t kStart = int64_t{1} << 40;
    new_countdown = kStart;
    for (int i = 0; i < rounds; ++i) {
      const Source at = Source::here();
      const Held a = make(64, at);
      const Held b = make(3000, at);
      const Held c = make(50'000, at);
      const Held d = make((3 << 20) + (i % 3) * 4096, at);
      parallel_for(64, 1, [](int64_t, int64_t, int) {});
    }
    const int64_t news = kStart - new_countdown.exchange(0);
    return Growth{in_use(), cached(), static_cast<int64_t>(mapped_ranges().size()), news};
  };
  set_num_threads(2);
  run(20);
  const Growth once = run(100);
  const Growth twice = run(200);
  EXPECT_EQ(once, twice);
  EXPECT_EQ(twice.news, 0);
  set_num_threads(1);
}

}  // namespace
}  // namespace tidemark::device

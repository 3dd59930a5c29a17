#include "tidemark/api/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <sstream>
#include <thread>

#include "tests/unit/device/held.h"
#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/sanitizer.h"
#include "tidemark/device/threads.h"

namespace tidemark {
namespace {

using device::Held;
using device::make;

constexpr int64_t kMiB = int64_t{1} << 20;

class Limited {
 public:
  explicit Limited(Bytes bytes) : before_(memory::limit()) { memory::set_limit(bytes); }
  ~Limited() { memory::set_limit(before_); }

 private:
  Bytes before_;
};

TEST(Memory, ShowsBytesInTheStatementThatTakesOrGivesThem) {
  const Bytes before = memory::current();
  Held held = make(100);
  EXPECT_EQ(memory::current() - before, 128_B);
  held = {};
  EXPECT_EQ(memory::current(), before);
}

TEST(Memory, PeakCachedAndReleaseGoTogether) {
  memory::release();
  EXPECT_EQ(memory::cached(), 0_B);
  memory::reset_peak();
  const Bytes before = memory::current();
  make(5 * kMiB).reset();
  EXPECT_EQ(memory::peak() - before, 5_MiB);
  EXPECT_EQ(memory::cached(), 5_MiB);
  EXPECT_EQ(memory::release(), 5_MiB);
  EXPECT_EQ(memory::cached(), 0_B);
}

TEST(Memory, OfAClass) {
  const Bytes before = memory::of(ByteClass::workspace);
  const Held held = make(1000, Source::here(), ByteClass::workspace);
  EXPECT_EQ(memory::of(ByteClass::workspace) - before, 1024_B);
}

TEST(Memory, LimitIsPositiveAndBelowTheMachinesMemory) {
  EXPECT_GT(memory::limit(), 0_B);
  EXPECT_LT(memory::limit().count,
            static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
}

TEST(Memory, LimitRefusesAndTheNextCallWorks) {
  memory::release();
  const Limited limited(memory::current() + 1_MiB);
  EXPECT_THROW(make(2 * kMiB), OutOfMemory);
  const Held held = make(kMiB);
  EXPECT_EQ(memory::limit() - memory::current(), 0_B);
}

TEST(Memory, SetLimitRefusesWhatIsNoLimit) {
  try {
    memory::set_limit(0_B, Source::here("main.cc", 3, "main"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "set_limit: 0 B is not a limit\n  at main.cc:3\n  give a positive number of bytes");
  }
}

TEST(Live, PrintsATableByLine) {
  const Held weights = make(3 * kMiB, Source::here("src/model.cc", 12, "f"));
  const Held a = make(100, Source::here("train.cc", 41, "f"));
  const Held b = make(100, Source::here("train.cc", 41, "f"));
  const Held view(device::allocate_view(weights->storage, 4, Source::here("train.cc", 50, "f")));
  const memory::Live live = memory::live();
  ASSERT_EQ(live.rows.size(), 3U);
  EXPECT_EQ(live.total, memory::current());
  EXPECT_EQ(live.rows[2].pinned, 3_MiB);
  std::ostringstream out;
  out << live;
  EXPECT_EQ(out.str(),
            "line              bytes       count      viewed      pinned\n"
            "model.cc:12     3.0 MiB           1         0 B         0 B\n"
            "train.cc:41       256 B           2         0 B         0 B\n"
            "train.cc:50         0 B           0         4 B     3.0 MiB\n"
            "total           3.0 MiB\n");
}

TEST(Scope, CountsWhatIsMadeInIt) {
  const Held before = make(kMiB);
  const MemoryScope scope("epoch");
  EXPECT_EQ(scope.name(), "epoch");
  {
    const Held a = make(1000);
    const Held b = make(64);
    EXPECT_EQ(scope.current(), 1088_B);
  }
  EXPECT_EQ(scope.current(), 0_B);
  EXPECT_EQ(scope.peak(), 1088_B);
}

TEST(Scope, Nests) {
  const MemoryScope outer("outer");
  const Held a = make(64);
  {
    const MemoryScope inner("inner");
    const Held b = make(128);
    EXPECT_EQ(inner.current(), 128_B);
    EXPECT_EQ(outer.current(), 192_B);
  }
  EXPECT_EQ(outer.current(), 64_B);
  EXPECT_EQ(outer.peak(), 192_B);
}

TEST(Scope, AFreeIsCreditedToTheScopeThatAllocated) {
  const MemoryScope outer("outer");
  Held outlives;
  Held foreign = make(64);
  {
    const MemoryScope inner("inner");
    outlives = make(1000);
    foreign.reset();
    EXPECT_EQ(inner.current(), 1024_B) << "a tensor made outside is not the inner scope's";
  }
  EXPECT_EQ(outer.current(), 1024_B);
  std::thread([&] { outlives.reset(); }).join();
  EXPECT_EQ(outer.current(), 0_B);
}

TEST(Scope, IsOfItsThread) {
  const MemoryScope scope("here");
  std::thread([] { make(1000).reset(); }).join();
  EXPECT_EQ(scope.peak(), 0_B);
}

TEST(Scope, TravelsToWorkers) {
  const int before = num_threads();
  set_num_threads(3);
  const MemoryScope scope("job");
  device::parallel_for(30, 1, [](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) make(1000).reset();
  });
  EXPECT_EQ(scope.current(), 0_B);
  EXPECT_GE(scope.peak(), 1024_B);
  EXPECT_LE(scope.peak(), 3 * 1024);
  set_num_threads(before);
}

TEST(Scope, EndsInAnyOrder) {
  auto around = std::make_unique<MemoryScope>("around");
  auto outer = std::make_unique<MemoryScope>("outer");
  auto inner = std::make_unique<MemoryScope>("inner");
  outer.reset();
  const Held a = make(1000);
  EXPECT_EQ(inner->current(), 1024_B);
  EXPECT_EQ(around->current(), 1024_B);
  inner.reset();
  const Held b = make(64);
  EXPECT_EQ(around->current(), 1088_B);
  around.reset();
  const Held c = make(64);
  const MemoryScope alone("alone");
  EXPECT_EQ(alone.current(), 0_B);
}

TEST(Scope, EndsOnAnyThread) {
  auto scope = std::make_unique<MemoryScope>("scope");
  std::thread([&] { scope.reset(); }).join();
  make(1000).reset();
  std::unique_ptr<MemoryScope> theirs;
  std::thread([&] {
    theirs = std::make_unique<MemoryScope>("theirs");
    make(1000).reset();
  }).join();
  const MemoryScope mine("mine");
  EXPECT_EQ(theirs->peak(), 1024_B);
  theirs.reset();
  const Held held = make(64);
  EXPECT_EQ(mine.current(), 64_B);
}

// --- The ledger -----------------------------------------------------------------------------

int64_t kernels_resident_bytes() {
  FILE* const file = std::fopen("/proc/self/smaps_rollup", "re");
  if (file == nullptr) return -1;
  char line[256];
  long long kib = -1;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "Rss: %lld kB", &kib) == 1) break;
  }
  std::fclose(file);
  return kib * 1024;
}

int64_t sum_of_rows(const memory::Ledger& ledger) {
  int64_t sum = 0;
  for (const memory::LedgerRow& row : ledger.rows) sum += row.bytes;
  return sum;
}

// Resident pages of Tidemark's own mappings.
int64_t ours(const memory::Ledger& ledger) {
  return ledger.resident.count - ledger.of("image") - ledger.of("heap") -
         ledger.of("mapped files") - ledger.of("outside");
}

TEST(Ledger, RowsPartitionTheResidentSize) {
  set_num_threads(2);
  device::parallel_for(100, 1, [](int64_t, int64_t, int) {});
  const Held a = make(5 * kMiB);
  std::memset(a.data(), 1, 5 * kMiB);
  const Held small = make(64);
  make(2 * kMiB).reset();
  (void)memory::ledger();  // The first walk touches pages of its own.
  const memory::Ledger ledger = memory::ledger();
  EXPECT_EQ(sum_of_rows(ledger), ledger.resident.count);
  int64_t held = 0;
  for (int i = 0; i < kByteClasses; ++i) held += ledger.of(name(static_cast<ByteClass>(i)));
  EXPECT_EQ(held, memory::current().count);
  EXPECT_EQ(held + ledger.of("cache"), ledger.held.count);
  EXPECT_EQ(ledger.of("cache"), memory::cached().count);
  EXPECT_GT(ledger.of("image"), 0);
  EXPECT_GT(ledger.of("stacks"), 0);
  EXPECT_GT(ledger.of("handles"), 0);
  // What the kernel counts, but for a few pages that come between the two walks.
  const int64_t kernels = kernels_resident_bytes();
#if !defined(TIDEMARK_ASAN) && !defined(__SANITIZE_THREAD__)
  if (kernels > 0) {
    EXPECT_NEAR(static_cast<double>(kernels), ledger.resident.count, 128 << 10);
  }
#endif
  (void)kernels;
}

TEST(Ledger, SeesPagesWhenTheyAreTouchedAndGivenBack) {
  set_num_threads(1);  // A worker that still falls asleep may touch its stack.
  memory::release();
  Held held = make(8 * kMiB);
  (void)memory::ledger();
  const memory::Ledger fresh = memory::ledger();
  std::memset(held.data(), 1, 8 * kMiB);
  const memory::Ledger touched = memory::ledger();
  held.reset();
  const memory::Ledger cached = memory::ledger();
  memory::release();
  const memory::Ledger released = memory::ledger();
  // Nothing of the fresh block is resident; all of it after it was written.
  EXPECT_EQ(touched.of("untouched") - fresh.of("untouched"), 8 * kMiB);
  EXPECT_EQ(ours(touched) - ours(fresh), 8 * kMiB);
  EXPECT_EQ(cached.of("cache"), 8 * kMiB);
  EXPECT_EQ(ours(cached), ours(touched));
  EXPECT_EQ(ours(cached) - ours(released), 8 * kMiB);
}

TEST(Ledger, ShowsWhatAUsersResourceHolds) {
  memory::set_resource(std::pmr::new_delete_resource());
  const Held held = make(3000);
  memory::set_resource(nullptr);
  const memory::Ledger ledger = memory::ledger();
  EXPECT_EQ(ledger.of("in the user's resource"), -3008);
  EXPECT_EQ(sum_of_rows(ledger), ledger.resident.count);
}

TEST(Ledger, ShowsCompiledCode) {
  const compile::Emitter before = compile::emitter();
  const int64_t code = memory::ledger().of("code");
  compile::set_emitter(compile::Emitter::llvm);
  const Tensor x = ones({50, 30}, DType::f64);
  const Tensor y = tanh(x) - log(x + 2);
  compile::set_emitter(before);
  const memory::Ledger ledger = memory::ledger();
  EXPECT_GE(ledger.of("code") - code, 4096);
  EXPECT_LE(ledger.of("code"), compile::code_bytes());
  EXPECT_EQ(sum_of_rows(ledger), ledger.resident.count);
}

TEST(Ledger, RefusesARowThatIsNotThere) {
  try {
    (void)memory::ledger().of("cash");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "ledger: there is no row 'cash'\n  print the ledger to see its rows");
  }
}

TEST(Ledger, Prints) {
  std::ostringstream out;
  out << memory::ledger();
  EXPECT_NE(out.str().find("resident"), std::string::npos);
  EXPECT_NE(out.str().find("image"), std::string::npos);
}

}  // namespace
}  // namespace tidemark

// The state of one thread, so that tiny tensors need no lock: free cells, its share of the
// counters, the current scope, and memory for its calls. When the thread ends, the next thread
// inherits the record.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/lock.h"
#include "tidemark/device/call_memory.h"
#include "tidemark/device/line_account.h"
#include "tidemark/device/storage.h"

namespace tidemark::device {

// Only the owning thread writes; any thread may read.
class Share {
 public:
  void add(int64_t amount) { value_.store(get() + amount, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  int64_t take() {
    const int64_t value = get();
    value_.store(0, std::memory_order_relaxed);
    return value;
  }

 private:
  std::atomic<int64_t> value_{0};
};

// The thread's counters of one line, found by the address of the line's file name.
struct LineShare {
  const char* file = nullptr;
  unsigned line = 0;
  std::atomic<LineAccount*> account{nullptr};
  Share sums[kLineSums];
};

inline constexpr int kLineShares = 256;
inline constexpr int kClassShares = kByteClasses + 1;  // The last: data inside cells.
inline constexpr int kSmallShare = kByteClasses;

struct ThreadRecord {
  Cell* free_cells = nullptr;
  int64_t free_cell_count = 0;
  ScopeAccount* scope = nullptr;
  CallMemory calls;
  Share classes[kClassShares];
  LineShare lines[kLineShares];
  ThreadRecord* next = nullptr;
};

namespace detail {
// A pointer in static thread storage is read by one instruction, also in a shared library.
extern thread_local ThreadRecord* thread_record __attribute__((tls_model("initial-exec")));
ThreadRecord& make_thread_record();
}  // namespace detail

// Null on a thread that has not allocated yet.
inline ThreadRecord* thread_record_or_null() { return detail::thread_record; }
// Throws std::bad_alloc.
inline ThreadRecord& thread_record() {
  ThreadRecord* const record = detail::thread_record;
  return record != nullptr ? *record : detail::make_thread_record();
}

// Called when a thread ends: its free cells become available to all threads (allocate.cc).
void give_cells_back(ThreadRecord& record) noexcept;

inline uint32_t line_slot(const char* file, unsigned line) {
  const auto address = reinterpret_cast<uintptr_t>(file);
  return static_cast<uint32_t>((address >> 3) + line * 31U) % kLineShares;
}
// For the fork handlers only.
void lock_records();
void unlock_records();

}  // namespace tidemark::device

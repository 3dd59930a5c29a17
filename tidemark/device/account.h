// The counters of memory. `in_use` is the one exact total: it is raised before memory is allocated
// and lowered after it is freed, and the peak is its maximum. All other counters divide it up.
//
//   held = in_use + cached <= limit
//
// Totals by class and by line are kept in one record per thread (the owner stores, readers sum), so
// that creating a tiny tensor writes one shared word, and releasing it another. When no thread
// allocates or frees, every sum is exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tidemark/device/storage.h"

namespace tidemark::device {

struct Counters {
  alignas(64) std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> peak{0};
  // The bytes that the first waiting call asks for (wait_queue.h), 0 if none waits.
  std::atomic<int64_t> wanted{0};
  alignas(64) std::atomic<int64_t> cached{0};  // Written under the pool's lock.
  std::atomic<int64_t> limit{0};               // Zero until `limit_bytes` is first called.
  std::atomic<int64_t> highest{0};             // The peak before the last reset.
  // The part of `in_use` that comes from a user's memory resource.
  std::atomic<int64_t> foreign{0};
  std::atomic<int64_t> borrowed{0};  // Memory of others that tensors view; in no sum.
};
extern Counters counters;

// The limit in bytes; the default is computed by the first call.
int64_t limit_bytes();
void set_limit_bytes(int64_t bytes);

// Reserves `bytes` within the limit and returns true, or changes nothing. `relief` is cached memory
// that the caller is about to reuse. The total never exceeds the limit, not even for a moment.
inline bool reserve(int64_t bytes, int64_t relief = 0) {
  int64_t now = counters.in_use.load(std::memory_order_relaxed);
  do {
    const int64_t held = now + counters.cached.load(std::memory_order_relaxed) - relief;
    if (held + bytes > counters.limit.load(std::memory_order_relaxed)) return false;
  } while (!counters.in_use.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}
// Wakes the first waiting call.
void signal_room() noexcept;
// Signals if there is room for the first waiting call, given the bytes in use. Call it after the
// counters have changed; wait_queue.cc has the reason for the order of these accesses.
inline void signal_if_room(int64_t in_use) {
  const int64_t wanted = counters.wanted.load();
  if (wanted != 0 && in_use + wanted <= counters.limit.load()) [[unlikely]]
    signal_room();
}
inline void unreserve(int64_t bytes) { signal_if_room(counters.in_use.fetch_sub(bytes) - bytes); }
// Called after the bytes are allocated, so that a refused request of this thread never counts
// towards the peak. Bytes that another thread has reserved at this moment count, whether or not the
// system then grants them.
inline void raise_peak() {
  const int64_t now = counters.in_use.load(std::memory_order_relaxed);
  int64_t peak = counters.peak.load(std::memory_order_relaxed);
  while (now > peak && !counters.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}
void reset_peak();
// The most bytes ever in use at once; reset_peak does not affect it.
int64_t highest_in_use();

// The bytes that one source line holds. `viewed` and `pinned` are for views made on the line: the
// bytes of their elements, and the bytes of the storages that they keep alive, counted once for
// each view.
struct LineSums {
  int64_t bytes = 0, count = 0, viewed = 0, pinned = 0;
  bool empty() const { return bytes == 0 && count == 0 && viewed == 0 && pinned == 0; }
};
struct LineReport {
  Source at = Source::none();
  LineSums sums;
};
// The lines that hold bytes now, in no particular order.
std::vector<LineReport> lines_now();
// The bytes that every line holds, by the number of the line. Lines are numbered from 0 in the
// order of their first use and keep their numbers, so the list only grows when there is a new line.
// Takes time proportional to the number of lines.
void read_lines(std::vector<LineSums>& by_number);
Source line_at(uint32_t number);
uint32_t line_number(const Storage& storage);
int64_t bytes_of(ByteClass byte_class);
// In debug builds, while the process has one thread, checks that the classes add up to `in_use`.
void check_accounts();
// The bytes of tensors whose data are inside their cell.
int64_t small_bytes();
inline int64_t foreign_bytes() { return counters.foreign.load(std::memory_order_relaxed); }

}  // namespace tidemark::device

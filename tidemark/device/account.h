// The counters. One number, `in_use`, is the truth: it is reserved before bytes are taken and
// released after they are given back; the peak is its maximum. Everything else divides it up.
//
//   held = in_use + cached <= limit
//
// Totals by class and by line are kept in one record per thread (plain stores by the owner, sums
// by the reader), so that a tiny tensor pays for one shared word on its way in and one on its way
// out. At a quiescent point every sum is exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tidemark/device/storage.h"

namespace tidemark::device {

struct Counters {
  alignas(64) std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> peak{0};
  alignas(64) std::atomic<int64_t> cached{0};  // Written under the pool's lock.
  std::atomic<int64_t> limit{0};               // Zero until somebody asks: `limit_bytes`.
  std::atomic<int64_t> highest{0};             // The peak before the last reset.
  std::atomic<int64_t> foreign{0};             // The part of `in_use` that a user's resource has.
  std::atomic<int64_t> borrowed{0};            // Memory of others that tensors show; in no sum.
};
extern Counters counters;

// The limit; the default is worked out at the first call.
int64_t limit_bytes();
void set_limit_bytes(int64_t bytes);

// Takes `bytes` out of the limit, or changes nothing. `relief` is cached memory that the caller is
// about to put to use. Never overshoots: a refusal for the limit leaves no trace.
inline bool reserve(int64_t bytes, int64_t relief = 0) {
  int64_t now = counters.in_use.load(std::memory_order_relaxed);
  do {
    const int64_t held = now + counters.cached.load(std::memory_order_relaxed) - relief;
    if (held + bytes > counters.limit.load(std::memory_order_relaxed)) return false;
  } while (!counters.in_use.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}
inline void unreserve(int64_t bytes) {
  counters.in_use.fetch_sub(bytes, std::memory_order_relaxed);
}
// Called once the bytes are there: a refused request of this thread never shows in the peak. What
// another thread has reserved at this moment counts, whether or not the system then grants it.
inline void raise_peak() {
  const int64_t now = counters.in_use.load(std::memory_order_relaxed);
  int64_t peak = counters.peak.load(std::memory_order_relaxed);
  while (now > peak && !counters.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}
void reset_peak();
// The most bytes ever in use at once, resets or not.
int64_t highest_in_use();

// What one source line holds. `viewed` and `pinned` are of views made on the line: the bytes their
// elements cover, and the bytes of the storages they keep alive, once for each view.
struct LineSums {
  int64_t bytes = 0, count = 0, viewed = 0, pinned = 0;
  bool empty() const { return bytes == 0 && count == 0 && viewed == 0 && pinned == 0; }
};
struct LineReport {
  Source at = Source::none();
  LineSums sums;
};
// Lines that hold something now, in no order.
std::vector<LineReport> lines_now();
// What every line holds, by its number: lines are numbered from 0 up as they are met, and keep
// their numbers. The list grows with them, and only then; the cost is that of the lines.
void read_lines(std::vector<LineSums>& by_number);
Source line_at(uint32_t number);
uint32_t line_number(const Storage& storage);
int64_t bytes_of(ByteClass byte_class);
// In debug builds, while the process has one thread: the classes add up to what is in use.
void check_accounts();
// Bytes of tensors whose data stand in their cell.
int64_t small_bytes();
inline int64_t foreign_bytes() { return counters.foreign.load(std::memory_order_relaxed); }

}  // namespace tidemark::device

// Runs of whole pages, cut from mapped regions: the lower layer of the pool (pool.h has a picture).
//
// Every function here is called under the pool's lock. Only `take` allocates (a record for the
// remainder of a split span); freeing merges records and cannot fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::device {

struct Region;

struct Span {
  enum class State : uint8_t { used, cached, untouched };
  Region* region = nullptr;
  std::byte* begin = nullptr;
  int64_t bytes = 0;
  Span* before = nullptr;  // Neighbours by address, in the same region.
  Span* after = nullptr;
  Span* previous = nullptr;  // In the list of free spans of about this size.
  Span* next = nullptr;
  State state = State::untouched;
};

class Spans {
 public:
  // The best-fitting cached span, or null.
  Span* best_cached(int64_t bytes) const { return best(Span::State::cached, bytes); }
  // A span in use of exactly `bytes` (whole pages), cut from `cached` if given, else from an
  // untouched or newly mapped span. Null if the system refuses. Throws std::bad_alloc; in that case
  // nothing has changed.
  Span* take(int64_t bytes, Span* cached);
  // Marks a span in use as cached.
  void put(Span* span) noexcept;
  // Returns at least `wanted` cached bytes to the system, or all of them if there are fewer.
  int64_t give_back(int64_t wanted) noexcept;

 private:
  static constexpr int kBins = 160;
  static int bin_of(int64_t bytes);
  Span* best(Span::State state, int64_t bytes) const;
  Span* largest_cached() const;
  Span* map_region(int64_t bytes);
  Span* split(Span* span, int64_t bytes);
  Span* merge(Span* span) noexcept;
  void absorb(Span* span, Span* neighbour) noexcept;
  void to_system(Span* span) noexcept;
  void enlist(Span* span) noexcept;
  void delist(Span* span) noexcept;
  Span* new_span();
  void drop(Span* span) noexcept;

  // Free spans by size, in four bins per power of two.
  Span* cached_[kBins] = {};
  Span* untouched_[kBins] = {};
  Span* spare_ = nullptr;  // Unused records.
};

}  // namespace tidemark::device

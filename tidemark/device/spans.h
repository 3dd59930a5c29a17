// Runs of whole pages, cut from regions: the lower layer of the pool (pool.h has the picture).
//
// Every function here is called under the pool's lock. Only `take` allocates (a record for the rest
// of a split span); giving back merges records and cannot fail.
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
  Span* before = nullptr;  // Neighbours by address, in the region.
  Span* after = nullptr;
  Span* previous = nullptr;  // The list of free spans of about this size.
  Span* next = nullptr;
  State state = State::untouched;
};

class Spans {
 public:
  // The cached span that fits best, or null.
  Span* best_cached(int64_t bytes) const { return best(Span::State::cached, bytes); }
  // A used span of exactly `bytes` (whole pages): cut from `cached` where given, else untouched or
  // newly mapped. Null when the system refuses; throws std::bad_alloc; then nothing has changed.
  Span* take(int64_t bytes, Span* cached);
  // A used span becomes cached.
  void put(Span* span) noexcept;
  // Gives at least `wanted` cached bytes back to the system, or all there are.
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

  // Bins of free spans by size, four to a doubling.
  Span* cached_[kBins] = {};
  Span* untouched_[kBins] = {};
  Span* spare_ = nullptr;  // Records without pages.
};

}  // namespace tidemark::device

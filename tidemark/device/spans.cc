#include "tidemark/device/spans.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "tidemark/device/huge_pages.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/sanitizer.h"

namespace tidemark::device {

struct Region {
  std::byte* begin;
  int64_t bytes;
};

namespace {

// Blocks of this size and more get their own region, so that it can be unmapped as a whole.
constexpr int64_t kLarge = int64_t{1} << 20;
// Smaller ones share regions of this size.
constexpr int64_t kSharedRegion = int64_t{4} << 20;

}  // namespace

int Spans::bin_of(int64_t bytes) {
  const auto pages = static_cast<uint64_t>(bytes / kPageBytes);
  const int log = std::bit_width(pages) - 1;
  const int quarter = log < 2 ? 0 : static_cast<int>((pages >> (log - 2)) & 3U);
  return std::min(kBins - 1, log * 4 + quarter);
}

void Spans::enlist(Span* span) noexcept {
  Span*& head = (span->state == Span::State::cached ? cached_ : untouched_)[bin_of(span->bytes)];
  span->previous = nullptr;
  span->next = head;
  if (head != nullptr) head->previous = span;
  head = span;
}

void Spans::delist(Span* span) noexcept {
  Span*& head = (span->state == Span::State::cached ? cached_ : untouched_)[bin_of(span->bytes)];
  if (span->previous != nullptr) {
    span->previous->next = span->next;
  } else {
    head = span->next;
  }
  if (span->next != nullptr) span->next->previous = span->previous;
}

Span* Spans::best(Span::State state, int64_t bytes) const {
  const auto& bins = state == Span::State::cached ? cached_ : untouched_;
  for (int bin = bin_of(bytes); bin < kBins; ++bin) {
    Span* found = nullptr;
    for (Span* span = bins[bin]; span != nullptr; span = span->next) {
      if (span->bytes >= bytes && (found == nullptr || span->bytes < found->bytes)) found = span;
      if (span->bytes == bytes) break;
    }
    if (found != nullptr) return found;
  }
  return nullptr;
}

Span* Spans::largest_cached() const {
  for (int bin = kBins - 1; bin >= 0; --bin) {
    if (cached_[bin] != nullptr) return cached_[bin];
  }
  return nullptr;
}

Span* Spans::new_span() {
  if (spare_ == nullptr) return new Span;
  Span* const span = spare_;
  spare_ = span->next;
  *span = Span{};
  return span;
}

void Spans::drop(Span* span) noexcept {
  span->next = spare_;
  spare_ = span;
}

// A free span that covers a whole new region and is in no list yet.
Span* Spans::map_region(int64_t bytes) {
  const bool large = bytes >= kLarge;
  const int64_t mapped = large ? bytes : kSharedRegion;
  Span* const span = new_span();
  Region* region = nullptr;
  std::byte* begin = nullptr;
  try {
    region = new Region{nullptr, mapped};
    begin = map_pages(mapped, MappingOwner::pool,
                      bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes);
  } catch (...) {
    delete region;
    drop(span);
    throw;
  }
  if (begin == nullptr) {
    delete region;
    drop(span);
    return nullptr;
  }
  // If huge pages are the system's default, they would extend across the ends of blocks.
  advise_small(begin, mapped);
  forbid(begin, mapped);
  region->begin = begin;
  span->region = region;
  span->begin = begin;
  span->bytes = mapped;
  return span;
}

// Cuts a span that is in no list; the remainder keeps its state and enters its list.
Span* Spans::split(Span* span, int64_t bytes) {
  if (span->bytes == bytes) return span;
  Span* const rest = new_span();
  rest->region = span->region;
  rest->begin = span->begin + bytes;
  rest->bytes = span->bytes - bytes;
  rest->before = span;
  rest->after = span->after;
  rest->state = span->state;
  if (rest->after != nullptr) rest->after->before = rest;
  span->after = rest;
  span->bytes = bytes;
  enlist(rest);
  return span;
}

Span* Spans::take(int64_t bytes, Span* cached) {
  const bool may_be_huge = bytes >= kHugePageBytes && huge_pages_help();  // May throw.
  Span* span = cached != nullptr ? cached : best(Span::State::untouched, bytes);
  const bool mapped = span == nullptr;
  if (mapped) span = map_region(bytes);
  if (span == nullptr) return nullptr;
  if (!mapped) delist(span);
  try {
    split(span, bytes);
  } catch (...) {
    enlist(span);
    throw;
  }
  if (span->state == Span::State::untouched && may_be_huge) advise_huge(span->begin, bytes);
  span->state = Span::State::used;
  return span;
}

void Spans::absorb(Span* span, Span* neighbour) noexcept {
  delist(neighbour);
  span->begin = std::min(span->begin, neighbour->begin);
  span->bytes += neighbour->bytes;
  if (neighbour == span->after) {
    span->after = neighbour->after;
    if (span->after != nullptr) span->after->before = span;
  } else {
    span->before = neighbour->before;
    if (span->before != nullptr) span->before->after = span;
  }
  drop(neighbour);
}

// Merges a span that is in no list with neighbours of the same state.
Span* Spans::merge(Span* span) noexcept {
  if (span->after != nullptr && span->after->state == span->state) absorb(span, span->after);
  if (span->before != nullptr && span->before->state == span->state) absorb(span, span->before);
  return span;
}

void Spans::put(Span* span) noexcept {
  span->state = Span::State::cached;
  enlist(merge(span));
}

void Spans::to_system(Span* span) noexcept {
  madvise(span->begin, static_cast<size_t>(span->bytes), MADV_DONTNEED);
  advise_small(span->begin, span->bytes);
  span->state = Span::State::untouched;
  merge(span);
  Region* const region = span->region;
  if (span->bytes < region->bytes) return enlist(span);
  allow(region->begin, region->bytes);
  unmap_pages(region->begin, region->bytes);
  delete region;
  drop(span);
}

int64_t Spans::give_back(int64_t wanted) noexcept {
  int64_t given = 0;
  while (given < wanted) {
    Span* const span = largest_cached();
    if (span == nullptr) break;
    given += span->bytes;
    delist(span);
    to_system(span);
  }
  return given;
}

}  // namespace tidemark::device

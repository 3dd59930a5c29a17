// Adds the bytes of a storage to its class, its line and the current scope, and subtracts them.
// Inline: this is most of the cost of a tiny tensor.
#pragma once

#include "tidemark/device/scope.h"
#include "tidemark/device/thread_record.h"

namespace tidemark::device {

namespace detail {
// Replaces the line in the slot. Throws std::bad_alloc.
void replace_line(LineShare& share, Source at);
// For threads that have no record because they never allocated.
void add_to_class_of_all(int index, int64_t amount) noexcept;
}  // namespace detail

// The thread's counters of a line. Throws std::bad_alloc.
inline LineShare& find_line(ThreadRecord& record, Source at) {
  LineShare& share = record.lines[line_slot(at.file, at.line)];
  if (share.file != at.file || share.line != at.line) [[unlikely]]
    detail::replace_line(share, at);
  return share;
}

// Adds to two counters of a line, on any thread; cannot fail.
inline void add_to_line(LineAccount& line, LineSum first, int64_t a, LineSum second,
                        int64_t b) noexcept {
  ThreadRecord* const record = thread_record_or_null();
  if (record != nullptr) [[likely]] {
    LineShare& share = record->lines[line.slot];
    if (share.account.load(std::memory_order_relaxed) == &line) [[likely]] {
      share.sums[first].add(a);
      share.sums[second].add(b);
      return;
    }
  }
  line.sums[first].fetch_add(a, std::memory_order_relaxed);
  line.sums[second].fetch_add(b, std::memory_order_relaxed);
}

inline void add_to_class(int index, int64_t amount) noexcept {
  ThreadRecord* const record = thread_record_or_null();
  if (record == nullptr) [[unlikely]]
    return detail::add_to_class_of_all(index, amount);
  record->classes[index].add(amount);
}

// Throws std::bad_alloc; in that case nothing has changed.
inline void charge(ThreadRecord& record, Storage& storage, Source at) {
  LineShare& share = find_line(record, at);
  storage.line = share.account.load(std::memory_order_relaxed);
  share.sums[kLineBytes].add(storage.bytes);
  share.sums[kLineCount].add(1);
  record.classes[static_cast<int>(storage.byte_class)].add(storage.bytes);
  if (storage.kind == Storage::Kind::small) record.classes[kSmallShare].add(storage.bytes);
  storage.scope = record.scope;
  if (storage.scope != nullptr) [[unlikely]] {
    retain(storage.scope);
    credit(storage.scope, storage.bytes);
  }
}

inline void discharge(const Storage& storage) noexcept {
  add_to_line(*storage.line, kLineBytes, -storage.bytes, kLineCount, -1);
  add_to_class(static_cast<int>(storage.byte_class), -storage.bytes);
  if (storage.kind == Storage::Kind::small) add_to_class(kSmallShare, -storage.bytes);
  if (storage.scope != nullptr) [[unlikely]] {
    credit(storage.scope, -storage.bytes);
    release(storage.scope);
  }
}

inline void charge_view(ThreadRecord& record, Storage& view, int64_t viewed, int64_t pinned,
                        Source at) {
  LineShare& share = find_line(record, at);
  view.line = share.account.load(std::memory_order_relaxed);
  share.sums[kLineViewed].add(viewed);
  share.sums[kLinePinned].add(pinned);
}

inline void discharge_view(const Storage& view, int64_t viewed, int64_t pinned) noexcept {
  add_to_line(*view.line, kLineViewed, -viewed, kLinePinned, -pinned);
}

}  // namespace tidemark::device

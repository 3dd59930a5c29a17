// Storage: a counted block of memory that tensors share.
//
// A Storage is the head of a Cell, a fixed-size record from a slab. The cell also has space for the
// handle's metadata (`payload`, opaque here) and for small data (`small`), so that a tiny tensor is
// one record from a thread-local free list. Larger data come from the pool (`pool.h`).
//
// Every byte is counted when it is allocated and when it is freed: in total, by class, by line and
// by scope. See docs/memory.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"
#include "tidemark/types/dtype.h"

namespace tidemark {

// Every byte belongs to one class.
enum class ByteClass : uint8_t {
  arguments,
  outputs,
  variables,
  saved,
  temporaries,
  workspace,
  constants,
  packed,
  shadow,
};
inline constexpr int kByteClasses = 9;
const char* name(ByteClass byte_class);

namespace device {

struct LineAccount;   // Counters of one source line: line_account.h.
struct ScopeAccount;  // Counters of one MemoryScope, kept while bytes credit it: scope.h.

struct Storage {
  std::atomic<int32_t> references{1};
  ByteClass byte_class = ByteClass::temporaries;
  // small: in the cell; pooled: from the pool; resource: from the user's memory resource; device:
  // in another memory, which has its own counters.
  enum class Kind : uint8_t { small, pooled, resource, borrowed, view, device } kind = Kind::small;
  bool writable = true;  // False for memory borrowed read-only.
  uint8_t memory = 0;    // device: the number of that memory (memory.h); else not set.
  std::byte* data = nullptr;
  int64_t bytes = 0;  // As granted: a multiple of 64. Borrowed storages and views are not charged.
  LineAccount* line = nullptr;
  ScopeAccount* scope = nullptr;
  void* owner = nullptr;  // pooled: the pool's record; resource: the resource; device: the memory.
};

inline constexpr int64_t kPayloadBytes = 192;
inline constexpr int64_t kSmallBytes = 64;  // Data up to this size are stored in the cell.

struct alignas(64) Cell {
  Storage storage;
  alignas(16) std::byte payload[kPayloadBytes];
  Cell* previous = nullptr;  // Storages with data outside their cell stand in one list, so that
  Cell* next = nullptr;      // an error can name the largest.
  // Small data; otherwise a description of the storage (allocate.cc).
  alignas(64) std::byte small[kSmallBytes];
};
static_assert(sizeof(Cell) == 320);

// What a storage is for: the text of reports and errors.
struct Purpose {
  DType dtype = DType::u8;
  std::span<const int64_t> sizes = {};  // Copied only for data large enough to be listed.
  Source at = Source::none();
  ByteClass byte_class = ByteClass::temporaries;
  bool together = false;  // Stands for all allocations of one call.
};

// A cell with `bytes` of uninitialised data; the caller holds one reference. Throws OutOfMemory; in
// that case nothing has changed.
Cell* allocate(int64_t bytes, const Purpose& purpose);

// Allocates several cells: all are reserved against the limit in one step, before any is allocated.
// Throws OutOfMemory with the sum of their sizes; in that case nothing has changed.
struct AllocationRequest {
  int64_t bytes = 0;
  Purpose purpose = {};
  Cell* cell = nullptr;
};
void allocate_all(std::span<AllocationRequest> wanted);

// Allocates in another memory than the host's. Throws DeviceError if it has no room.
Cell* allocate_in(int32_t memory, int64_t bytes, const Purpose& purpose);

// A cell for memory that the caller owns. `release` runs once, outside of all locks, after the last
// reference.
Cell* borrow(std::byte* data, int64_t bytes, bool writable, void (*release)(void* context),
             void* context, const Purpose& purpose);

// A cell for the metadata of a view; the caller holds one reference. Its line counts the bytes that
// the view shows and those it keeps alive; nothing is charged. No reference to `base` is taken: the
// caller must hold one as long as the view lives.
Cell* allocate_view(const Storage& base, int64_t bytes_viewed, Source at);

// Moves the bytes to another class. The caller holds a reference. Borrowed storages and views are
// not counted by class.
void reclassify(Storage& storage, ByteClass byte_class) noexcept;

inline void retain(Storage& storage) { storage.references.fetch_add(1, std::memory_order_relaxed); }
// Drops a reference, and frees the bytes and the cell if it was the last one.
void release(Storage& storage) noexcept;
// Whether the caller's reference is the only one, so that no other handle can access the bytes.
inline bool is_unshared(const Storage& storage) {
  return storage.references.load(std::memory_order_acquire) == 1;
}

// The source line that allocated a storage or a view of it.
Source source_of(const Storage& storage);

}  // namespace device
}  // namespace tidemark

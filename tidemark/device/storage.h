// Bytes with an owner, an account and a line: the memory that tensors hold.
//
// A Storage lives at the head of a Cell, a fixed-size record from a slab. The cell has room for the
// handle's metadata (`payload`, opaque here) and for small data (`small`), so that a tiny tensor is
// one record and one thread-local free-list pop. Larger data come from the pool (`pool.h`).
//
// Every byte is counted when it is granted and when it is given back: in total, by class, by line
// and by scope. See docs/memory.md.
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
  // in another memory, which has an account of its own.
  enum class Kind : uint8_t { small, pooled, resource, borrowed, view, device } kind = Kind::small;
  bool writable = true;  // False for memory borrowed read-only.
  uint8_t memory = 0;    // device: the number of that memory (memory.h); else not set.
  std::byte* data = nullptr;
  int64_t bytes = 0;  // Granted: a multiple of 64. Of a borrowed storage or a view, not charged.
  LineAccount* line = nullptr;
  ScopeAccount* scope = nullptr;
  void* owner = nullptr;  // pooled: the pool's record; resource: the resource; device: the memory.
};

inline constexpr int64_t kPayloadBytes = 192;
inline constexpr int64_t kSmallBytes = 64;  // Data up to this many bytes stand in the cell.

struct alignas(64) Cell {
  Storage storage;
  alignas(16) std::byte payload[kPayloadBytes];
  Cell* previous = nullptr;  // Storages with data outside their cell stand in one list, so that
  Cell* next = nullptr;      // an error can name the largest.
  alignas(64) std::byte small[kSmallBytes];  // Small data; else what the storage is: allocate.cc.
};
static_assert(sizeof(Cell) == 320);

// What a storage is for, so that reports and errors can name it.
struct Purpose {
  DType dtype = DType::u8;
  std::span<const int64_t> sizes = {};  // Copied only for data large enough to be listed.
  Source at = Source::none();
  ByteClass byte_class = ByteClass::temporaries;
  bool together = false;  // All that a call needs, rather than one tensor.
};

// A cell with `bytes` behind it, one reference held by the caller. Throws OutOfMemory; then nothing
// has changed. Contents are not initialised.
Cell* allocate(int64_t bytes, const Purpose& purpose);

// Several at once: all are reserved against the limit in one step, before any is taken. Throws
// OutOfMemory, which asks for their sum; then nothing has changed.
struct AllocationRequest {
  int64_t bytes = 0;
  Purpose purpose = {};
  Cell* cell = nullptr;
};
void allocate_all(std::span<AllocationRequest> wanted);

// In the memory of this number, not the host's. Throws DeviceError where it has no room.
Cell* allocate_in(int32_t memory, int64_t bytes, const Purpose& purpose);

// A cell for memory the caller owns. `release` runs once, on no lock, when the last reference goes.
Cell* borrow(std::byte* data, int64_t bytes, bool writable, void (*release)(void* context),
             void* context, const Purpose& purpose);

// A cell for the metadata of a view, with one reference held by the caller. It counts the bytes the
// view shows and the bytes it keeps alive on its line; nothing is charged. The caller holds a
// reference on `base` for as long as the view lives: none is taken here.
Cell* allocate_view(const Storage& base, int64_t bytes_viewed, Source at);

// Counts the bytes under another class from now on. The caller holds a reference; of a borrowed
// storage or a view there is nothing to count.
void reclassify(Storage& storage, ByteClass byte_class) noexcept;

inline void retain(Storage& storage) { storage.references.fetch_add(1, std::memory_order_relaxed); }
// Gives the bytes and the cell back when this was the last reference.
void release(Storage& storage) noexcept;
// True when the caller's reference is the only one: nobody else can read or write the bytes.
inline bool is_unshared(const Storage& storage) {
  return storage.references.load(std::memory_order_acquire) == 1;
}

// The line a storage (or the view of one) was asked for on.
Source source_of(const Storage& storage);

}  // namespace device
}  // namespace tidemark

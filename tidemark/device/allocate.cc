// Allocation of storages: cells from slabs, blocks from the pool, all or none of a list.
#include "tidemark/device/storage.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/device/account.h"
#include "tidemark/device/call_memory.h"
#include "tidemark/device/cells.h"
#include "tidemark/device/charge.h"
#include "tidemark/device/fault.h"
#include "tidemark/device/fork.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/out_of_memory.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/sanitizer.h"
#include "tidemark/device/scope.h"
#include "tidemark/device/thread_record.h"

namespace tidemark::device {
namespace {

// Stored in `Cell::small` if the data are elsewhere.
struct BorrowNote {
  void (*release)(void* context);
  void* context;
};
static_assert(sizeof(Description) <= kSmallBytes && sizeof(BorrowNote) <= kSmallBytes);

// --- Cells ----------------------------------------------------------------------------------

constexpr int64_t kSlabBytes = 320 << 10;
constexpr int64_t kBatch = 64;  // Cells that move at once between a thread and the shared list.
constexpr int64_t kKeepCells = 1024;  // A thread that holds more free cells passes them on.

struct Slabs {
  Lock lock;
  Cell* free = nullptr;
  std::byte* fresh = nullptr;  // The unused end of the last slab, never written.
  std::byte* end = nullptr;
};
constinit Slabs slabs;

// The link of a free list: a free cell stores it in place of its data's owner.
Cell* following(const Cell* cell) { return static_cast<Cell*>(cell->storage.owner); }
void put_before(Cell* cell, Cell* following) { cell->storage.owner = following; }

Cell* cell_of(Storage& storage) { return reinterpret_cast<Cell*>(&storage); }

void close(Cell* cell) {
  forbid(cell->payload, sizeof(cell->payload));
  forbid(cell->small, sizeof(cell->small));
}
void open(Cell* cell) {
  allow(cell->payload, sizeof(cell->payload));
  allow(cell->small, sizeof(cell->small));
}

// Under the slabs' lock. Null if the system refuses.
Cell* fresh_cell() {
  if (slabs.fresh == slabs.end) {
    std::byte* const slab = map_pages(kSlabBytes, MappingOwner::handles);
    if (slab == nullptr) return nullptr;
    look_into(slab, kSlabBytes);
    slabs.fresh = slab;
    slabs.end = slab + kSlabBytes;
  }
  Cell* const cell = new (slabs.fresh) Cell;
  slabs.fresh += sizeof(Cell);
  close(cell);
  return cell;
}

void push(ThreadRecord& record, Cell* cell) {
  put_before(cell, record.free_cells);
  record.free_cells = cell;
  ++record.free_cell_count;
}

Cell* pop(ThreadRecord& record) {
  Cell* const cell = record.free_cells;
  record.free_cells = following(cell);
  --record.free_cell_count;
  return cell;
}

// Fetches free cells for the thread; false if there are none. Throws std::bad_alloc.
[[gnu::noinline]] bool refill(ThreadRecord& record) {
  install_fork_handlers();
  const std::lock_guard guard(slabs.lock);
  for (int64_t i = 0; i < kBatch; ++i) {
    Cell* cell = slabs.free;
    if (cell != nullptr) {
      slabs.free = following(cell);
    } else {
      cell = fresh_cell();
    }
    if (cell == nullptr) break;
    push(record, cell);
  }
  return record.free_cells != nullptr;
}

[[gnu::noinline]] void hand_on(ThreadRecord& record, int64_t keep) noexcept {
  const std::lock_guard guard(slabs.lock);
  while (record.free_cell_count > keep) {
    Cell* const cell = pop(record);
    put_before(cell, slabs.free);
    slabs.free = cell;
  }
}

Cell* take_cell(ThreadRecord& record) {
  if (record.free_cells == nullptr && !refill(record)) [[unlikely]]
    return nullptr;
  Cell* const cell = pop(record);
  open(cell);
  cell->storage.references.store(1, std::memory_order_relaxed);
  return cell;
}

void put_cell(Cell* cell) noexcept {
  close(cell);
  cell->storage.data = nullptr;  // Tells `for_each_cell` that the cell is free.
  ThreadRecord* const record = thread_record_or_null();
  if (record != nullptr) [[likely]] {
    push(*record, cell);
    if (record->free_cell_count > kKeepCells) [[unlikely]]
      hand_on(*record, kKeepCells / 2);
    return;
  }
  const std::lock_guard guard(slabs.lock);
  put_before(cell, slabs.free);
  slabs.free = cell;
}

// --- The list of storages with data outside their cell --------------------------------------

// Guarded by the pool's lock, which every grant takes anyway.
constinit Cell* listed = nullptr;

void enlist(Cell* cell) {
  lock_pool();
  cell->previous = nullptr;
  cell->next = listed;
  if (listed != nullptr) listed->previous = cell;
  listed = cell;
  unlock_pool();
}

void delist(Cell* cell) noexcept {
  lock_pool();
  if (cell->previous != nullptr) {
    cell->previous->next = cell->next;
  } else {
    listed = cell->next;
  }
  if (cell->next != nullptr) cell->next->previous = cell->previous;
  unlock_pool();
}

OutOfMemoryRecord::Holder holder_of(const Cell& cell) {
  const auto* const what = reinterpret_cast<const Description*>(cell.small);
  return {*what, source_of(cell.storage), cell.storage.byte_class, cell.storage.bytes};
}

// Keeps the list sorted, largest first; equal sizes in the order they were made, oldest first.
void consider(OutOfMemoryRecord& record, const Cell& cell) {
  int at = record.listed;
  while (at > 0 && record.largest[at - 1].bytes <= cell.storage.bytes) --at;
  if (at == OutOfMemoryRecord::kListed) return;
  record.listed = std::min(record.listed + 1, OutOfMemoryRecord::kListed);
  for (int i = record.listed - 1; i > at; --i) record.largest[i] = record.largest[i - 1];
  record.largest[at] = holder_of(cell);
}

[[noreturn, gnu::noinline]] void refuse(int64_t bytes, const Purpose& purpose, Refusal why,
                                        const OutOfMemoryRecord::Wait& wait = {}) {
  OutOfMemoryRecord record;
  record.wait = wait;
  record.what = Description::of(purpose);
  record.at = purpose.at.resolve();
  record.why = why;
  record.asked = bytes;
  record.limit = limit_bytes();
  lock_pool();
  record.in_use = counters.in_use.load(std::memory_order_relaxed);
  record.cached = counters.cached.load(std::memory_order_relaxed);
  for (const Cell* cell = listed; cell != nullptr; cell = cell->next) consider(record, *cell);
  unlock_pool();
  throw OutOfMemory(record);
}

// --- Allocating -----------------------------------------------------------------------------

// Turns a failed allocation of the library's own records into an OutOfMemory like any other.
template <class Body>
Cell* refusing(int64_t bytes, const Purpose& purpose, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    refuse(bytes, purpose, Refusal::system);
  }
}

Cell* cell_for(int64_t bytes, const Purpose& purpose) {
  Cell* const cell = take_cell(thread_record());
  if (cell == nullptr) refuse(bytes, purpose, Refusal::system);
  cell->storage.byte_class = purpose.byte_class;
  cell->storage.writable = true;
  cell->storage.owner = nullptr;
  cell->storage.scope = nullptr;
  return cell;
}

[[gnu::noinline]] void reserve_small_slowly(Cell* cell, int64_t bytes, const Purpose& purpose) {
  if (reserve_with_relief(bytes)) return;
  put_cell(cell);
  refuse(bytes, purpose, Refusal::limit);
}

Cell* allocate_small(int64_t bytes, const Purpose& purpose) {
  if (fault::strikes(fault::Site::pool)) [[unlikely]]
    refuse(bytes, purpose, Refusal::system);
  Cell* const cell = cell_for(bytes, purpose);
  cell->storage.kind = Storage::Kind::small;
  cell->storage.data = cell->small;
  cell->storage.bytes = bytes;
  if (!reserve(bytes)) [[unlikely]]
    reserve_small_slowly(cell, bytes, purpose);
  try {
    charge(thread_record(), cell->storage, purpose.at.resolve());
  } catch (...) {
    unreserve(bytes);
    put_cell(cell);
    throw;
  }
  raise_peak();
  return cell;
}

struct BlockOfKind {
  Block block;
  Storage::Kind kind = Storage::Kind::pooled;
};

BlockOfKind grant_any(int64_t bytes, Refusal& why) {
  if (std::pmr::memory_resource* const source = resource()) {
    return {grant_from_resource(*source, bytes, why), Storage::Kind::resource};
  }
  return {grant(bytes, why), Storage::Kind::pooled};
}

void set_block(Storage& storage, const BlockOfKind& granted, int64_t bytes) {
  storage.kind = granted.kind;
  storage.data = granted.block.data;
  storage.owner = granted.block.owner;
  storage.bytes = bytes;
}

void give_any(const Storage& storage) noexcept {
  const Block block = {storage.data, storage.owner};
  storage.kind == Storage::Kind::resource ? give_to_resource(block, storage.bytes)
                                          : give(block, storage.bytes);
}

Cell* allocate_block(int64_t bytes, const Purpose& purpose) {
  Cell* const cell = cell_for(bytes, purpose);
  Storage& storage = cell->storage;
  Refusal why = Refusal::none;
  try {
    const BlockOfKind granted = grant_any(bytes, why);
    if (granted.block.data == nullptr) refuse(bytes, purpose, why);
    set_block(storage, granted, bytes);
  } catch (...) {
    put_cell(cell);
    throw;
  }
  try {
    charge(thread_record(), storage, purpose.at.resolve());
  } catch (...) {
    give_any(storage);
    put_cell(cell);
    throw;
  }
  raise_peak();
  new (cell->small) Description(Description::of(purpose));
  enlist(cell);
  return cell;
}

void return_bytes(Cell* cell) noexcept {
  Storage& storage = cell->storage;
  switch (storage.kind) {
    case Storage::Kind::small:
      discharge(storage);
      unreserve(storage.bytes);
      break;
    case Storage::Kind::pooled:
    case Storage::Kind::resource:
      delist(cell);
      discharge(storage);
      give_any(storage);
      break;
    case Storage::Kind::device:
      if (storage.bytes > 0) static_cast<Memory*>(storage.owner)->give(storage.data, storage.bytes);
      break;
    case Storage::Kind::borrowed:
    case Storage::Kind::view:
      break;
  }
}

// --- Allocating several ---------------------------------------------------------------------

bool is_small(const AllocationRequest& wanted) { return wanted.bytes <= kSmallBytes; }

// The blocks of the requests that do not fit into their cells, in order.
using Grants = CallList<Grant>;

bool grant_all_any(Grants& grants, int64_t in_cells, std::pmr::memory_resource* source,
                   Refusal& why) {
  const std::span<Grant> blocks(grants.data(), grants.size());
  return source != nullptr ? grant_all_from_resource(*source, blocks, in_cells, why)
                           : grant_all(blocks, in_cells, why);
}

// Allocates everything. If it throws, the caller undoes the rest: `charged` and the kind of each
// cell's storage say how far it came.
void take_all(std::span<AllocationRequest> wanted, const Purpose& together, int64_t total,
              size_t& charged) {
  Grants grants;
  grants.reserve(wanted.size());
  int64_t in_cells = 0;
  for (AllocationRequest& each : wanted) {
    each.cell = cell_for(each.bytes, each.purpose);
    each.cell->storage.kind = Storage::Kind::borrowed;  // There is nothing to free yet.
    if (is_small(each))
      in_cells += each.bytes;
    else
      grants.emplace_back().bytes = each.bytes;
  }
  std::pmr::memory_resource* const source = resource();
  Refusal why = Refusal::none;
  if (!grant_all_any(grants, in_cells, source, why)) refuse(total, together, why);
  const Grant* next = grants.data();
  for (AllocationRequest& each : wanted) {
    Storage& storage = each.cell->storage;
    if (is_small(each)) {
      storage.kind = Storage::Kind::small;
      storage.data = each.cell->small;
      storage.bytes = each.bytes;
    } else {
      set_block(storage,
                {next->block, source != nullptr ? Storage::Kind::resource : Storage::Kind::pooled},
                next->bytes);
      ++next;
    }
  }
  for (AllocationRequest& each : wanted) {
    charge(thread_record(), each.cell->storage, each.purpose.at.resolve());
    ++charged;
  }
}

void undo(std::span<AllocationRequest> wanted, size_t charged) noexcept {
  for (size_t i = 0; i < wanted.size() && wanted[i].cell != nullptr; ++i) {
    Storage& storage = wanted[i].cell->storage;
    if (i < charged) discharge(storage);
    if (storage.kind == Storage::Kind::small)
      unreserve(storage.bytes);
    else if (storage.kind != Storage::Kind::borrowed)
      give_any(storage);
    put_cell(wanted[i].cell);
    wanted[i].cell = nullptr;
  }
}

}  // namespace

void give_cells_back(ThreadRecord& record) noexcept { hand_on(record, 0); }

void for_each_cell(FunctionRef<void(const Cell&)> visit) {
  const std::vector<MappedRange> ranges = mapped_ranges();
  const std::lock_guard guard(slabs.lock);
  for (const MappedRange& range : ranges) {
    if (range.owner != MappingOwner::handles) continue;
    const std::byte* const end = range.end == slabs.end ? slabs.fresh : range.end;
    for (const std::byte* at = range.begin; at < end; at += sizeof(Cell)) {
      const Cell& cell = *reinterpret_cast<const Cell*>(at);
      if (cell.storage.data != nullptr) visit(cell);
    }
  }
}

void refuse_after(const OutOfMemoryRecord::Wait& wait, int64_t bytes, Source at) {
  refuse(bytes, {.at = at, .together = true}, Refusal::limit, wait);
}

void lock_slabs() { slabs.lock.lock(); }
void unlock_slabs() { slabs.lock.unlock(); }

Cell* allocate(int64_t bytes, const Purpose& purpose) {
  TIDEMARK_CHECK(bytes >= 0, "a storage of ", bytes, " bytes");
  // Larger requests always fail, and sums of smaller ones cannot overflow.
  if (bytes > int64_t{1} << 60) refuse(bytes, purpose, Refusal::limit);
  const int64_t granted = granted_bytes(bytes);
  Cell* const cell = refusing(granted, purpose, [&] {
    return granted <= kSmallBytes ? allocate_small(granted, purpose)
                                  : allocate_block(granted, purpose);
  });
#ifdef TIDEMARK_DEBUG
  check_accounts();
#endif
  return cell;
}

void allocate_all(std::span<AllocationRequest> wanted) {
  if (wanted.empty()) return;
  int64_t total = 0;
  for (AllocationRequest& each : wanted) {
    TIDEMARK_CHECK(each.bytes >= 0, "a storage of ", each.bytes, " bytes");
    if (each.bytes > int64_t{1} << 56) refuse(each.bytes, each.purpose, Refusal::limit);
    each.bytes = granted_bytes(each.bytes);
    total += each.bytes;
  }
  const Purpose together = {.at = wanted[0].purpose.at, .together = true};
  size_t charged = 0;
  try {
    take_all(wanted, together, total, charged);
  } catch (const std::bad_alloc&) {
    undo(wanted, charged);
    refuse(total, together, Refusal::system);
  } catch (...) {
    undo(wanted, charged);
    throw;
  }
  raise_peak();
  for (AllocationRequest& each : wanted) {
    if (is_small(each)) continue;
    new (each.cell->small) Description(Description::of(each.purpose));
    enlist(each.cell);
  }
#ifdef TIDEMARK_DEBUG
  check_accounts();
#endif
}

Cell* allocate_in(int32_t number, int64_t bytes, const Purpose& purpose) {
  Memory& there = memory(number);
  return refusing(0, purpose, [&] {
    ThreadRecord& record = thread_record();
    LineAccount* const line = find_line(record, purpose.at.resolve()).account.load();
    Cell* const cell = cell_for(0, purpose);
    Storage& storage = cell->storage;
    storage.kind = Storage::Kind::device;
    storage.memory = static_cast<uint8_t>(number);
    storage.owner = &there;
    storage.line = line;
    storage.bytes = granted_bytes(bytes);
    try {
      storage.data = storage.bytes > 0 ? there.take(storage.bytes) : cell->small;
    } catch (...) {
      put_cell(cell);
      throw;
    }
    return cell;
  });
}

Cell* borrow(std::byte* data, int64_t bytes, bool writable, void (*release)(void* context),
             void* context, const Purpose& purpose) {
  return refusing(0, purpose, [&] {
    ThreadRecord& record = thread_record();
    LineAccount* const line = find_line(record, purpose.at.resolve()).account.load();
    Cell* const cell = cell_for(0, purpose);
    cell->storage.kind = Storage::Kind::borrowed;
    cell->storage.writable = writable;
    cell->storage.data = data;
    cell->storage.bytes = bytes;
    cell->storage.line = line;
    new (cell->small) BorrowNote{release, context};
    counters.borrowed.fetch_add(bytes, std::memory_order_relaxed);
    return cell;
  });
}

Cell* allocate_view(const Storage& base, int64_t bytes_viewed, Source at) {
  // The class of a view does not count, and that of its base may change meanwhile.
  const Purpose purpose = {.at = at};
  return refusing(0, purpose, [&] {
    Cell* const cell = cell_for(0, purpose);
    cell->storage.kind = Storage::Kind::view;
    cell->storage.writable = base.writable;
    cell->storage.data = base.data;
    cell->storage.bytes = bytes_viewed;
    const int64_t pinned = base.bytes;
    try {
      charge_view(thread_record(), cell->storage, bytes_viewed, pinned, at.resolve());
    } catch (...) {
      put_cell(cell);
      throw;
    }
    new (cell->small) int64_t(pinned);
    return cell;
  });
}

void reclassify(Storage& storage, ByteClass byte_class) noexcept {
  // The pool's lock: an error on another thread may be reading the class of every listed storage.
  lock_pool();
  const ByteClass before = std::exchange(storage.byte_class, byte_class);
  unlock_pool();
  if (storage.kind == Storage::Kind::borrowed || storage.kind == Storage::Kind::view ||
      storage.kind == Storage::Kind::device)
    return;
  add_to_class(static_cast<int>(before), -storage.bytes);
  add_to_class(static_cast<int>(byte_class), storage.bytes);
}

void release(Storage& storage) noexcept {
  // With a single reference, the caller's, no other thread can make a second one.
  if (!is_unshared(storage) && storage.references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  Cell* const cell = cell_of(storage);
  BorrowNote note = {nullptr, nullptr};
  if (storage.kind == Storage::Kind::borrowed) {
    note = *reinterpret_cast<const BorrowNote*>(cell->small);
    counters.borrowed.fetch_sub(storage.bytes, std::memory_order_relaxed);
  } else if (storage.kind == Storage::Kind::view) {
    discharge_view(storage, storage.bytes, *reinterpret_cast<const int64_t*>(cell->small));
  } else {
    return_bytes(cell);
  }
  put_cell(cell);
#ifdef TIDEMARK_DEBUG
  check_accounts();
#endif
  // Last, outside of all locks and after the cell was freed: the callback may do anything except
  // throw.
  if (note.release != nullptr) note.release(note.context);
}

}  // namespace tidemark::device

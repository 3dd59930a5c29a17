#include "tidemark/device/pool.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory_resource>
#include <mutex>
#include <new>

#include "tidemark/base/lock.h"
#include "tidemark/device/account.h"
#include "tidemark/device/fault.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/sanitizer.h"
#include "tidemark/device/spans.h"

namespace tidemark::device {
namespace {

constexpr int64_t kChunkBytes = 64 << 10;
// The cache never raises the held bytes by more than this above the peak of bytes in use.
constexpr int64_t kCacheSlack = 4 << 20;

struct FreeBlock {
  FreeBlock* next;
};

// A span cut into blocks of one size class.
struct Chunk {
  Span* span = nullptr;
  int size_class = 0;
  int64_t used = 0;           // Blocks granted now.
  int64_t carved = 0;         // Blocks ever granted; the bytes after them were never written.
  FreeBlock* free = nullptr;  // Freed blocks.
  Chunk* previous = nullptr;  // In the list of chunks of this class that have free blocks.
  Chunk* next = nullptr;
};

// Multiples of 64 up to 1 KiB, then eight per power of two.
constexpr int kExactClasses = 16;
constexpr int kClasses = kExactClasses + 3 * 8;

constexpr int class_of(int64_t bytes) {
  if (bytes <= 1024) return static_cast<int>((bytes - 1) / 64);
  const auto last = static_cast<uint64_t>(bytes - 1);
  const int log = std::bit_width(last) - 1;  // 10 for 1025 .. 2048.
  return kExactClasses + (log - 10) * 8 + static_cast<int>((last >> (log - 3)) & 7U);
}
constexpr int64_t class_bytes(int size_class) {
  if (size_class < kExactClasses) return (size_class + 1) * 64;
  const int step = size_class - kExactClasses;
  return ((int64_t{1024} << (step / 8)) / 8) * (8 + step % 8 + 1);
}
static_assert(class_of(kSmallBlock) == kClasses - 1 && class_bytes(kClasses - 1) == kSmallBlock);
static_assert(class_of(1088) == kExactClasses && class_bytes(kExactClasses) == 1152);

// Constant-initialised and never destroyed: tensors in static storage are freed after main.
struct Pool {
  Lock lock;
  Spans spans;
  Chunk* roomy[kClasses] = {};  // Chunks with free blocks.
  // At most one chunk per class without granted blocks, kept for reuse.
  Chunk* empty[kClasses] = {};
  Chunk* spare = nullptr;
};
constinit Pool pool;
constinit std::atomic<std::pmr::memory_resource*> user_resource{nullptr};

void add_cached(int64_t bytes) { counters.cached.fetch_add(bytes, std::memory_order_relaxed); }

// --- Chunks ---------------------------------------------------------------------------------

void enlist(Chunk* chunk) {
  Chunk*& head = pool.roomy[chunk->size_class];
  chunk->previous = nullptr;
  chunk->next = head;
  if (head != nullptr) head->previous = chunk;
  head = chunk;
}

void delist(Chunk* chunk) {
  if (chunk->previous != nullptr) {
    chunk->previous->next = chunk->next;
  } else {
    pool.roomy[chunk->size_class] = chunk->next;
  }
  if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
}

bool is_full(const Chunk& chunk) {
  return chunk.free == nullptr && (chunk.carved + 1) * class_bytes(chunk.size_class) > kChunkBytes;
}

Chunk* new_chunk() {
  if (pool.spare == nullptr) return new Chunk;
  Chunk* const chunk = pool.spare;
  pool.spare = chunk->next;
  *chunk = Chunk{};
  return chunk;
}

void drop(Chunk* chunk) {
  chunk->next = pool.spare;
  pool.spare = chunk;
}

std::byte* cut(Chunk* chunk) {
  const int64_t size = class_bytes(chunk->size_class);
  std::byte* data = nullptr;
  if (chunk->free != nullptr) {
    data = reinterpret_cast<std::byte*>(chunk->free);
    allow(data, sizeof(FreeBlock));
    chunk->free = chunk->free->next;
  } else {
    data = chunk->span->begin + chunk->carved++ * size;
  }
  ++chunk->used;
  if (is_full(*chunk)) delist(chunk);
  return data;
}

// Returns the empty chunk of a class to the spans. Its pages were cached and stay cached.
void dissolve(Chunk* chunk) noexcept {
  delist(chunk);
  pool.empty[chunk->size_class] = nullptr;
  forbid(chunk->span->begin, kChunkBytes);
  pool.spans.put(chunk->span);
  drop(chunk);
}

// --- Returning cached memory to the system --------------------------------------------------

int64_t give_back(int64_t wanted) noexcept {
  if (wanted <= 0) return 0;
  for (Chunk* chunk : pool.empty) {
    if (chunk != nullptr) dissolve(chunk);
  }
  const int64_t given = pool.spans.give_back(wanted);
  add_cached(-given);
  return given;
}

int64_t held_bytes() {
  return counters.in_use.load(std::memory_order_relaxed) +
         counters.cached.load(std::memory_order_relaxed);
}

// Freed memory is cached in whole pages and chunks, which may be more bytes than were granted.
void keep_within_limit() noexcept {
  const int64_t excess = held_bytes() - counters.limit.load(std::memory_order_relaxed);
  if (excess > 0) give_back(excess);
}

// --- Granting, under the lock ---------------------------------------------------------------

// Reserves `bytes` that are new to the process, except for `relief` bytes that were cached and are
// about to be reused.
bool reserve_fresh(int64_t bytes, int64_t relief = 0) {
  const int64_t in_use = counters.in_use.load(std::memory_order_relaxed);
  const int64_t ceiling = std::max(highest_in_use(), in_use + bytes) + kCacheSlack;
  give_back(held_bytes() - relief + bytes - ceiling);
  if (reserve(bytes, relief)) return true;
  // One more try without the cache, then it fails: allocation never waits for memory.
  give_back(held_bytes() - relief + bytes - limit_bytes());
  return reserve(bytes, relief);
}

// The chunk that the next block of a class is cut from; chunks in use come before an empty one.
Chunk* roomy_chunk(int size_class) {
  Chunk* const first = pool.roomy[size_class];
  const bool skip = first != nullptr && first->used == 0 && first->next != nullptr;
  return skip ? first->next : first;
}

// The cached bytes that granting a block would reuse.
int64_t relief_for(int64_t bytes) {
  int64_t pages = whole_pages(bytes);
  if (bytes <= kSmallBlock) {
    pages = kChunkBytes;
    const Chunk* const chunk = roomy_chunk(class_of(bytes));
    if (chunk != nullptr) return chunk->used == 0 ? pages : 0;
  }
  return pool.spans.best_cached(pages) != nullptr ? pages : 0;
}

bool reserve_block(int64_t bytes) {
  const int64_t relief = relief_for(bytes);
  return (relief > 0 && reserve(bytes, relief)) || reserve_fresh(bytes);
}

// The following functions add the cached bytes that they reuse to `uncached`; these still count as
// cached until the caller subtracts them.
Span* take_span(int64_t pages, int64_t& uncached) {
  Span* const cached = pool.spans.best_cached(pages);
  Span* const span = pool.spans.take(pages, cached);
  if (span != nullptr && cached != nullptr) uncached += pages;
  return span;
}

// Null if the system refuses even after the cache was returned to it.
Span* take_span_with_relief(int64_t pages, int64_t& uncached) {
  Span* const span = take_span(pages, uncached);
  if (span != nullptr || give_back(std::numeric_limits<int64_t>::max()) == 0) return span;
  return take_span(pages, uncached);
}

Chunk* make_chunk(int size_class, int64_t& uncached) {
  Chunk* const chunk = new_chunk();
  try {
    chunk->span = take_span_with_relief(kChunkBytes, uncached);
  } catch (...) {
    drop(chunk);
    throw;
  }
  if (chunk->span == nullptr) {
    drop(chunk);
    return nullptr;
  }
  chunk->size_class = size_class;
  enlist(chunk);
  return chunk;
}

Block place_small(int64_t bytes, int64_t& uncached) {
  const int size_class = class_of(bytes);
  Chunk* chunk = roomy_chunk(size_class);
  if (chunk == nullptr) {
    chunk = make_chunk(size_class, uncached);
    if (chunk == nullptr) return {};
  } else if (chunk->used == 0) {
    pool.empty[size_class] = nullptr;
    uncached += kChunkBytes;
  }
  return {cut(chunk), chunk};
}

Block place(int64_t bytes, int64_t& uncached) {
  const Block block = [&]() -> Block {
    if (bytes <= kSmallBlock) return place_small(bytes, uncached);
    Span* const span = take_span_with_relief(whole_pages(bytes), uncached);
    return span == nullptr ? Block{} : Block{span->begin, span};
  }();
  if (block.data != nullptr) allow(block.data, bytes);
  return block;
}

// Whether a block can be granted without new pages from the system.
bool is_at_hand(int64_t bytes) {
  return relief_for(bytes) > 0 || (bytes <= kSmallBlock && roomy_chunk(class_of(bytes)) != nullptr);
}

void give_small(Block block, int64_t bytes) noexcept {
  auto* const chunk = static_cast<Chunk*>(block.owner);
  const bool was_full = is_full(*chunk);
  auto* const free = new (block.data) FreeBlock{chunk->free};
  chunk->free = free;
  forbid(block.data, bytes);
  if (was_full) enlist(chunk);
  if (--chunk->used > 0) return;
  add_cached(kChunkBytes);
  Chunk* const kept = pool.empty[chunk->size_class];
  pool.empty[chunk->size_class] = chunk;
  if (kept != nullptr) {
    // There are two empty chunks: the older one is dissolved, which clears the entry, so it is set
    // again.
    dissolve(kept);
    pool.empty[chunk->size_class] = chunk;
  }
}

void put_back(Block block, int64_t bytes) noexcept {
  if (bytes <= kSmallBlock) return give_small(block, bytes);
  forbid(block.data, bytes);
  auto* const span = static_cast<Span*>(block.owner);
  add_cached(span->bytes);
  pool.spans.put(span);
}

// --- Several blocks ---------------------------------------------------------------------------

// Blocks that are granted together; they are freed again unless they are kept. Cached memory is
// taken first, since that makes room in the limit; new memory is mapped only after everything is
// reserved.
class GrantBatch {
 public:
  GrantBatch(std::span<Grant> grants, int64_t total) : grants_(grants), total_(total) {}
  ~GrantBatch() {
    add_cached(-uncached_);
    if (kept_) return;
    for (Grant& grant : grants_) {
      if (grant.block.data == nullptr) continue;
      put_back(grant.block, grant.bytes);
      grant.block = {};
    }
    if (reserved_) unreserve(total_);
    keep_within_limit();
  }
  GrantBatch(const GrantBatch&) = delete;
  GrantBatch& operator=(const GrantBatch&) = delete;

  Refusal take() {
    for (Grant& grant : grants_)
      if (is_at_hand(grant.bytes)) grant.block = place(grant.bytes, uncached_);
    reserved_ = reserve_fresh(total_, uncached_);
    if (!reserved_) return Refusal::limit;
    for (Grant& grant : grants_) {
      if (grant.block.data == nullptr) grant.block = place(grant.bytes, uncached_);
      if (grant.block.data == nullptr) return Refusal::system;
    }
    kept_ = true;
    return Refusal::none;
  }

 private:
  std::span<Grant> grants_;
  int64_t total_;
  int64_t uncached_ = 0;
  bool reserved_ = false, kept_ = false;
};

int64_t total_of(std::span<const Grant> grants, int64_t more) {
  for (const Grant& grant : grants) more += grant.bytes;
  return more;
}

bool any_strikes(std::span<const Grant> grants) {
  return std::any_of(grants.begin(), grants.end(),
                     [](const Grant&) { return fault::strikes(fault::Site::pool); });
}

// --- The user's own allocator ---------------------------------------------------------------

Block grant_from(std::pmr::memory_resource& source, int64_t bytes, Refusal& why) {
  {
    const std::lock_guard guard(pool.lock);
    if (!reserve_fresh(bytes)) {
      why = Refusal::limit;
      return {};
    }
  }
  // Outside of all locks: the resource is the user's code.
  try {
    void* const data = source.allocate(static_cast<size_t>(bytes), kAlignment);
    counters.foreign.fetch_add(bytes, std::memory_order_relaxed);
    return {static_cast<std::byte*>(data), &source};
  } catch (const std::bad_alloc&) {
    unreserve(bytes);
    why = Refusal::system;
    return {};
  } catch (...) {
    unreserve(bytes);
    throw;
  }
}

}  // namespace

Block grant(int64_t bytes, Refusal& why) {
  limit_bytes();
  if (fault::strikes(fault::Site::pool)) {
    why = Refusal::system;
    return {};
  }
  const std::lock_guard guard(pool.lock);
  if (!reserve_block(bytes)) {
    why = Refusal::limit;
    return {};
  }
  int64_t uncached = 0;
  try {
    const Block block = place(bytes, uncached);
    add_cached(-uncached);
    if (block.data != nullptr) return block;
  } catch (...) {
    unreserve(bytes);
    throw;
  }
  unreserve(bytes);
  why = Refusal::system;
  return {};
}

void give(Block block, int64_t bytes) noexcept {
  const std::lock_guard guard(pool.lock);
  put_back(block, bytes);
  // Last, so that the held bytes are never reported too small.
  unreserve(bytes);
  keep_within_limit();
}

bool grant_all(std::span<Grant> grants, int64_t more, Refusal& why) {
  limit_bytes();
  if (any_strikes(grants)) {
    why = Refusal::system;
    return false;
  }
  const std::lock_guard guard(pool.lock);
  GrantBatch batch(grants, total_of(grants, more));
  why = batch.take();
  return why == Refusal::none;
}

bool grant_all_from_resource(std::pmr::memory_resource& source, std::span<Grant> grants,
                             int64_t more, Refusal& why) {
  limit_bytes();
  const int64_t total = total_of(grants, more);
  if (any_strikes(grants)) {
    why = Refusal::system;
    return false;
  }
  {
    const std::lock_guard guard(pool.lock);
    if (!reserve_fresh(total)) {
      why = Refusal::limit;
      return false;
    }
  }
  // Outside of all locks: the resource is the user's code.
  size_t made = 0;
  const auto undo = [&] {
    for (size_t i = 0; i < made; ++i) {
      source.deallocate(grants[i].block.data, static_cast<size_t>(grants[i].bytes), kAlignment);
      counters.foreign.fetch_sub(grants[i].bytes, std::memory_order_relaxed);
    }
    unreserve(total);
  };
  try {
    for (Grant& grant : grants) {
      void* const data = source.allocate(static_cast<size_t>(grant.bytes), kAlignment);
      grant.block = {static_cast<std::byte*>(data), &source};
      counters.foreign.fetch_add(grant.bytes, std::memory_order_relaxed);
      ++made;
    }
  } catch (const std::bad_alloc&) {
    undo();
    why = Refusal::system;
    return false;
  } catch (...) {
    undo();
    throw;
  }
  return true;
}

Block grant_from_resource(std::pmr::memory_resource& source, int64_t bytes, Refusal& why) {
  limit_bytes();
  if (fault::strikes(fault::Site::pool)) {
    why = Refusal::system;
    return {};
  }
  return grant_from(source, bytes, why);
}

void give_to_resource(Block block, int64_t bytes) noexcept {
  static_cast<std::pmr::memory_resource*>(block.owner)
      ->deallocate(block.data, static_cast<size_t>(bytes), kAlignment);
  counters.foreign.fetch_sub(bytes, std::memory_order_relaxed);
  unreserve(bytes);
}

int64_t release_cached() noexcept {
  const std::lock_guard guard(pool.lock);
  return give_back(std::numeric_limits<int64_t>::max());
}

bool reserve_with_relief(int64_t bytes) noexcept {
  const int64_t limit = limit_bytes();
  const std::lock_guard guard(pool.lock);
  give_back(held_bytes() + bytes - limit);
  return reserve(bytes);
}

void set_limit_bytes(int64_t bytes) {
  counters.limit.store(std::max<int64_t>(1, bytes));
  signal_if_room(counters.in_use.load());
  const std::lock_guard guard(pool.lock);
  keep_within_limit();
}

std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource) {
  return user_resource.exchange(resource);
}
std::pmr::memory_resource* resource() { return user_resource.load(std::memory_order_relaxed); }

void lock_pool() { pool.lock.lock(); }
void unlock_pool() { pool.lock.unlock(); }

}  // namespace tidemark::device

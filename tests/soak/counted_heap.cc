#include "tests/soak/counted_heap.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> live_blocks{0};
std::atomic<int64_t> asked{0};
std::atomic<int64_t> until_failure{0};  // 0: none is to fail.
std::atomic<bool> stays_empty{false};   // Once one has failed, all do.
std::atomic<bool> empty{false};

bool fails() {
  asked.fetch_add(1, std::memory_order_relaxed);
  if (empty.load(std::memory_order_relaxed)) return true;
  const int64_t left = until_failure.load(std::memory_order_relaxed);
  if (left <= 0 || until_failure.fetch_sub(1, std::memory_order_relaxed) != 1) return false;
  empty.store(stays_empty.load());
  return true;
}

// In front of every block. The C library may grant a few bytes more than asked for, depending on
// what lay there before; what was asked for is the same each time.
struct alignas(16) Head {
  void* granted;
  size_t bytes;
};

Head& head_of(void* block) { return static_cast<Head*>(block)[-1]; }

}  // namespace

// The allocator that stands behind those below.
extern "C" {
void* __libc_malloc(size_t bytes);
void __libc_free(void* block);

void* memalign(size_t alignment, size_t bytes) {
  if (fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  alignment = std::max(alignment, alignof(Head));
  void* const granted = __libc_malloc(bytes + sizeof(Head) + alignment);
  if (granted == nullptr) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(granted) + sizeof(Head);
  void* const block = reinterpret_cast<void*>((first + alignment - 1) / alignment * alignment);
  head_of(block) = {granted, bytes};
  live_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  live_blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}
void* malloc(size_t bytes) { return memalign(alignof(Head), bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* calloc(size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return nullptr;
  void* const block = malloc(bytes);
  // Volatile: or the compiler sees that this is calloc, and calls it.
  void* volatile zeroed = block;
  if (block != nullptr) std::memset(zeroed, 0, bytes);
  return block;
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  if (block == nullptr) return;
  live_bytes.fetch_sub(static_cast<int64_t>(head_of(block).bytes), std::memory_order_relaxed);
  live_blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(head_of(block).granted);
}
void* realloc(void* block, size_t bytes) {
  void* const moved = malloc(bytes);
  if (block == nullptr || moved == nullptr) return moved;
  std::memcpy(moved, block, std::min(bytes, head_of(block).bytes));
  free(block);
  return moved;
}
size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : head_of(block).bytes; }
}  // extern "C"

namespace tidemark::testing {

int64_t live_heap_bytes() { return live_bytes.load(); }
int64_t live_heap_blocks() { return live_blocks.load(); }
int64_t heap_allocations() { return asked.load(); }
void fail_heap_allocation(int64_t number, bool and_all_after) {
  stays_empty.store(and_all_after);
  until_failure.store(number);
}
bool heap_failure_is_pending() {
  empty.store(false);
  return until_failure.exchange(0) > 0;
}

}  // namespace tidemark::testing

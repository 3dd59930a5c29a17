#include "tidemark/emit/llvm/reserve.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "tidemark/base/lock.h"
#include "tidemark/device/mapping.h"

namespace tidemark::jit {
namespace {

constexpr int kNone = -1;
constexpr int kClasses = 48;  // Of pieces, by the power of two that holds them.

// In front of a piece.
struct alignas(16) Head {
  std::byte* whole;  // The beginning of the piece before alignment.
  uint32_t block;
  uint32_t size_class;
};
struct Free {
  Free* next;
};

struct Block {
  std::byte* begin = nullptr;  // Null: there is no block.
  int64_t bytes = 0, used = 0;
  int64_t live = 0;  // Pieces that are not freed.
  bool in_use = false;
  Free* free[kClasses] = {};
};

// Blocks of running compiles, and those of which LLVM still uses a piece: of a code generator that
// is reused, or of a global object.
struct Blocks {
  static constexpr int kMost = 64;
  Lock lock;
  std::atomic<int64_t> live{0};  // Pieces of all.
  Block all[kMost];
};
constinit Blocks blocks;

constinit thread_local int current __attribute__((tls_model("initial-exec"))) = kNone;

Block& block_of(int number) { return blocks.all[number]; }

// Under the lock.
void unmap_if_done(Block& block) {
  if (block.begin == nullptr || block.in_use || block.live > 0) return;
  device::unmap_pages(block.begin, block.bytes);
  block = {};
}

int empty_place() {
  for (int i = 0; i < Blocks::kMost; ++i)
    if (block_of(i).begin == nullptr) return i;
  throw std::bad_alloc();
}

// Under the lock; null if the block is exhausted.
std::byte* take_piece(Block& block, uint32_t size_class) {
  if (Free* const free = block.free[size_class]) {
    block.free[size_class] = free->next;
    return reinterpret_cast<std::byte*>(free);
  }
  const int64_t bytes = int64_t{1} << size_class;
  if (block.bytes - block.used < bytes) return nullptr;
  std::byte* const piece = block.begin + block.used;
  block.used += bytes;
  return piece;
}

void* take(size_t bytes, size_t alignment) {
  if (current == kNone || bytes > size_t{1} << 40) return nullptr;
  alignment = std::max(alignment, alignof(Head));
  const auto size_class =
      static_cast<uint32_t>(std::bit_width(bytes + sizeof(Head) + alignment - 1));
  const std::lock_guard guard(blocks.lock);
  Block& block = block_of(current);
  std::byte* const whole = take_piece(block, size_class);
  if (whole == nullptr) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(whole) + sizeof(Head);
  auto* const data = reinterpret_cast<Head*>((first + alignment - 1) / alignment * alignment);
  data[-1] = {whole, static_cast<uint32_t>(current), size_class};
  ++block.live;
  blocks.live.fetch_add(1, std::memory_order_relaxed);
  return data;
}

// Under the lock.
bool is_piece(const void* data) {
  return std::any_of(std::begin(blocks.all), std::end(blocks.all), [&](const Block& block) {
    return block.begin <= data && data < block.begin + block.bytes;
  });
}

// False if the piece belongs to the C library.
bool give(void* data) {
  if (blocks.live.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard guard(blocks.lock);
  if (!is_piece(data)) return false;
  const Head head = static_cast<Head*>(data)[-1];
  Block& block = block_of(static_cast<int>(head.block));
  block.free[head.size_class] =
      new (static_cast<void*>(head.whole)) Free{block.free[head.size_class]};
  --block.live;
  blocks.live.fetch_sub(1, std::memory_order_relaxed);
  unmap_if_done(block);
  return true;
}

// The bytes of a piece, or none if it belongs to the C library.
size_t bytes_of(void* data) {
  if (blocks.live.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard guard(blocks.lock);
  if (!is_piece(data)) return 0;
  const Head head = static_cast<Head*>(data)[-1];
  return static_cast<size_t>(head.whole + (int64_t{1} << head.size_class) -
                             static_cast<std::byte*>(data));
}

// Uses the program's operator new, which may be replaced: objects made here may be deleted
// elsewhere.
template <class New>
void* new_or_take(New make, size_t bytes, size_t alignment) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    if (void* const data = take(bytes, alignment)) return data;
    throw;
  }
}

}  // namespace

Reserve::Reserve(int64_t bytes) : block_(kNone), previous_(current) {
  bytes = device::whole_pages(bytes);
  const std::lock_guard guard(blocks.lock);
  block_ = empty_place();
  Block& block = block_of(block_);
  block.begin = device::map_pages(bytes, device::MappingOwner::code);
  if (block.begin == nullptr) throw std::bad_alloc();
  block.bytes = bytes;
  block.in_use = true;
  current = block_;
}

Reserve::~Reserve() {
  current = previous_;
  const std::lock_guard guard(blocks.lock);
  block_of(block_).in_use = false;
  unmap_if_done(block_of(block_));
}

}  // namespace tidemark::jit

// The functions that LLVM calls, under the names that cmake/llvm_part.sh gives them.
#define TIDEMARK_HIDDEN __attribute__((visibility("hidden")))
extern "C" {

TIDEMARK_HIDDEN void* tidemark_llvm_malloc(size_t bytes) {
  void* const data = std::malloc(bytes);
  return data != nullptr ? data : tidemark::jit::take(bytes, 1);
}
TIDEMARK_HIDDEN void tidemark_llvm_free(void* data) {
  if (data != nullptr && !tidemark::jit::give(data)) std::free(data);
}
TIDEMARK_HIDDEN void* tidemark_llvm_calloc(size_t count, size_t each) {
  if (void* const data = std::calloc(count, each)) return data;
  void* const data = tidemark::jit::take(count * each, 1);
  return data != nullptr ? std::memset(data, 0, count * each) : nullptr;
}
TIDEMARK_HIDDEN void* tidemark_llvm_realloc(void* data, size_t bytes) {
  if (data == nullptr) return tidemark_llvm_malloc(bytes);
  size_t before = tidemark::jit::bytes_of(data);
  if (before == 0) {
    if (void* const moved = std::realloc(data, bytes)) return moved;
    before = malloc_usable_size(data);
  }
  void* const moved = tidemark_llvm_malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(before, bytes));
  tidemark_llvm_free(data);
  return moved;
}
TIDEMARK_HIDDEN char* tidemark_llvm_strdup(const char* text) {
  const size_t bytes = std::strlen(text) + 1;
  void* const copy = tidemark_llvm_malloc(bytes);
  return copy != nullptr ? static_cast<char*>(std::memcpy(copy, text, bytes)) : nullptr;
}
TIDEMARK_HIDDEN void* tidemark_llvm_new(size_t bytes) {
  return tidemark::jit::new_or_take([=] { return ::operator new(bytes); }, bytes, 1);
}
TIDEMARK_HIDDEN void* tidemark_llvm_new_aligned(size_t bytes, std::align_val_t alignment) {
  return tidemark::jit::new_or_take([=] { return ::operator new(bytes, alignment); }, bytes,
                                    static_cast<size_t>(alignment));
}
TIDEMARK_HIDDEN void* tidemark_llvm_new_nothrow(size_t bytes, const std::nothrow_t& none) {
  void* const data = ::operator new(bytes, none);
  return data != nullptr ? data : tidemark::jit::take(bytes, 1);
}
TIDEMARK_HIDDEN void tidemark_llvm_delete(void* data) {
  if (data != nullptr && !tidemark::jit::give(data)) ::operator delete(data);
}
TIDEMARK_HIDDEN void tidemark_llvm_delete_aligned(void* data, size_t, std::align_val_t alignment) {
  if (data != nullptr && !tidemark::jit::give(data)) ::operator delete(data, alignment);
}

}  // extern "C"

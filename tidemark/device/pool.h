// Blocks of memory larger than a cell holds.
//
// Two layers. Spans are runs of whole pages cut from mapped regions; a free span is either cached
// (its pages are resident and count as held) or untouched (address space only). Neighbours of a
// kind merge, a span larger than needed is split, and the best fit is taken, so that a block is
// never served from a larger class. Blocks up to kSmallBlock are cut from 64 KiB chunks, a size
// class each; the free part of a chunk in use is slack, like the rest of a page, and not cached.
//
//   region   |   block    | cached |      block       |        untouched        |
//   pages    +--+--+--+---+--+--+--+--+--+--+--+--+---+--+--+--+--+--+--+--+--+-+
//
// So everything cached can be given back to the system at any time, and `release` always brings the
// cache to zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// The header <memory_resource> brings locks and clocks along; who passes a resource includes it.
namespace std::pmr {
class memory_resource;
}

namespace tidemark::device {

inline constexpr int64_t kSmallBlock = 8 << 10;

struct Block {
  std::byte* data = nullptr;  // Null: refused.
  void* owner = nullptr;      // Given back with the block.
};

enum class Refusal : uint8_t { none, limit, system };

// A block of `bytes` (a multiple of 64), reserved against the limit. Refused, it says why, and
// nothing has changed but that cached memory went back to the system. Throws std::bad_alloc.
Block grant(int64_t bytes, Refusal& why);
void give(Block block, int64_t bytes) noexcept;

// Several blocks, reserved in one step together with `more` bytes that need no block: all or none.
struct Grant {
  int64_t bytes = 0;
  Block block;
};
bool grant_all(std::span<Grant> grants, int64_t more, Refusal& why);
bool grant_all_from_resource(std::pmr::memory_resource& source, std::span<Grant> grants,
                             int64_t more, Refusal& why);

// The same from the user's own allocator; `owner` is the resource.
Block grant_from_resource(std::pmr::memory_resource& source, int64_t bytes, Refusal& why);
void give_to_resource(Block block, int64_t bytes) noexcept;

// Gives cached memory back to the system; returns how many bytes that was.
int64_t release_cached() noexcept;

// Makes room in the limit for `bytes` by giving cached memory back. For data that stand in cells.
bool reserve_with_relief(int64_t bytes) noexcept;

// Where blocks come from from now on; null is the pool's own mappings. Blocks go back to where they
// came from.
std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource);
std::pmr::memory_resource* resource();

// For the fork handlers and for walking the storages: the lock that every grant takes.
void lock_pool();
void unlock_pool();

}  // namespace tidemark::device

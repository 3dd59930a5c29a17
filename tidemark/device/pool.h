// Blocks of memory that are too large for a cell.
//
// There are two layers. Spans are runs of whole pages in mapped regions. A free span is either
// cached (its pages are resident and count as held) or untouched (address space only). Adjacent
// free spans of the same kind are merged; a request takes the best fit and splits it, so that a
// block never occupies a larger size class. Blocks up to kSmallBlock are cut from 64 KiB chunks of
// one size class each. The free part of a chunk in use is slack, like the unused part of a page,
// and does not count as cached.
//
//   region   |   block    | cached |      block       |        untouched        |
//   pages    +--+--+--+---+--+--+--+--+--+--+--+--+---+--+--+--+--+--+--+--+--+-+
//
// So all cached memory can be returned to the system at any time, and `release` always empties the
// cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Forward-declared: <memory_resource> includes locks and clocks. Callers that pass a resource
// include it.
namespace std::pmr {
class memory_resource;
}

namespace tidemark::device {

inline constexpr int64_t kSmallBlock = 8 << 10;

struct Block {
  std::byte* data = nullptr;  // Null if refused.
  void* owner = nullptr;      // Passed back when the block is freed.
};

enum class Refusal : uint8_t { none, limit, system };

// Grants a block of `bytes` (a multiple of 64), reserved against the limit. If it is refused, `why`
// gives the reason, and nothing has changed except that cached memory was returned to the system.
// Throws std::bad_alloc.
Block grant(int64_t bytes, Refusal& why);
void give(Block block, int64_t bytes) noexcept;

// Several blocks, reserved in one step together with `more` bytes that need no block: all or none
// is granted.
struct Grant {
  int64_t bytes = 0;
  Block block;
};
bool grant_all(std::span<Grant> grants, int64_t more, Refusal& why);
bool grant_all_from_resource(std::pmr::memory_resource& source, std::span<Grant> grants,
                             int64_t more, Refusal& why);

// The same from the user's memory resource, which becomes the `owner`.
Block grant_from_resource(std::pmr::memory_resource& source, int64_t bytes, Refusal& why);
void give_to_resource(Block block, int64_t bytes) noexcept;

// Returns cached memory to the system; the result is the number of bytes.
int64_t release_cached() noexcept;

// Makes room in the limit for `bytes` of data inside cells, by returning cached memory to the
// system.
bool reserve_with_relief(int64_t bytes) noexcept;

// Sets the source of new blocks; null means the pool's own mappings. Blocks are always freed to the
// source that they came from.
std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource);
std::pmr::memory_resource* resource();

// For the fork handlers and for visiting all storages: the lock that every grant takes.
void lock_pool();
void unlock_pool();

}  // namespace tidemark::device

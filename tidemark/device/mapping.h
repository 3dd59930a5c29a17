// The one function that maps pages, and the registry of its mappings.
//
// The kernel merges adjacent mappings, so /proc/self/maps cannot tell the owner of a page. The
// ledger finds it in the registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::device {

inline constexpr int64_t kPageBytes = 4096;
inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;
constexpr int64_t whole_pages(int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

enum class MappingOwner : uint8_t { pool, handles, stacks, code };
inline constexpr int kMappingOwners = 4;

// Maps zeroed pages, readable and writable, aligned to `alignment`; null if the system refuses.
// `bytes` is a multiple of the page size. Throws std::bad_alloc if the registry cannot grow.
std::byte* map_pages(int64_t bytes, MappingOwner owner, int64_t alignment = kPageBytes);
void unmap_pages(std::byte* begin, int64_t bytes);

struct MappedRange {
  const std::byte* begin;
  const std::byte* end;
  MappingOwner owner;
};
// All current mappings, by address. Allocates.
std::vector<MappedRange> mapped_ranges();

// For the fork handlers only.
void lock_mappings();
void unlock_mappings();

}  // namespace tidemark::device

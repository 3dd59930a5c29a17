// The one function through which Tidemark maps pages, and the registry of what it mapped.
//
// The kernel merges neighbouring mappings, so that /proc/self/maps cannot say whose a page is; the
// registry can. The ledger resolves every resident page of the process by it.
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

// Zeroed pages, readable and writable, at a multiple of `alignment`; null when the system refuses.
// `bytes` is a multiple of a page. Throws std::bad_alloc when the registry cannot grow.
std::byte* map_pages(int64_t bytes, MappingOwner owner, int64_t alignment = kPageBytes);
void unmap_pages(std::byte* begin, int64_t bytes);

struct MappedRange {
  const std::byte* begin;
  const std::byte* end;
  MappingOwner owner;
};
// Everything mapped now, by address. Allocates.
std::vector<MappedRange> mapped_ranges();

// For the fork handlers only.
void lock_mappings();
void unlock_mappings();

}  // namespace tidemark::device

#include "tidemark/device/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/device/fault.h"

namespace tidemark::device {
namespace {

struct Registry {
  Lock lock;
  std::vector<MappedRange> ranges;  // By address.
};

// Never destroyed: tensors in static storage free their bytes after main.
Registry& registry() {
  static constinit MadeOnce<Registry> instance;
  return instance.get();
}

// The first range that begins at or after `begin`.
auto position(std::vector<MappedRange>& ranges, const std::byte* begin) {
  return std::lower_bound(
      ranges.begin(), ranges.end(), begin,
      [](const MappedRange& range, const std::byte* at) { return range.begin < at; });
}

std::byte* map_anonymous(int64_t bytes) {
  if (fault::strikes(fault::Site::mapping)) return nullptr;
  void* const begin = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin);
}

// Maps more than needed and unmaps both ends.
std::byte* map_aligned(int64_t bytes, int64_t alignment) {
  if (alignment <= kPageBytes) return map_anonymous(bytes);
  const int64_t wide = bytes + alignment - kPageBytes;
  std::byte* const begin = map_anonymous(wide);
  if (begin == nullptr) return nullptr;
  const auto address = reinterpret_cast<int64_t>(begin);
  const int64_t front = (alignment - address % alignment) % alignment;
  const int64_t back = wide - front - bytes;
  if (front > 0) munmap(begin, static_cast<size_t>(front));
  if (back > 0) munmap(begin + front + bytes, static_cast<size_t>(back));
  return begin + front;
}

}  // namespace

std::byte* map_pages(int64_t bytes, MappingOwner owner, int64_t alignment) {
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  // The registry grows first: once the pages are mapped, nothing may fail.
  if (r.ranges.size() == r.ranges.capacity()) r.ranges.reserve(2 * r.ranges.size() + 64);
  std::byte* const begin = map_aligned(bytes, alignment);
  if (begin != nullptr) r.ranges.insert(position(r.ranges, begin), {begin, begin + bytes, owner});
  return begin;
}

void unmap_pages(std::byte* begin, int64_t bytes) {
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  r.ranges.erase(position(r.ranges, begin));
  munmap(begin, static_cast<size_t>(bytes));
}

std::vector<MappedRange> mapped_ranges() {
  Registry& r = registry();
  for (size_t room = 64;; room *= 2) {
    std::vector<MappedRange> copy;
    copy.reserve(room);  // Outside of the lock: an allocator may call code that maps pages.
    const std::lock_guard guard(r.lock);
    if (r.ranges.size() > room) continue;
    copy.assign(r.ranges.begin(), r.ranges.end());
    return copy;
  }
}

void lock_mappings() { registry().lock.lock(); }
void unlock_mappings() { registry().lock.unlock(); }

}  // namespace tidemark::device

#include "tidemark/device/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/error.h"

namespace tidemark::device {
namespace {

enum class Kind : uint8_t { image, heap, outside };

struct Area {
  uint64_t begin, end;
  bool executable;
  std::string path;
  Kind kind = Kind::outside;
};

std::vector<Area> areas_of_process() {
  FILE* const file = std::fopen("/proc/self/maps", "re");
  if (file == nullptr) throw DeviceError("ledger: /proc/self/maps cannot be read");
  std::vector<Area> areas;
  char line[4352];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char access[8] = {};
    int path = 0;
    if (std::sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &begin, &end, access, &path) < 3) continue;
    std::string name(line + path);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    areas.push_back({begin, end, access[2] == 'x', std::move(name)});
  }
  std::fclose(file);
  return areas;
}

// A file some part of which is executable is a program or a library. Its zeroed data have no name
// and follow its last named part at once.
void tell_apart(std::vector<Area>& areas) {
  for (size_t i = 0; i < areas.size(); ++i) {
    Area& area = areas[i];
    if (area.path == "[heap]") area.kind = Kind::heap;
    if (area.path.starts_with('/')) {
      const bool is_image = std::any_of(areas.begin(), areas.end(), [&](const Area& other) {
        return other.executable && other.path == area.path;
      });
      if (is_image) area.kind = Kind::image;
    }
    if (area.path.empty() && i > 0 && areas[i - 1].end == area.begin &&
        areas[i - 1].kind == Kind::image && !areas[i - 1].path.empty()) {
      area.kind = Kind::image;
    }
  }
}

class PageMap {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw DeviceError("ledger: /proc/self/pagemap cannot be read");
  }
  ~PageMap() { ::close(file_); }
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // Calls visit(address) for every page of the area that is in memory.
  template <class Visit>
  void each_resident(uint64_t begin, uint64_t end, Visit visit) {
    constexpr uint64_t kPresent = uint64_t{1} << 63;
    while (begin < end) {
      const uint64_t wanted = std::min<uint64_t>((end - begin) / kPageBytes, kEntries);
      const ssize_t got = pread(file_, entries_, wanted * sizeof(uint64_t),
                                static_cast<off_t>(begin / kPageBytes * sizeof(uint64_t)));
      if (got <= 0) return;  // The kernel's own page at the top of the address space.
      const uint64_t count = static_cast<uint64_t>(got) / sizeof(uint64_t);
      for (uint64_t i = 0; i < count; ++i, begin += kPageBytes) {
        if ((entries_[i] & kPresent) != 0) visit(begin);
      }
    }
  }

 private:
  static constexpr uint64_t kEntries = 1024;
  int file_;
  uint64_t entries_[kEntries];
};

// The registered range an address lies in, or null. Addresses come in order, and so do ranges.
class RangeCursor {
 public:
  explicit RangeCursor(const std::vector<MappedRange>& ranges) : ranges_(ranges) {}
  const MappedRange* find(uint64_t address) {
    const auto* const at = reinterpret_cast<const std::byte*>(address);
    while (next_ < ranges_.size() && ranges_[next_].end <= at) ++next_;
    return next_ < ranges_.size() && ranges_[next_].begin <= at ? &ranges_[next_] : nullptr;
  }

 private:
  const std::vector<MappedRange>& ranges_;
  size_t next_ = 0;
};

}  // namespace

int64_t ResidentPages::total() const {
  return std::accumulate(std::begin(ours), std::end(ours), image + heap + outside);
}

ResidentPages resident_pages() {
  std::vector<Area> areas = areas_of_process();
  tell_apart(areas);
  const std::vector<MappedRange> ranges = mapped_ranges();
  RangeCursor cursor(ranges);
  PageMap map;
  ResidentPages pages;
  for (const Area& area : areas) {
    // Pages the kernel lends to every process belong to none.
    if (area.path.starts_with("[v")) continue;
    int64_t& rest = area.kind == Kind::image  ? pages.image
                    : area.kind == Kind::heap ? pages.heap
                                              : pages.outside;
    map.each_resident(area.begin, area.end, [&](uint64_t address) {
      const MappedRange* const range = cursor.find(address);
      (range != nullptr ? pages.ours[static_cast<int>(range->owner)] : rest) += kPageBytes;
    });
  }
  return pages;
}

}  // namespace tidemark::device

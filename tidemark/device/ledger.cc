#include "tidemark/device/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/error.h"

namespace tidemark::device {
namespace {

enum class Kind : uint8_t { image, files, heap, outside };

struct Area {
  uint64_t begin, end;
  bool executable;
  std::string path;
  int64_t resident = 0;
  Kind kind = Kind::outside;
};

// Reads smaps and skips empty areas: a sanitizer maps terabytes.
std::vector<Area> areas_of_process() {
  FILE* const file = std::fopen("/proc/self/smaps", "re");
  if (file == nullptr)
    throw DeviceError(cat("ledger: /proc/self/smaps cannot be read: ", std::strerror(errno)));
  std::vector<Area> areas;
  char line[4352];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char access[8] = {};
    int path = 0;
    long long kib = 0;
    if (std::sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &begin, &end, access, &path) >= 3) {
      std::string name(line + path);
      while (!name.empty() && name.back() == '\n') name.pop_back();
      areas.push_back({begin, end, access[2] == 'x', std::move(name)});
    } else if (std::sscanf(line, "Rss: %lld kB", &kib) == 1 && !areas.empty()) {
      areas.back().resident = kib * 1024;
    }
  }
  std::fclose(file);
  return areas;
}

// A file with an executable part is a program or a library. Its zero-initialised data have no name
// and directly follow its last named part.
void tell_apart(std::vector<Area>& areas) {
  for (size_t i = 0; i < areas.size(); ++i) {
    Area& area = areas[i];
    if (area.path == "[heap]") area.kind = Kind::heap;
    if (area.path.starts_with('/')) {
      const bool is_image = std::any_of(areas.begin(), areas.end(), [&](const Area& other) {
        return other.executable && other.path == area.path;
      });
      area.kind = is_image ? Kind::image : Kind::files;
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

  // The bytes of resident pages in [begin, end).
  int64_t resident(uint64_t begin, uint64_t end) {
    constexpr uint64_t kPresent = uint64_t{1} << 63;
    int64_t bytes = 0;
    while (begin < end) {
      const uint64_t wanted = std::min<uint64_t>((end - begin) / kPageBytes, kEntries);
      const ssize_t got = pread(file_, entries_, wanted * sizeof(uint64_t),
                                static_cast<off_t>(begin / kPageBytes * sizeof(uint64_t)));
      if (got <= 0) throw DeviceError("ledger: /proc/self/pagemap cannot be read");
      const uint64_t count = static_cast<uint64_t>(got) / sizeof(uint64_t);
      for (uint64_t i = 0; i < count; ++i) bytes += (entries_[i] & kPresent) != 0 ? kPageBytes : 0;
      begin += count * kPageBytes;
    }
    return bytes;
  }

 private:
  static constexpr uint64_t kEntries = 1024;
  int file_;
  uint64_t entries_[kEntries];
};

// Adds the resident pages that Tidemark mapped in an area to their owners, and returns their bytes.
int64_t add_ours(const Area& area, const std::vector<MappedRange>& ranges, PageMap& map,
                 ResidentPages& pages) {
  int64_t sum = 0;
  for (const MappedRange& range : ranges) {
    const uint64_t begin = std::max(area.begin, reinterpret_cast<uint64_t>(range.begin));
    const uint64_t end = std::min(area.end, reinterpret_cast<uint64_t>(range.end));
    if (begin >= end) continue;
    const int64_t bytes = map.resident(begin, end);
    pages.ours[static_cast<int>(range.owner)] += bytes;
    sum += bytes;
  }
  return sum;
}

}  // namespace

int64_t ResidentPages::total() const {
  return std::accumulate(std::begin(ours), std::end(ours), image + files + heap + outside);
}

ResidentPages resident_pages() {
  std::vector<Area> areas = areas_of_process();
  tell_apart(areas);
  const std::vector<MappedRange> ranges = mapped_ranges();
  PageMap map;
  ResidentPages pages;
  for (const Area& area : areas) {
    int64_t& rest = area.kind == Kind::image   ? pages.image
                    : area.kind == Kind::files ? pages.files
                    : area.kind == Kind::heap  ? pages.heap
                                               : pages.outside;
    rest += area.resident - add_ours(area, ranges, map, pages);
  }
  return pages;
}

}  // namespace tidemark::device

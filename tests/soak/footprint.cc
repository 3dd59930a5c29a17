#include "tests/soak/footprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ostream>

#include "tests/soak/counted_heap.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tidemark.h"

namespace tidemark::testing {
namespace {

// Nothing here may allocate, or it would count itself: no directory streams, no files of C.
template <class Visit>
void visit_file(const char* path, Visit visit) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  char part[4096];
  for (ssize_t got = 0; (got = read(file, part, sizeof(part))) > 0;)
    for (ssize_t i = 0; i < got; ++i) visit(part[i]);
  close(file);
}

int64_t count_lines(const char* path) {
  int64_t lines = 0;
  visit_file(path, [&](char c) { lines += c == '\n' ? 1 : 0; });
  return lines;
}

int64_t count_entries(const char* folder) {
  const int open_folder = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(dirent64) char part[4096];
  int64_t entries = 0;
  for (ssize_t got = 0; (got = getdents64(open_folder, part, sizeof(part))) > 0;) {
    for (ssize_t at = 0; at < got; ++entries) {
      unsigned short length = 0;
      std::memcpy(&length, part + at + offsetof(dirent64, d_reclen), sizeof(length));
      at += length;
    }
  }
  close(open_folder);
  return entries;
}

}  // namespace

Footprint footprint() {
  Footprint now;
  now.heap_bytes = live_heap_bytes();
  now.heap_blocks = live_heap_blocks();
  now.current = memory::current().count;
  now.cached = memory::cached().count;
  for (int i = 0; i < kByteClasses; ++i)
    now.by_class[i] = memory::of(static_cast<ByteClass>(i)).count;
  now.code = compile::code_bytes();
  now.mappings = count_lines("/proc/self/maps");
  now.threads = count_entries("/proc/self/task");
  now.files = count_entries("/proc/self/fd");
  return now;
}

std::ostream& operator<<(std::ostream& out, const Footprint& f) {
  out << "bytes " << f.current << ", cached " << f.cached;
  for (int i = 0; i < kByteClasses; ++i)
    out << ", " << name(static_cast<ByteClass>(i)) << ' ' << f.by_class[i];
  return out << ", heap " << f.heap_bytes << " in " << f.heap_blocks << " blocks, code " << f.code
             << ", mappings " << f.mappings << ", threads " << f.threads << ", files " << f.files;
}

int64_t resident_bytes() {
  char text[4096] = {};
  size_t length = 0;
  visit_file("/proc/self/smaps_rollup", [&](char c) {
    if (length + 1 < sizeof(text)) text[length++] = c;
  });
  const char* const row = std::strstr(text, "Rss:");
  return row == nullptr ? 0 : std::atoll(row + 4) * 1024;
}

}  // namespace tidemark::testing

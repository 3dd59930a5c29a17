#include "tidemark/device/huge_pages.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

#include "tidemark/base/environment.h"
#include "tidemark/base/made_once.h"
#include "tidemark/device/mapping.h"

namespace tidemark::device {
namespace {

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

int64_t first_touch_ns(std::byte* begin, int advice) {
  madvise(begin, kHugePageBytes, MADV_DONTNEED);
  if (madvise(begin, kHugePageBytes, advice) != 0) return std::numeric_limits<int64_t>::max();
  const int64_t start = now_ns();
  std::memset(begin, 1, kHugePageBytes);
  return now_ns() - start;
}

bool system_has_them() {
  char text[64] = {};
  FILE* const file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
  if (file == nullptr) return false;
  const size_t got = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  return got > 0 && std::strstr(text, "[never]") == nullptr;
}

std::byte* map_probe() noexcept {
  try {
    return map_pages(kHugePageBytes, MappingOwner::pool, kHugePageBytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool measure() noexcept {
  if (!system_has_them()) return false;
  std::byte* const begin = map_probe();
  if (begin == nullptr) return false;
  // The minimum of a few runs: a virtual machine may be suspended for milliseconds.
  int64_t small_ns = std::numeric_limits<int64_t>::max();
  int64_t huge_ns = small_ns;
  for (int round = 0; round < 3; ++round) {
    small_ns = std::min(small_ns, first_touch_ns(begin, MADV_NOHUGEPAGE));
    huge_ns = std::min(huge_ns, first_touch_ns(begin, MADV_HUGEPAGE));
  }
  unmap_pages(begin, kHugePageBytes);
  return huge_ns < small_ns / 10 * 9;
}

bool asked_or_measured() {
  return environment("TIDEMARK_HUGE_PAGES") != nullptr
             ? environment_switch("TIDEMARK_HUGE_PAGES", false)
             : measure();
}

}  // namespace

bool huge_pages_help() {
  static constinit MadeOnce<bool> help;
  return help.get(asked_or_measured);
}

void advise_huge(std::byte* begin, int64_t bytes) {
  const auto address = reinterpret_cast<int64_t>(begin);
  const int64_t front = (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
  const int64_t whole = (bytes - front) / kHugePageBytes * kHugePageBytes;
  if (bytes > front && whole > 0) {
    madvise(begin + front, static_cast<size_t>(whole), MADV_HUGEPAGE);
  }
}

void advise_small(std::byte* begin, int64_t bytes) {
  madvise(begin, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);
}

}  // namespace tidemark::device

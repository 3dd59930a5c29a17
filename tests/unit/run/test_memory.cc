#include "tests/unit/run/test_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "tidemark/base/error.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kPage = 4096;
size_t whole_pages(int64_t bytes) {
  return static_cast<size_t>((bytes + kPage - 1) / kPage * kPage);
}

}  // namespace

std::string without_line(std::string_view text) {
  const size_t begin = text.find("\n  at ");
  if (begin == std::string_view::npos) return std::string(text);
  const size_t end = text.find('\n', begin + 1);
  return std::string(text.substr(0, begin)) +
         std::string(end == std::string_view::npos ? "" : text.substr(end));
}

void TestMemory::set_access(int access) {
  for (const auto& [data, bytes] : blocks_)
    TIDEMARK_CHECK(mprotect(data, whole_pages(bytes), access) == 0, "pages cannot be protected");
}

std::byte* TestMemory::allocate(int64_t bytes) {
  const std::lock_guard guard(lock_);
  if (bytes == 0 || current() + bytes > limit_) return nullptr;
  void* const mapped =
      mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::memset(mapped, 0xA5, whole_pages(bytes));
  mprotect(mapped, whole_pages(bytes), PROT_NONE);
  blocks_[static_cast<std::byte*>(mapped)] = bytes;
  return static_cast<std::byte*>(mapped);
}

void TestMemory::release(std::byte* data, int64_t bytes) noexcept {
  const std::lock_guard guard(lock_);
  blocks_.erase(data);
  munmap(data, whole_pages(bytes));
}

void TestMemory::copy_in(std::byte* to, const std::byte* from, int64_t bytes) {
  const std::lock_guard guard(lock_);
  set_access(PROT_READ | PROT_WRITE);
  std::memcpy(to, from, static_cast<size_t>(bytes));
  set_access(PROT_NONE);
  ++copies_;
}

void TestMemory::copy_out(std::byte* to, const std::byte* from, int64_t bytes) {
  copy_in(to, from, bytes);
}

void TestMemory::copy_within(std::byte* to, const std::byte* from, int64_t bytes) {
  copy_in(to, from, bytes);
}

void TestMemory::run(device::FunctionRef<void()> task) {
  const std::lock_guard guard(lock_);
  set_access(PROT_READ | PROT_WRITE);
  try {
    task();
  } catch (...) {
    set_access(PROT_NONE);
    throw;
  }
  set_access(PROT_NONE);
  ++tasks_;
}

}  // namespace tidemark::testing

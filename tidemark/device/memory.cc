#include "tidemark/device/memory.h"

#include <algorithm>

#include "tidemark/base/error.h"

namespace tidemark::device {
namespace {

constinit std::atomic<Memory*> memories[kMostMemories] = {};

}  // namespace

std::byte* Memory::take(int64_t bytes) {
  std::byte* const data = allocate(bytes);
  if (data == nullptr) {
    throw DeviceError(cat("memory \"", name(), "\" has no room for ", Bytes(bytes), ", ",
                          Bytes(current()), " of it are in use"));
  }
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return data;
}

void Memory::give(std::byte* data, int64_t bytes) noexcept {
  release(data, bytes);
  in_use_.fetch_sub(bytes, std::memory_order_relaxed);
}

MemoryNumber::MemoryNumber(Memory& memory) : number_(1) {
  for (; number_ < kMostMemories; ++number_) {
    Memory* none = nullptr;
    if (memories[number_].compare_exchange_strong(none, &memory)) return;
  }
  throw UserError(cat("there are ", kMostMemories - 1, " memories beside the host's already"),
                  Source::none(), "let one of them go");
}

MemoryNumber::~MemoryNumber() { memories[number_].store(nullptr); }

Memory& memory(int32_t number) {
  Memory* const found = number > 0 && number < kMostMemories
                            ? memories[number].load(std::memory_order_acquire)
                            : nullptr;
  if (found == nullptr) {
    throw UserError(cat("there is no memory ", number), Source::none(),
                    "0 is the host's; a device gives its memory a number while it is there");
  }
  return *found;
}

std::string memory_text(int32_t number) {
  if (number == kHostMemory) return "the host's memory";
  return cat("memory ", number, " (\"", memory(number).name(), "\")");
}

}  // namespace tidemark::device

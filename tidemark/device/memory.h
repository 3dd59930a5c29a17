// Memories beside the host's: a GPU's, or one of a test.
//
// The host can neither read nor write them; bytes get in and out by copies, and what computes on
// them runs where they can be reached. A program names them by number: 0 is the host's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/device/threads.h"

namespace tidemark::device {

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  virtual std::string_view name() const = 0;
  virtual void copy_in(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual void copy_out(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // From one place of it to another, which do not overlap.
  virtual void copy_within(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // Runs a task whose operands lie here; returns when it has ended.
  virtual void run(FunctionRef<void()> task) = 0;

  // A block, counted; throws DeviceError where there is no room. Sizes are multiples of 64.
  std::byte* take(int64_t bytes);
  void give(std::byte* data, int64_t bytes) noexcept;
  // Bytes that are taken now, and the most there were at once.
  int64_t current() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  // Null where there is no room.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* data, int64_t bytes) noexcept = 0;

  std::atomic<int64_t> in_use_{0}, peak_{0};
};

inline constexpr int32_t kHostMemory = 0;
inline constexpr int32_t kMostMemories = 16;

// While it exists, the memory has a number, from 1 on. Tensors in the memory must be gone before
// it.
class MemoryNumber {
 public:
  explicit MemoryNumber(Memory& memory);
  ~MemoryNumber();
  MemoryNumber(const MemoryNumber&) = delete;
  MemoryNumber& operator=(const MemoryNumber&) = delete;
  int32_t number() const { return number_; }

 private:
  int32_t number_;
};

// The memory of a number; a UserError where there is none.
Memory& memory(int32_t number);
// For people: "the host's memory", "memory 1 (\"test\")".
std::string memory_text(int32_t number);

}  // namespace tidemark::device

// Memories other than the host's: a GPU's, or a simulated one of a test.
//
// The host cannot access them. Bytes are copied in and out, and kernels run on a device that can
// access them. Programs refer to memories by number; 0 is the host's.
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
  // The two ranges do not overlap.
  virtual void copy_within(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // Runs a task whose operands are in this memory; returns when it has finished.
  virtual void run(FunctionRef<void()> task) = 0;

  // A counted block; throws DeviceError if there is no room. Sizes are multiples of 64.
  std::byte* take(int64_t bytes);
  void give(std::byte* data, int64_t bytes) noexcept;
  // The bytes allocated now, and their peak.
  int64_t current() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  // Null if there is no room.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* data, int64_t bytes) noexcept = 0;

  std::atomic<int64_t> in_use_{0}, peak_{0};
};

inline constexpr int32_t kHostMemory = 0;
inline constexpr int32_t kMostMemories = 16;

// Gives a memory a number, from 1 on, for the lifetime of this object. Tensors in the memory must
// be released before.
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

// The memory with this number; throws a UserError if there is none.
Memory& memory(int32_t number);
// For messages: "the host's memory", "memory 1 (\"test\")".
std::string memory_text(int32_t number);

}  // namespace tidemark::device

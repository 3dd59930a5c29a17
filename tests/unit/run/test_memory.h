// A device for tests: its memory lies in pages that the host can neither read nor write, but for
// the time of a copy or of a task that runs there.
#pragma once

#include <map>
#include <mutex>

#include "tidemark/device/memory.h"

namespace tidemark::testing {

class TestMemory final : public device::Memory {
 public:
  explicit TestMemory(int64_t limit = int64_t{1} << 30) : limit_(limit) {}

  std::string_view name() const override { return "test"; }
  void copy_in(std::byte* to, const std::byte* from, int64_t bytes) override;
  void copy_out(std::byte* to, const std::byte* from, int64_t bytes) override;
  void run(device::FunctionRef<void()> task) override;

  int64_t copies() const { return copies_; }
  int64_t tasks() const { return tasks_; }

 private:
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* data, int64_t bytes) noexcept override;
  void set_access(int access);

  std::mutex lock_;
  std::map<std::byte*, int64_t> blocks_;
  int64_t limit_;
  int64_t copies_ = 0, tasks_ = 0;
};

}  // namespace tidemark::testing

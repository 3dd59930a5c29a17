// A device for tests: its memory lies in pages that the host can neither read nor write, but for
// the time of a copy or of a task that runs there.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tidemark/compile/cpu/backend.h"
#include "tidemark/compile/group.h"
#include "tidemark/compile/scalar_loop.h"
#include "tidemark/device/memory.h"

namespace tidemark::testing {

// The text of an error without the line that it names: its problem and its remedy.
std::string without_line(std::string_view text);

class TestMemory final : public device::Memory {
 public:
  explicit TestMemory(int64_t limit = int64_t{1} << 30) : limit_(limit) {}

  std::string_view name() const override { return "test"; }
  void copy_in(std::byte* to, const std::byte* from, int64_t bytes) override;
  void copy_out(std::byte* to, const std::byte* from, int64_t bytes) override;
  void copy_within(std::byte* to, const std::byte* from, int64_t bytes) override;
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

// What computes there: the CPU's kernels, each inside a task of the memory. It says that it has one
// thread and a small cache, whatever the host has, and counts what it is asked.
class TestBackend final : public compile::Backend {
 public:
  compile::MachineFacts machine() const override { return {.threads = 1, .cache_bytes = 64 << 10}; }
  compile::TaskPlan op(const compile::OpWork& work) const override {
    ++ops;
    return compile::cpu_backend().op(work);
  }
  int64_t op_workspace(const compile::OpWork& work) const override {
    return compile::cpu_backend().op_workspace(work);
  }
  compile::TaskPlan group(compile::GroupWork work) const override {
    ++groups;
    return compile::cpu_backend().group(std::move(work));
  }
  std::optional<compile::TaskPlan> loop(const compile::ScalarLoop& loop, int64_t trips,
                                        bool counted) const override {
    ++loops;
    return compile::cpu_backend().loop(loop, trips, counted);
  }
  std::unique_ptr<compile::TaskBatch> new_batch() const override {
    return compile::cpu_backend().new_batch();
  }

  mutable int64_t ops = 0, groups = 0, loops = 0;
};

}  // namespace tidemark::testing

#include "tidemark/compile/cpu/backend.h"

#include "tidemark/compile/cpu/group_task.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/cpu/loop_task.h"
#include "tidemark/compile/cpu/tasks.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

class CpuBackend final : public Backend {
 public:
  MachineFacts machine() const override {
    return {.threads = num_threads(), .cache_bytes = device::caches().l2_bytes};
  }
  TaskPlan op(const OpWork& work) const override {
    const device::ThreadsScope threads(work.threads);
    return owned(op_task(work));
  }
  int64_t op_workspace(const OpWork& work) const override {
    const device::ThreadsScope threads(work.threads);
    return compile::op_workspace(work);
  }
  TaskPlan group(GroupWork work) const override {
    const device::ThreadsScope threads(work.threads);
    return owned(group_task(std::move(work)));
  }
  std::optional<TaskPlan> loop(const ScalarLoop& loop, int64_t trips, bool counted) const override {
    return owned(loop_task(loop, trips, counted));
  }
  std::unique_ptr<TaskBatch> new_batch() const override { return std::make_unique<KernelBatch>(); }

 private:
  TaskPlan owned(TaskPlan plan) const {
    plan.backend = this;
    return plan;
  }
};

}  // namespace

const Backend& cpu_backend() {
  static constinit const CpuBackend backend;
  return backend;
}

}  // namespace tidemark::compile

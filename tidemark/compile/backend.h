// Backend: computes on the values in one memory. The CPU does so for the host's memory
// (cpu/backend.h), another device for its own.
//
// Layout and passes ask a backend about the machine and about each step. The answer for a step is a
// TaskPlan: the bytes of workspace that the step needs, which follow from shapes and layouts alone,
// and a function that makes the task before the program first runs. backends.h finds the backend of
// a memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "tidemark/ops/op_def.h"
#include "tidemark/run/program.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

class Backend;
struct GroupWork;   // group.h
struct ScalarLoop;  // scalar_loop.h

// The kernels of one program on one backend, compiled together after all of its tasks are made.
class TaskBatch {
 public:
  TaskBatch() = default;
  TaskBatch(const TaskBatch&) = delete;
  TaskBatch& operator=(const TaskBatch&) = delete;
  virtual ~TaskBatch() = default;
  // Throws std::bad_alloc.
  virtual void compile() = 0;
};

// A task that is still to be made. A copy makes an equal task.
struct TaskPlan {
  int64_t workspace_bytes = 0;
  int64_t heap_bytes = 0;  // The bytes that `make` holds on the heap.
  int threads = 0;         // The workspace is for so many; 0: for all that the program has.
  const Backend* backend = nullptr;
  // Makes the task and requests its kernels, which exist after `batch` is compiled; the batch must
  // be of the same backend. If it throws, it may be called again.
  std::function<std::unique_ptr<run::Task>(TaskBatch& batch)> make;
};

// What layout and passes need to know of a backend's machine.
struct MachineFacts {
  int threads = 1;  // The threads that work on one step; as many bodies of a map may run at once.
  // Rows that are swept several times should fit into half of it.
  int64_t cache_bytes = int64_t{1} << 20;
};

// An operand: an array with a layout, or a number that is known at layout time, with the layout's
// dtype.
struct OperandLayout {
  bool is_number = false;
  uint64_t number = 0;
  ArrayRef layout = {};
};

// One op as a step. Layouts have no data: the task is given the addresses of the operands that are
// arrays, then those of the results. An unused result has a layout whose data are null, and no
// address; only ops with several results may have one.
struct OpWork {
  const OpDef& op;
  std::span<const OperandLayout> operands;  // Only pointwise ops have numbers among them.
  const Attrs& attrs;
  std::span<const ArrayRef> results;
  Source at = Source::none();
  int threads = 1;
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual MachineFacts machine() const = 0;
  // Pointwise ops broadcast their operands. A cast of a number is a fill. A cast to the same dtype
  // and address does nothing.
  virtual TaskPlan op(const OpWork& work) const = 0;
  // The workspace that the TaskPlan of `op` would have.
  virtual int64_t op_workspace(const OpWork& work) const = 0;
  virtual TaskPlan group(GroupWork work) const = 0;
  // All trips of a loop as one task, or nothing: then the trips become steps of the program. The
  // operands are the number of trips (i64) if `counted`, then the buffers of the loop.
  virtual std::optional<TaskPlan> loop(const ScalarLoop& loop, int64_t trips,
                                       bool counted) const = 0;
  virtual std::unique_ptr<TaskBatch> new_batch() const = 0;

 protected:
  ~Backend() = default;  // Not deleted through this type: the CPU's lives until the process ends.
};

}  // namespace tidemark::compile

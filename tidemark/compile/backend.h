// What computes on the values of one memory: the CPU on the host's (cpu/backend.h), another device
// on its own.
//
// Layout and passes ask a backend about the machine and about each step. The answer to a step is a
// TaskPlan: the bytes of workspace that the step will take, which follow from shapes and layouts
// alone, and a function that makes its task once the program is to run. `backends.h` finds the
// backend of a memory.
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

// The kernels of one program on one backend, compiled together once all of its tasks are made.
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
  int64_t heap_bytes = 0;  // What `make` holds.
  const Backend* backend = nullptr;
  // Makes the task and requests its kernels, which are there once the batch, one of the backend's,
  // is compiled. May be called again where it throws.
  std::function<std::unique_ptr<run::Task>(TaskBatch& batch)> make;
};

// What layout and passes ask of the machine behind a backend.
struct MachineFacts {
  int threads = 1;  // That work on one step; so many bodies of a map may run at once.
  int64_t cache_bytes = int64_t{1} << 20;  // Rows that several sweeps go over are to stay in half.
};

// An operand: memory seen in some layout, or a number known when the program is laid out, of the
// layout's dtype.
struct OperandLayout {
  bool is_number = false;
  uint64_t number = 0;
  ArrayRef layout = {};
};

// One op as a step. Layouts have no data: the places of operands that are no numbers, then those of
// results, are told to the task. A result that nobody wants has a layout whose data are null, and
// no place; only ops with several results have such.
struct OpWork {
  const OpDef& op;
  std::span<const OperandLayout> operands;  // Numbers stand in pointwise ops alone.
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
  // Pointwise ops broadcast their operands; a cast of a number fills, and one to the same dtype and
  // place does nothing.
  virtual TaskPlan op(const OpWork& work) const = 0;
  // The workspace that `op` would say.
  virtual int64_t op_workspace(const OpWork& work) const = 0;
  virtual TaskPlan group(GroupWork work) const = 0;
  // All trips of a loop as one task, or nothing: then each trip is steps of the program. Operands
  // are the number of trips (i64) where `counted`, then the buffers of the loop.
  virtual std::optional<TaskPlan> loop(const ScalarLoop& loop, int64_t trips,
                                       bool counted) const = 0;
  virtual std::unique_ptr<TaskBatch> new_batch() const = 0;

 protected:
  ~Backend() = default;  // Nobody owns one: the CPU's serves until the process has ended.
};

}  // namespace tidemark::compile

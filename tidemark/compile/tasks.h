// Steps that run one op as eager code does, on memory that a plan has placed.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "tidemark/compile/eager.h"
#include "tidemark/compile/kernels.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// A task that is still to be made: what it will need is known from shapes and layouts alone.
struct TaskPlan {
  int64_t workspace_bytes = 0;
  int64_t heap_bytes = 0;  // What `make` holds.
  int threads = 1;         // What it was planned for.
  // Makes the task and all kernels that it will use; those of groups are there once the batch is
  // compiled. May be called again where it throws.
  std::function<std::unique_ptr<run::Task>(KernelBatch& batch)> make;
};

// An operand of a pointwise op in a program: memory, or a number known when it was compiled.
struct PointwiseOperand {
  bool is_number = false;
  uint64_t number = 0;
  ArrayRef layout;
};

// Places are layouts: where the data lie is told at the run, operands first, then the result.
// Numbers have no place.
TaskPlan pointwise_task(const OpDef& op, std::span<const PointwiseOperand> operands,
                        const PointwiseType& type, const ArrayRef& result);
// Any other op that computes: what it needs while it runs, and the task. A result that nobody wants
// has a layout without data, and no place.
int64_t op_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     std::span<const ArrayRef> results);
TaskPlan op_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at);
// A print or a check: operands only.
TaskPlan effect_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     Source at);
TaskPlan copy_task(const ArrayRef& from, const ArrayRef& to);
TaskPlan fill_task(uint64_t number, const ArrayRef& to);

}  // namespace tidemark::compile

// Steps that run one op as eager code does, on memory that a plan has placed.
#pragma once

#include <memory>
#include <span>

#include "tidemark/compile/eager.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// Of a value that fills its memory, wherever that will be.
ArrayRef dense_layout(const TensorType& type);

struct MadeTask {
  std::unique_ptr<run::Task> task;
  int64_t workspace_bytes = 0;
};

// An operand of a pointwise op in a program: memory, or a number known when it was compiled.
struct PointwiseOperand {
  bool is_number = false;
  uint64_t number = 0;
  ArrayRef layout;
};

// Places are layouts: where the data lie is told at the run, operands first, then the result.
// Numbers have no place.
MadeTask pointwise_task(const OpDef& op, std::span<const PointwiseOperand> operands,
                        const PointwiseType& type, const ArrayRef& result);
// Any other op that computes. A result that nobody wants has a layout without data, and no place.
MadeTask op_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at);
// Of an op with one result.
inline MadeTask op_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                        const ArrayRef& result, Source at) {
  return op_task(op, operands, attrs, {&result, 1}, at);
}
// A print or a check: operands only.
MadeTask effect_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     Source at);
MadeTask copy_task(const ArrayRef& from, const ArrayRef& to);
MadeTask fill_task(uint64_t number, const ArrayRef& to);

}  // namespace tidemark::compile

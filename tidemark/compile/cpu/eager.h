// Runs one op now, on memory somebody else holds.
//
// Shapes and dtypes have been checked and results allocated by the caller; operands of pointwise
// ops have been broadcast to the result's shape (their strides repeat). Results may share bytes
// with operands where an element is read before it is written in its place.
//
// What an op takes for its own use while it runs, its `_workspace` function says; those that have
// none take nothing.
#pragma once

#include <array>
#include <span>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// An operand of a pointwise op: an array, or a plain number.
struct Input {
  const ArrayRef* array = nullptr;
  uint64_t number = 0;  // See number_bits in ops/lower.h.
};

// The operand seen in the larger shape of a pointwise result: what it lacks repeats.
ArrayRef stretched(const ArrayRef& array, const Shape& shape);

void run_pointwise(const OpDef& op, std::span<const Input> operands, const PointwiseType& type,
                   const ArrayRef& result);
// Element by element into another place, layout or dtype.
void run_copy(const ArrayRef& from, const ArrayRef& to);
void run_fill(uint64_t number, const ArrayRef& to);
void run_reduce(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                const ArrayRef& result);
int64_t reduce_workspace(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                         const ArrayRef& result);
// softmax and its like, along one axis.
void run_row(const OpDef& op, const ArrayRef& operand, int64_t axis, const ArrayRef& result);
int64_t row_workspace(const OpDef& op, const ArrayRef& operand, int64_t axis,
                      const ArrayRef& result);
void run_range(double start, double step, const ArrayRef& result);
void run_range(int64_t start, int64_t step, const ArrayRef& result);

// How a one-step op applies to contiguous elements, for tensors too small for anything else. The
// function is null where the op takes several steps in this dtype.
struct TinyStep {
  void (*function)(const void* const* in, void* out, int64_t count) = nullptr;
  std::array<int32_t, 3> operands = {};  // Which operand of the op each of `in` is.
};
TinyStep tiny_step(const OpDef& op, DType dtype);

}  // namespace tidemark::compile

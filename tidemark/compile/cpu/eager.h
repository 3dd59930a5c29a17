// Runs one op immediately, on memory that the caller provides.
//
// The caller has checked shapes and dtypes, allocated the results, and broadcast the operands of
// pointwise ops to the result's shape (with strides of 0). A result may share bytes with an operand
// if each element is read before it is overwritten.
//
// The `_workspace` function of an op returns the bytes of workspace that it needs. An op without
// one needs none.
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

// The operand broadcast to the shape of a pointwise result.
ArrayRef stretched(const ArrayRef& array, const Shape& shape);

void run_pointwise(const OpDef& op, std::span<const Input> operands, const PointwiseType& type,
                   const ArrayRef& result);
// Copies element by element, to another layout or dtype.
void run_copy(const ArrayRef& from, const ArrayRef& to);
void run_fill(uint64_t number, const ArrayRef& to);
void run_reduce(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                const ArrayRef& result);
int64_t reduce_workspace(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                         const ArrayRef& result);
// softmax and similar ops, along one axis.
void run_row(const OpDef& op, const ArrayRef& operand, int64_t axis, const ArrayRef& result);
int64_t row_workspace(const OpDef& op, const ArrayRef& operand, int64_t axis,
                      const ArrayRef& result);
void run_range(double start, double step, const ArrayRef& result);
void run_range(int64_t start, int64_t step, const ArrayRef& result);

// An op that is a single vector instruction on contiguous elements, for tiny tensors. The function
// is null if the op needs several instructions in this dtype.
struct TinyStep {
  void (*function)(const void* const* in, void* out, int64_t count) = nullptr;
  std::array<int32_t, 3> operands = {};  // The operand of the op that each of `in` is.
};
TinyStep tiny_step(const OpDef& op, DType dtype);

}  // namespace tidemark::compile

// Lowering: from an op to the loop nest that computes it, for eager code and compiled programs.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/scalar.h"

namespace tidemark {

// x converted to another dtype. Integers and bools become 16-bit floats by way of f32.
Scalar converted(Scalar x, DType to);

// The value of a pointwise op for operands in the dtypes it computes in (16-bit floats already as
// f32), rounded to the dtype `result`.
Scalar applied(Recipe& recipe, const OpDef& op, std::span<const Scalar> operands, DType result);

// The position of x if it is the extremum of its row or column, else a number larger than any
// position. A NaN is its own extremum; x != x finds it.
Scalar position_of(Recipe& recipe, Scalar x, Scalar extremum);

// The sum of x over broadcast axes, which repeat it `count` times: a product in f64, exact for all
// narrower dtypes and so rounded once. `count` has the dtype `repeated_dtype(result)`.
Scalar repeated(Scalar x, Scalar count, DType result);
constexpr DType repeated_dtype(DType result) {
  return is_float(result) ? DType::f64 : widened_integer(result);
}

// The form of an operand of a pointwise nest.
struct OperandForm {
  DType dtype = DType::f32;    // As stored.
  DType compute = DType::f32;  // The dtype the op computes in; the load converts.
  bool is_number = false;      // A run-time number, already in the dtype `compute`, not a buffer.
  BufferRef::Columns columns = BufferRef::Columns::unit;
};

// One buffer for each operand that is not a number, in order, then the result's. Numbers are the
// scalars, in order.
Nest pointwise_nest(const OpDef& op, std::span<const OperandForm> operands, DType result,
                    BufferRef::Columns result_columns, bool streaming);

// Reduces buffer 0 into buffer 1. `result` may be wider than the op's result dtype, for partial
// results (`partial_dtype`).
Nest reduce_nest(const OpDef& op, DType operand, DType result, Nest::Order order,
                 BufferRef::Columns columns);

// The dtype in which a reduction adds up: f32 for the 16-bit floats, else the result's own.
DType partial_dtype(const OpDef& op, DType operand, DType result);

// Buffer 0 becomes scalar 0 + index * scalar 1, computed in f64.
Nest range_nest(DType compute, DType result);

// The bits of a plain number in this dtype, in the low bytes of a word.
uint64_t number_bits(double real, int64_t whole, bool is_real, DType dtype);

}  // namespace tidemark

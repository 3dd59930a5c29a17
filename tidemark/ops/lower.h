// From an op to the loop nest that computes it. Eager code and compiled programs share these.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/scalar.h"

namespace tidemark {

// x in another dtype. Whatever is not a wide float becomes a 16-bit float by way of f32.
Scalar converted(Scalar x, DType to);

// What a pointwise op makes of elements that have the dtypes it computes in (or, of 16-bit floats,
// are already held as f32), rounded to the dtype `result`.
Scalar applied(Recipe& recipe, const OpDef& op, std::span<const Scalar> operands, DType result);

// The position of x where it is the extremum of its row or column, else a number larger than any.
// A NaN is its own extremum, and x != x finds the first.
Scalar position_of(Recipe& recipe, Scalar x, Scalar extremum);

// A sum over axes that repeat x, `count` times in all: the product is made in f64, where it is
// exact for all but f64 itself, and so rounded once. `count` has the dtype
// `repeated_dtype(result)`.
Scalar repeated(Scalar x, Scalar count, DType result);
constexpr DType repeated_dtype(DType result) { return is_float(result) ? DType::f64 : DType::i64; }

// How an operand of a pointwise nest comes in.
struct OperandForm {
  DType dtype = DType::f32;    // As stored.
  DType compute = DType::f32;  // As the op wants it: converted on the way in.
  bool is_number = false;      // A run-time number, already in the dtype `compute`, not a buffer.
  BufferRef::Columns columns = BufferRef::Columns::unit;
};

// One buffer for each operand that is not a number, in order, then the result's. Numbers are the
// scalars, in order.
Nest pointwise_nest(const OpDef& op, std::span<const OperandForm> operands, DType result,
                    BufferRef::Columns result_columns, bool streaming);

// Buffer 0 is folded into buffer 1. `result` may be wider than what the op gives, for partial
// results (`partial_dtype`).
Nest reduce_nest(const OpDef& op, DType operand, DType result, Nest::Order order,
                 BufferRef::Columns columns);

// The dtype in which a reduction adds up: f32 for the 16-bit floats, else the result's own.
DType partial_dtype(const OpDef& op, DType operand, DType result);

// Buffer 0 becomes scalar 0 + index * scalar 1, computed in f64.
Nest range_nest(DType compute, DType result);

// The run-time number a weak operand becomes, in the low bytes of a word.
uint64_t number_bits(double real, int64_t whole, bool is_real, DType dtype);

}  // namespace tidemark

// Properties of each ExprOp: its name, number of operands, and dtypes.
#pragma once

#include "tidemark/loops/nest.h"

namespace tidemark {

inline constexpr int kExprOps = static_cast<int>(ExprOp::log10) + 1;
inline constexpr int kMonoids = static_cast<int>(Monoid::maximum) + 1;

const char* name(ExprOp op);
const char* name(Monoid monoid);
int arity(ExprOp op);
// exp, log, sin and the like, of one float.
bool is_elementary(ExprOp op);

// Whether an expression of `dtype` may apply `op` to operands of `operand` (of a select: the two
// values; of ops without operands: ignored). f16 and bf16 are loaded, cast and selected; all else
// is computed in f32.
bool is_defined(ExprOp op, DType dtype, DType operand);
bool is_defined(Monoid monoid, DType dtype);

// The cost of an expression for one element, in additions; loads, constants and scalars cost
// nothing.
int work_of(const Expr& expr);

// The op that combines two partial results.
ExprOp combiner(Monoid monoid);

}  // namespace tidemark

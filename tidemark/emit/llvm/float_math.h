// Every operation on f32 and f64, over the operations of `loops/lane.h`.
#pragma once

#include "tidemark/emit/llvm/lane_value.h"
// lane_value.h comes first.
#include "tidemark/loops/divmod.h"
#include "tidemark/loops/math.h"

namespace tidemark::jit {

inline lane::LaneValue float_operation(ExprOp op, DType dtype, lane::LaneValue a, lane::LaneValue b,
                                       lane::LaneValue c) {
  using namespace lane;
  const bool is_f32 = dtype == f32;
  switch (op) {
    case ExprOp::add:
      return a + b;
    case ExprOp::subtract:
      return a - b;
    case ExprOp::multiply:
      return a * b;
    case ExprOp::divide:
      return a / b;
    case ExprOp::floor_divide:
      return math::float_floor_divide(a, b);
    case ExprOp::remainder:
      return math::float_remainder(a, b);
    case ExprOp::fma:
      return fma(a, b, c);
    case ExprOp::negate:
      return -a;
    case ExprOp::absolute:
      return abs(a);
    case ExprOp::sign: {
      const LaneValue zero = like(a, 0.0);
      const LaneValue rest = select(equal(a, zero), zero, a);
      return select(less(zero, a), like(a, 1.0), select(less(a, zero), like(a, -1.0), rest));
    }
    case ExprOp::sqrt:
      return sqrt(a);
    case ExprOp::floor:
      return floor(a);
    case ExprOp::ceil:
      return ceil(a);
    case ExprOp::round:
      return round_even(a);
    case ExprOp::trunc:
      return trunc(a);
    case ExprOp::exp:
      return math::exp_f32(a);
    case ExprOp::log:
      return math::log_f32(a);
    case ExprOp::tanh:
      return math::tanh_f32(a);
    default:
      return a;
  }
  (void)is_f32;
}

// Whether `float_operation` has it.
inline bool has_float_operation(ExprOp op, DType dtype) {
  switch (op) {
    case ExprOp::exp:
    case ExprOp::log:
    case ExprOp::tanh:
      return dtype == f32;
    case ExprOp::expm1:
    case ExprOp::log1p:
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::erf:
    case ExprOp::power:
      return false;
    default:
      return true;
  }
}

}  // namespace tidemark::jit

// Every operation on f32 and f64, over the operations of `loops/lane.h`.
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include "tidemark/emit/llvm/lane_value.h"
// lane_value.h comes first.
#include "tidemark/loops/divmod.h"
#include "tidemark/loops/math.h"

namespace tidemark::jit {

// math::exp_f32 with the scaling by 2^whole, its rounding, overflow and underflow left to the one
// instruction of AVX-512 that does it: the same bits for every input.
inline lane::LaneValue exp_f32_avx512(lane::LaneValue x) {
  using namespace lane;
  const LaneValue low = like(x, -104.0);
  const LaneValue high = like(x, 89.0);
  const LaneValue above = select(less(x, low), low, x);
  const LaneValue clamped = select(less(high, above), high, above);
  const auto [shifted, whole, rest] = math::split_exponent_f32(clamped);
  const LaneValue value = math::exp_polynomial_f32(rest);
  llvm::IRBuilder<>& builder = *x.builder;
  return x.with(builder.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
      {value.value, whole.value, value.value, builder.getInt16(0xffff), builder.getInt32(4)}));
}

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
      return is_f32 ? math::exp_f32(a) : math::exp_f64(a);
    case ExprOp::expm1:
      return is_f32 ? math::expm1_f32(a) : math::expm1_f64(a);
    case ExprOp::log:
      return is_f32 ? math::log_f32(a) : math::log_f64(a);
    case ExprOp::log1p:
      return is_f32 ? math::log1p_f32(a) : math::log1p_f64(a);
    case ExprOp::sin:
      return is_f32 ? math::sin_f32(a) : math::sin_f64(a);
    case ExprOp::cos:
      return is_f32 ? math::cos_f32(a) : math::cos_f64(a);
    case ExprOp::tanh:
      return is_f32 ? math::tanh_f32(a) : math::tanh_f64(a);
    case ExprOp::erf:
      return is_f32 ? math::erf_f32(a) : math::erf_f64(a);
    case ExprOp::erfc:
      return is_f32 ? math::erfc_f32(a) : math::erfc_f64(a);
    case ExprOp::power:
      return is_f32 ? math::power_f32(a, b) : math::power_f64(a, b);
    default:
      return a;
  }
}

}  // namespace tidemark::jit

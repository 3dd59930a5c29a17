// Every operation on f32 and f64, over the operations of `loops/lane.h`.
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include "tidemark/emit/llvm/control_flow.h"
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

// `general` of these operands, which have one type: values of the types given, by a function that
// the module has once, for all its kernels. It hardly ever runs, and built into every use it would
// take most of the time to compile.
template <class General>
Carried call_apart(const char* name, llvm::ArrayRef<lane::LaneValue> operands,
                   llvm::ArrayRef<llvm::Type*> types, General general) {
  llvm::IRBuilder<>& builder = *operands[0].builder;
  llvm::Function* kernel = builder.GetInsertBlock()->getParent();
  llvm::Type* const lane_type = operands[0].type();
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(lane_type);
  const std::string full = cat(name, "_", lanes == nullptr ? 1 : lanes->getNumElements());
  llvm::Function* apart = kernel->getParent()->getFunction(full);
  if (apart == nullptr) {
    auto* result = llvm::StructType::get(builder.getContext(), types);
    const llvm::SmallVector<llvm::Type*> parameters(operands.size(), lane_type);
    auto* type = llvm::FunctionType::get(result, parameters, false);
    apart =
        llvm::Function::Create(type, llvm::Function::InternalLinkage, full, kernel->getParent());
    apart->addFnAttrs(
        llvm::AttrBuilder(builder.getContext(), kernel->getAttributes().getFnAttrs()));
    apart->addFnAttr(llvm::Attribute::NoInline);
    apart->addFnAttr(llvm::Attribute::Cold);
    const llvm::IRBuilder<>::InsertPointGuard guard(builder);
    builder.SetInsertPoint(llvm::BasicBlock::Create(builder.getContext(), "", apart));
    std::vector<lane::LaneValue> inside;
    for (llvm::Argument& argument : apart->args()) inside.push_back(operands[0].with(&argument));
    const Carried values = general(inside);
    builder.CreateAggregateRet(values.data(), static_cast<unsigned>(values.size()));
  }
  Carried arguments, values;
  for (const lane::LaneValue& operand : operands) arguments.push_back(operand.value);
  llvm::Value* call = builder.CreateCall(apart, arguments);
  for (unsigned i = 0; i < types.size(); ++i) values.push_back(builder.CreateExtractValue(call, i));
  return values;
}
// The same for one value like the one operand.
template <class General>
lane::LaneValue value_apart(const char* name, lane::LaneValue x, General general) {
  const auto values = [&](const std::vector<lane::LaneValue>& inside) -> Carried {
    return {general(inside[0]).value};
  };
  return x.with(call_apart(name, x, {x.type()}, values)[0]);
}

// `simple`, or what `general` gives if a lane is not `ordinary`: one jump for all lanes, which
// hardly ever goes the other way. Both have the same bits in lanes that are.
template <class General>
lane::LaneValue unless_special(lane::LaneValue ordinary, lane::LaneValue simple, General general) {
  llvm::IRBuilder<>& builder = *simple.builder;
  return simple.with(when(builder, builder.CreateNot(every_lane(ordinary)), {simple.value},
                          [&](const Carried&) -> Carried { return {general().value}; })[0]);
}

inline lane::LaneValue quick_log_f32(lane::LaneValue x) {
  return unless_special(math::log_is_ordinary_f32(x), math::log_ordinary_f32(x), [&] {
    return value_apart("log_f32", x, [](lane::LaneValue y) { return math::log_f32(y); });
  });
}
inline lane::LaneValue quick_log2_f32(lane::LaneValue x) {
  const lane::LaneValue simple = math::log2_ordinary_f32(x);
  return unless_special(math::log_is_ordinary_f32(x), simple,
                        [&] { return math::log_with_special(x, simple); });
}
inline lane::LaneValue quick_log10_f32(lane::LaneValue x) {
  const lane::LaneValue simple = math::log10_ordinary_f32(x);
  return unless_special(math::log_is_ordinary_f32(x), simple,
                        [&] { return math::log_with_special(x, simple); });
}
inline lane::LaneValue quick_exp_f32(lane::LaneValue x) {
  return unless_special(math::exp_is_ordinary_f32(x), math::exp_ordinary_f32(x), [&] {
    return value_apart("exp_f32", x, [](lane::LaneValue y) { return math::exp_f32(y); });
  });
}
inline lane::LaneValue quick_log_f64(lane::LaneValue x) {
  return unless_special(math::log_is_ordinary_f64(x), math::log_ordinary_f64(x), [&] {
    return value_apart("log_f64", x, [](lane::LaneValue y) { return math::log_f64(y); });
  });
}
inline lane::LaneValue quick_exp_f64(lane::LaneValue x) {
  return unless_special(math::exp_is_ordinary_f64(x), math::exp_ordinary_f64(x), [&] {
    return value_apart("exp_f64", x, [](lane::LaneValue y) { return math::exp_f64(y); });
  });
}
inline lane::LaneValue quick_power_f64(lane::LaneValue x, lane::LaneValue y) {
  const auto [value, is_ordinary] = math::power_ordinary_f64(x, y);
  return unless_special(is_ordinary, value, [&] {
    const auto of_any = [](const std::vector<lane::LaneValue>& inside) -> Carried {
      return {math::power_f64(inside[0], inside[1]).value};
    };
    return x.with(call_apart("power_f64", {x, y}, {x.type()}, of_any)[0]);
  });
}
inline lane::LaneValue quick_erfc_f32(lane::LaneValue x) {
  return unless_special(math::erfc_is_ordinary_f32(x), math::erfc_ordinary_f32(x), [&] {
    return value_apart("erfc_f32", x, [](lane::LaneValue y) { return math::erfc_f32(y); });
  });
}
// The split of any angles: what is not near is mostly moderate, and hardly ever beyond.
inline math::SplitAngle<lane::LaneValue, lane::LaneValue> quick_split_f32(lane::LaneValue x) {
  using namespace lane;
  llvm::IRBuilder<>& builder = *x.builder;
  const auto values = [](const math::SplitAngle<LaneValue, LaneValue>& split) -> Carried {
    return {split.rest.value, split.quadrant.value};
  };
  const auto unless = [&](LaneValue ordinary, Carried simple, auto general) {
    return when(builder, builder.CreateNot(every_lane(ordinary)), std::move(simple),
                [&](const Carried&) { return general(); });
  };
  const auto of_any = [&](const std::vector<LaneValue>& inside) {
    return values(math::unless_near(inside[0], math::split_angle_f32(inside[0])));
  };
  const Carried split =
      unless(math::is_near_angle_f32(x), values(math::split_near_angle_f32(x)), [&] {
        const Carried moderate = values(math::unless_near(x, math::split_moderate_angle_f32(x)));
        return unless(math::is_moderate_angle_f32(x), moderate, [&] {
          return call_apart("split_f32", x, {x.type(), bits(x).type()}, of_any);
        });
      });
  return {x.with(split[0]), x.with(split[1])};
}

inline lane::LaneValue quick_sin(bool is_f32, lane::LaneValue x) {
  if (is_f32) return math::sin_given_split_f32(x, quick_split_f32(x));
  return unless_special(math::is_near_angle_f64(x), math::sin_near_f64(x), [&] {
    return value_apart("sin_f64", x, [](lane::LaneValue y) { return math::sin_f64(y); });
  });
}
inline lane::LaneValue quick_cos(bool is_f32, lane::LaneValue x) {
  if (is_f32) return math::cos_given_split_f32(quick_split_f32(x));
  return unless_special(math::is_near_angle_f64(x), math::cos_near_f64(x), [&] {
    return value_apart("cos_f64", x, [](lane::LaneValue y) { return math::cos_f64(y); });
  });
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
    case ExprOp::copysign:
      return copysign(a, b);
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
      return is_f32 ? quick_exp_f32(a) : quick_exp_f64(a);
    case ExprOp::expm1:
      return is_f32 ? math::expm1_f32(a) : math::expm1_f64(a);
    case ExprOp::log:
      return is_f32 ? quick_log_f32(a) : quick_log_f64(a);
    case ExprOp::log1p:
      return is_f32 ? math::log1p_f32(a) : math::log1p_f64(a);
    case ExprOp::log2:
      return is_f32 ? quick_log2_f32(a) : math::log2_f64(a);
    case ExprOp::log10:
      return is_f32 ? quick_log10_f32(a) : math::log10_f64(a);
    case ExprOp::sin:
      return quick_sin(is_f32, a);
    case ExprOp::cos:
      return quick_cos(is_f32, a);
    case ExprOp::tanh:
      return is_f32 ? math::tanh_f32(a) : math::tanh_f64(a);
    case ExprOp::erf:
      return is_f32 ? math::erf_f32(a) : math::erf_f64(a);
    case ExprOp::erfc:
      return is_f32 ? quick_erfc_f32(a) : math::erfc_f64(a);
    case ExprOp::power:
      return is_f32 ? math::power_f32(a, b) : quick_power_f64(a, b);
    default:
      return a;
  }
}

}  // namespace tidemark::jit

// The operations of `loops/lane.h` for LLVM values: scalars or vectors of one width, floats,
// integers or masks. Each appends instructions, none of which may be contracted or reordered, so a
// template written once has the same bits here as for plain numbers.
//
// Include this before `loops/math.h`: its templates name some of these functions in full.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <concepts>
#include <cstdint>

#include "tidemark/emit/llvm/control_flow.h"
#include "tidemark/emit/llvm/helpers.h"

namespace tidemark::lane {

struct LaneValue {
  llvm::Value* value = nullptr;
  llvm::IRBuilder<>* builder = nullptr;

  llvm::Type* type() const { return value->getType(); }
  bool is_float() const { return type()->isFPOrFPVectorTy(); }
  LaneValue with(llvm::Value* other) const { return {other, builder}; }
};

// `element` in as many lanes as `shape` has.
inline llvm::Type* in_lanes_of(llvm::Type* shape, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape);
  return vector == nullptr ? element
                           : llvm::FixedVectorType::get(element, vector->getNumElements());
}

template <class C>
  requires std::floating_point<C> || std::integral<C>
LaneValue like(LaneValue x, C constant) {
  llvm::Type* type = x.type();
  if (x.is_float()) return x.with(llvm::ConstantFP::get(type, static_cast<double>(constant)));
  return x.with(llvm::ConstantInt::get(type, static_cast<uint64_t>(constant), true));
}

inline LaneValue operator+(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFAdd(a.value, b.value)
                             : a.builder->CreateAdd(a.value, b.value));
}
inline LaneValue operator-(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFSub(a.value, b.value)
                             : a.builder->CreateSub(a.value, b.value));
}
inline LaneValue operator*(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFMul(a.value, b.value)
                             : a.builder->CreateMul(a.value, b.value));
}
inline LaneValue operator/(LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateFDiv(a.value, b.value));
}
inline LaneValue operator-(LaneValue a) {
  return a.with(a.is_float() ? a.builder->CreateFNeg(a.value) : a.builder->CreateNeg(a.value));
}

inline LaneValue unary(llvm::Intrinsic::ID id, LaneValue a) {
  return a.with(a.builder->CreateUnaryIntrinsic(id, a.value));
}
inline LaneValue fma(LaneValue a, LaneValue b, LaneValue c) {
  return a.with(
      a.builder->CreateIntrinsic(a.type(), llvm::Intrinsic::fma, {a.value, b.value, c.value}));
}
inline LaneValue abs(LaneValue a) { return unary(llvm::Intrinsic::fabs, a); }
inline LaneValue sqrt(LaneValue a) { return unary(llvm::Intrinsic::sqrt, a); }
inline LaneValue floor(LaneValue a) { return unary(llvm::Intrinsic::floor, a); }
inline LaneValue ceil(LaneValue a) { return unary(llvm::Intrinsic::ceil, a); }
inline LaneValue trunc(LaneValue a) { return unary(llvm::Intrinsic::trunc, a); }
inline LaneValue round_even(LaneValue a) { return unary(llvm::Intrinsic::rint, a); }
inline LaneValue copysign(LaneValue magnitude, LaneValue sign) {
  return magnitude.with(magnitude.builder->CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                                                 magnitude.value, sign.value));
}

inline LaneValue less(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFCmpOLT(a.value, b.value)
                             : a.builder->CreateICmpSLT(a.value, b.value));
}
inline LaneValue less_equal(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFCmpOLE(a.value, b.value)
                             : a.builder->CreateICmpSLE(a.value, b.value));
}
inline LaneValue equal(LaneValue a, LaneValue b) {
  return a.with(a.is_float() ? a.builder->CreateFCmpOEQ(a.value, b.value)
                             : a.builder->CreateICmpEQ(a.value, b.value));
}
inline LaneValue is_nan(LaneValue a) { return a.with(a.builder->CreateFCmpUNO(a.value, a.value)); }
inline LaneValue both(LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateAnd(a.value, b.value));
}
inline LaneValue either(LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateOr(a.value, b.value));
}
inline LaneValue no(LaneValue a) { return a.with(a.builder->CreateNot(a.value)); }
inline LaneValue equal_masks(LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateICmpEQ(a.value, b.value));
}
inline LaneValue select(LaneValue mask, LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateSelect(mask.value, a.value, b.value));
}

inline LaneValue bits(LaneValue a) {
  llvm::Type* element = a.builder->getIntNTy(a.type()->getScalarSizeInBits());
  return a.with(a.builder->CreateBitCast(a.value, in_lanes_of(a.type(), element)));
}
inline llvm::Type* float_of_width(LaneValue a) {
  llvm::Type* element =
      a.type()->getScalarSizeInBits() == 32 ? a.builder->getFloatTy() : a.builder->getDoubleTy();
  return in_lanes_of(a.type(), element);
}
inline LaneValue from_bits(LaneValue a) {
  return a.with(a.builder->CreateBitCast(a.value, float_of_width(a)));
}
inline LaneValue to_int(LaneValue a) {
  llvm::Type* element = a.builder->getIntNTy(a.type()->getScalarSizeInBits());
  return a.with(a.builder->CreateFPToSI(a.value, in_lanes_of(a.type(), element)));
}
inline LaneValue to_float(LaneValue a) {
  return a.with(a.builder->CreateSIToFP(a.value, float_of_width(a)));
}
inline LaneValue shift_left(LaneValue a, int n) {
  return a.with(a.builder->CreateShl(a.value, like(a, n).value));
}
inline LaneValue shift_right(LaneValue a, int n) {
  return a.with(a.builder->CreateAShr(a.value, like(a, n).value));
}
inline LaneValue shift_right_logical(LaneValue a, int n) {
  return a.with(a.builder->CreateLShr(a.value, like(a, n).value));
}
inline LaneValue bit_and(LaneValue a, LaneValue b) { return both(a, b); }
inline LaneValue bit_or(LaneValue a, LaneValue b) { return either(a, b); }
inline LaneValue bit_xor(LaneValue a, LaneValue b) {
  return a.with(a.builder->CreateXor(a.value, b.value));
}
inline LaneValue widen(LaneValue a) {
  return a.with(a.builder->CreateFPExt(a.value, in_lanes_of(a.type(), a.builder->getDoubleTy())));
}
inline LaneValue narrow(LaneValue a) {
  if (!a.is_float())
    return a.with(a.builder->CreateTrunc(a.value, in_lanes_of(a.type(), a.builder->getInt32Ty())));
  return a.with(a.builder->CreateFPTrunc(a.value, in_lanes_of(a.type(), a.builder->getFloatTy())));
}

// Whether every lane of a mask is set. As one integer, which x86 compares in an instruction or two;
// LLVM folds a mask of AVX-512 in halves.
inline llvm::Value* every_lane(LaneValue mask) {
  auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(mask.type());
  if (lanes == nullptr) return mask.value;
  llvm::Type* integer = mask.builder->getIntNTy(lanes->getNumElements());
  llvm::Value* together = mask.builder->CreateBitCast(mask.value, integer);
  return mask.builder->CreateICmpEQ(together, llvm::Constant::getAllOnesValue(integer));
}

// Stack memory of the function being built; taken once however often the code around it runs.
inline llvm::AllocaInst* stack_slot(llvm::IRBuilder<>& builder, llvm::Type* type, int64_t count = 1,
                                    uint64_t alignment = 64) {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  auto* slot = at_entry.CreateAlloca(type, at_entry.getInt64(static_cast<uint64_t>(count)));
  slot->setAlignment(llvm::Align(alignment));
  return slot;
}
// Calls a function of ours whose address is known: no symbol, so nothing to resolve.
template <class Result, class... Args>
llvm::Value* call_address(llvm::IRBuilder<>& builder, Result (*function)(Args...),
                          llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::SmallVector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), types, false);
  auto* address = builder.getInt64(reinterpret_cast<uint64_t>(function));
  return builder.CreateCall(type, builder.CreateIntToPtr(address, builder.getPtrTy()), arguments);
}

// One element after the other, for any numbers.
inline LaneValue fmod_of_any(LaneValue a, LaneValue b) {
  llvm::IRBuilder<>& builder = *a.builder;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a.type());
  auto* count = builder.getInt64(vector == nullptr ? 1 : vector->getNumElements());
  auto* left = stack_slot(builder, a.type());
  auto* right = stack_slot(builder, a.type());
  builder.CreateStore(a.value, left);
  builder.CreateStore(b.value, right);
  const bool is_f32 = a.type()->getScalarSizeInBits() == 32;
  call_address(builder, is_f32 ? jit::fmod_f32 : jit::fmod_f64, {left, right, count});
  return a.with(builder.CreateLoad(a.type(), left));
}

// Where the quotient has a few bits to spare, a - n b is exact for its whole part n. The rounded
// quotient may be the whole number above it, and then the difference is b too far.
inline LaneValue fmod(LaneValue a, LaneValue b) {
  llvm::IRBuilder<>& builder = *a.builder;
  const bool is_f32 = a.type()->getScalarSizeInBits() == 32;
  const LaneValue quotient = a / b;
  const LaneValue left = fma(-trunc(quotient), b, a);
  const LaneValue too_far = less(left * copysign(like(a, 1.0), a), like(a, 0.0));
  const LaneValue simple = copysign(select(too_far, left + copysign(b, a), left), a);
  const LaneValue is_simple = both(less(abs(quotient), like(a, is_f32 ? 0x1p22 : 0x1p51)),
                                   less(abs(b), like(b, __builtin_inf())));
  return a.with(
      jit::when(builder, builder.CreateNot(every_lane(is_simple)), {simple.value},
                [&](const jit::Carried&) -> jit::Carried { return {fmod_of_any(a, b).value}; })[0]);
}

}  // namespace tidemark::lane

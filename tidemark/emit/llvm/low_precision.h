// f16 and bf16, kept as 16-bit words, to f32 and back: the bits of `types/dtype.h`.
#pragma once

#include "tidemark/emit/llvm/lane_value.h"
#include "tidemark/types/dtype.h"

namespace tidemark::jit {

inline llvm::Value* f32_of_low(llvm::IRBuilder<>& builder, bool has_f16c, llvm::Value* from,
                               DType dtype) {
  using lane::LaneValue, lane::like;
  const auto lane = [&](llvm::Value* value) { return LaneValue{value, &builder}; };
  llvm::Type* words = lane::in_lanes_of(from->getType(), builder.getInt32Ty());
  const LaneValue word = lane(builder.CreateZExt(from, words));
  if (dtype == bf16) return from_bits(shift_left(word, 16)).value;
  if (has_f16c) {
    llvm::Type* half = lane::in_lanes_of(from->getType(), builder.getHalfTy());
    llvm::Type* single = lane::in_lanes_of(from->getType(), builder.getFloatTy());
    return builder.CreateFPExt(builder.CreateBitCast(from, half), single);
  }
  const LaneValue sign = shift_left(bit_and(word, like(word, 0x8000)), 16);
  const LaneValue fraction = bit_and(word, like(word, 0x3ff));
  const LaneValue size = bit_and(word, like(word, 0x7fff));
  const LaneValue scale = lane(llvm::ConstantFP::get(lane::float_of_width(word), 0x1p-24));
  const LaneValue small = bits(to_float(fraction) * scale);
  const LaneValue normal = shift_left(size, 13) + like(word, 112 << 23);
  const LaneValue quiet =
      select(equal(fraction, like(word, 0)), like(word, 0), like(word, 0x400000));
  const LaneValue huge = bit_or(bit_or(shift_left(size, 13), like(word, 0x7f800000)), quiet);
  const LaneValue finite = select(less(size, like(word, 0x400)), small, normal);
  return from_bits(bit_or(select(less(size, like(word, 0x7c00)), finite, huge), sign)).value;
}

inline llvm::Value* low_of_f32(llvm::IRBuilder<>& builder, bool has_f16c, llvm::Value* from,
                               DType dtype) {
  using lane::LaneValue, lane::like;
  const auto lane = [&](llvm::Value* value) { return LaneValue{value, &builder}; };
  llvm::Type* shorts = lane::in_lanes_of(from->getType(), builder.getInt16Ty());
  const LaneValue word = bits(lane(from));
  if (dtype == bf16) {
    const LaneValue top = shift_right_logical(word, 16);
    const LaneValue rounded =
        shift_right_logical(word + like(word, 0x7fff) + bit_and(top, like(word, 1)), 16);
    const LaneValue quiet = bit_or(top, like(word, 0x40));
    return builder.CreateTrunc(select(is_nan(lane(from)), quiet, rounded).value, shorts);
  }
  if (has_f16c) {
    llvm::Type* half = lane::in_lanes_of(from->getType(), builder.getHalfTy());
    return builder.CreateBitCast(builder.CreateFPTrunc(from, half), shorts);
  }
  // The cases of f16_of_float, all computed and one chosen.
  const LaneValue sign = bit_and(shift_right_logical(word, 16), like(word, 0x8000));
  const LaneValue size = bit_and(word, like(word, 0x7fffffff));
  const LaneValue payload = bit_and(shift_right_logical(size, 13), like(word, 0x3ff));
  const LaneValue nan = bit_or(payload, like(word, 0x7e00));
  const LaneValue magnitude = from_bits(size);
  const LaneValue small = bits(magnitude + like(magnitude, 0.5)) - like(word, 0x3f000000);
  const LaneValue odd = bit_and(shift_right_logical(size, 13), like(word, 1));
  const LaneValue normal = shift_right_logical(size + like(word, 0xfff - 0x38000000) + odd, 13);
  LaneValue result = select(less(size, like(word, 0x38800000)), small, normal);
  result = select(less(size, like(word, 0x477ff000)), result, like(word, 0x7c00));
  result = select(less(like(word, 0x7f800000), size), nan, result);
  return builder.CreateTrunc(bit_or(result, sign).value, shorts);
}

}  // namespace tidemark::jit

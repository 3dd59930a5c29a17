// How close a result has to be to the reference.
#pragma once

#include <string>

#include "tests/sweep/cases.h"

namespace tidemark::sweep {

// Why `got` is not what the case should give, or nothing. `want` is the reference's answer.
//
// 0 ulps asks for the same bits, but for a NaN's payload. Ops with a polynomial have the ulps of
// their definition, and 1 in 16-bit floats, which round an f32 result. Ops whose order differs from
// the reference's plain loop have a bound derived from their order, with u half an ulp of 1 in the
// dtype they add in (f32 for 16-bit floats) and one ulp of the result for its own rounding:
//
//   sum       d u sum|x|, d = min(n, 326) + log2 n + 1: chains of at most 64 elements in a lane and
//             256 in a step block, then trees over lanes and blocks.
//   prod      n u |y|: one rounding for each multiplication, whatever the order.
//   cumsum    n u sum|x|: one chain.
//   matmul    d u sum|a||b|, d = min(k, 256) + k / 256 + 1: an fma chain for each block of 256,
//   conv2d    then the blocks in order.
//   conv3d
//   conv_kernel
//   distances  (k + 4) u y: the squares of k differences, none below 0.
//   weighted_differences  (d + 1) u sum|w|(|a| + |b|), d as that of matmul.
//   resample  d u 2 max|x|: a chain over the samples, with rounded weights.
//   softmax   (2 ulps + d + r) u y: the definition's ulps, the sum's error, and r = the row's
//   spread,
//             which the rounding of x - max is amplified by; log_softmax the same times 1 + |y|,
//             since what cancels there is of the size of r.
std::string difference(const Case& c, const Tensor& got, const Tensor& want);

// Why two results of a case that must have the same bits have not, or nothing. Where several NaNs
// meet in one result (sums, polynomials of x times x) hardware keeps the one that its instruction
// names first, and compilers exchange the operands of a sum: there one NaN is as good as another.
std::string bit_difference(const Case& c, const Tensor& a, const Tensor& b);

}  // namespace tidemark::sweep

// Elementary functions of 32-bit floats, as templates over the operations of `lane.h`.
//
// No branches, no tables: every lane does the same work, and special values are put in by select.
// NaN in gives NaN out, results below the smallest normal are denormal, and -0 keeps its sign where
// the function is odd. Bounds are in units in the last place of the exact result, found by trying
// all 2^32 inputs. Coefficients come from `tools/fit_polynomials.py`.
#pragma once

#include "tidemark/loops/lane.h"
#include "tidemark/loops/polynomial.h"

namespace tidemark::math {

using namespace lane;

// x = whole * ln2 + rest with |rest| <= ln2 / 2, for |x| < 2^20.
//
// Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum, so `shifted` is whole
// both as a float and, after a shift that drops the rest of the word, as an exponent. No conversion
// happens, and so none that would be undefined for NaN.
template <class V>
struct SplitExponent {
  V shifted, whole, rest;
};
template <class V>
TIDEMARK_INLINE SplitExponent<V> split_exponent_f32(V x) {
  const V shifter = like(x, 0x1.8p23);
  const V shifted = fma(x, like(x, 0x1.715476p0), shifter);
  const V whole = shifted - shifter;
  const V high = fma(whole, like(x, -0x1.62e4p-1), x);
  return {shifted, whole, fma(whole, like(x, -0x1.7f7d1cp-20), high)};
}

// expm1(r) for |r| <= ln2 / 2: the relative error is below 2^-24 before the last rounding.
template <class V>
TIDEMARK_INLINE V expm1_polynomial_f32(V r) {
  const V tail = polynomial(r, 0.5, 0.166665181517601, 0.04166620597243309, 0.008368917740881443,
                            0.0013950540451332927);
  return fma(r * r, tail, r);
}

// exp(x), to 1.1 ulp.
template <class V>
TIDEMARK_INLINE V exp_f32(V x) {
  // Beyond these the result is 0 or infinity; a NaN passes, since it is not less than anything.
  const V low = like(x, -104.0);
  const V high = like(x, 89.0);
  const V below = select(less(x, low), low, x);
  const V clamped = select(less(high, below), high, below);
  const auto [shifted, whole, rest] = split_exponent_f32(clamped);
  const V value = polynomial(rest, 1.0, 1.0, 0.5, 0.166665181517601, 0.04166620597243309,
                             0.008368917740881443, 0.0013950540451332927);
  // 2^whole may lie outside the normal range (-150 to 128 happen), so it is applied as two factors
  // that do not; only the second product can round.
  const auto exponent = bits(shifted);
  const auto half = shift_right(exponent, 1);
  const auto one = bits(like(x, 1.0));
  const V first = from_bits(shift_left(half, 23) + one);
  const V second = from_bits(shift_left(exponent - half, 23) + one);
  return value * first * second;
}

// x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)); gives m - 1, exactly. For normal positive x.
template <class V>
struct SplitMantissa {
  V exponent, fraction;
};
template <class V>
TIDEMARK_INLINE SplitMantissa<V> split_mantissa_f32(V x) {
  const auto sqrt_half = bits(like(x, 0x1.6a09e6p-1));
  const auto offset = bits(x) - sqrt_half;
  const auto mantissa = bit_and(offset, like(offset, 0x007fffff)) + sqrt_half;
  return {to_float(shift_right(offset, 23)), from_bits(mantissa) - like(x, 1.0)};
}

// log1p(f) + exponent * ln2 for f in [sqrt(1/2) - 1, sqrt(2) - 1).
template <class V>
TIDEMARK_INLINE V log_of_split_f32(V exponent, V f) {
  const V tail = polynomial(f, 0.3333333134651184, -0.2500081956386566, 0.20001226663589478,
                            -0.16623356938362122, 0.14201758801937103, -0.13160182535648346,
                            0.12761574983596802, -0.07634494453668594);
  const V square = f * f;
  // The parts of ln2: the high one has few bits, so that its product with any exponent is exact.
  const V small = fma(exponent, like(f, 0x1.7f7d1cp-20), square * (f * tail));
  const V rest = fma(like(f, -0.5), square, small);
  return fma(exponent, like(f, 0x1.62e4p-1), f + rest);
}

// log(x), to 1.5 ulp. log(0) is -infinity, and the log of a negative number NaN.
template <class V>
TIDEMARK_INLINE V log_f32(V x) {
  const V zero = like(x, 0.0);
  const V infinity = like(x, __builtin_inf());
  const auto denormal = less(x, like(x, 0x1p-126));
  const V scaled = select(denormal, x * like(x, 0x1p23), x);
  const auto [exponent, fraction] = split_mantissa_f32(scaled);
  const V shift = select(denormal, like(x, -23.0), zero);
  const V value = log_of_split_f32(exponent + shift, fraction);
  const V ordinary = select(less(x, infinity), value, x);  // Infinity and NaN are their own logs.
  const V positive = select(less(x, zero), like(x, __builtin_nan("")), ordinary);
  return select(equal(x, zero), -infinity, positive);
}

// tanh(x), to 2.5 ulp.
//
// With e = expm1(2|x|), tanh|x| = e / (e + 2): both for small x, where e is accurate relative to
// itself, and for large, nothing cancels.
template <class V>
TIDEMARK_INLINE V tanh_f32(V x) {
  const V size = abs(x);
  const V limit = like(x, 10.0);  // tanh is 1 to the last bit from 9.02 on.
  const V clamped = select(less(limit, size), limit, size);
  const auto [shifted, whole, rest] = split_exponent_f32(clamped + clamped);
  const V power = from_bits(shift_left(bits(shifted), 23) + bits(like(x, 1.0)));
  const V e = fma(power, expm1_polynomial_f32(rest), power - like(x, 1.0));
  return copysign(e / (e + like(x, 2.0)), x);
}

}  // namespace tidemark::math

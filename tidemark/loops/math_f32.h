// Elementary functions of 32-bit floats, as templates over the operations of `lane.h`.
//
// No branches, no tables: every lane does the same work, and special values are put in by select.
// NaN in gives NaN out, results below the smallest normal are denormal, and -0 keeps its sign where
// the function is odd. Bounds are in units in the last place of the exact result; `math_test.cc`
// holds them against a wider reference, on all 2^32 inputs under full counts. Coefficients come
// from `tools/fit_polynomials.py`.
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

// exp(r) for |r| <= ln2 / 2.
template <class V>
TIDEMARK_INLINE V exp_polynomial_f32(V r) {
  return polynomial(r, 1.0, 1.0, 0.5, 0.166665181517601, 0.04166620597243309, 0.008368917740881443,
                    0.0013950540451332927);
}

// Whether exp(x) is normal, and no step on the way to it leaves the range.
template <class V>
TIDEMARK_INLINE auto exp_is_ordinary_f32(V x) {
  return less(abs(x), like(x, 87.0));
}

// exp(x + tail) for a tail far below x, where exp(x) is ordinary.
template <class V>
TIDEMARK_INLINE V exp_of_ordinary_sum_f32(V x, V tail) {
  const auto [shifted, whole, rest] = split_exponent_f32(x);
  const V power = from_bits(shift_left(bits(shifted), 23) + bits(like(x, 1.0)));
  return exp_polynomial_f32(rest + tail) * power;
}

// exp(x + tail) for a tail far below x and any x.
template <class V>
TIDEMARK_INLINE V exp_of_sum_f32(V x, V tail) {
  const auto [shifted, whole, rest] = split_exponent_f32(x);
  const V value = exp_polynomial_f32(rest + tail);
  // 2^whole may lie outside the normal range (-150 to 128 happen), so it is applied as two factors
  // that do not; only the second product can round.
  const auto small = less(x, like(x, -80.0));
  const V first = select(small, like(x, 0x1p64), like(x, 0x1p-1));
  const V second = select(small, like(x, 0x1p-64), like(x, 0x1p1));
  const V power = from_bits(shift_left(bits(shifted), 23) + bits(first));
  const V ordinary = value * power * second;
  const V not_small = select(less(x, like(x, -104.0)), like(x, 0.0), ordinary);
  return select(less(like(x, 89.0), x), like(x, __builtin_inf()), not_small);
}

// exp(x) where it is ordinary, in fewer steps and with the same bits.
template <class V>
TIDEMARK_INLINE V exp_ordinary_f32(V x) {
  return exp_of_ordinary_sum_f32(x, like(x, -0.0));
}

// exp(x), to 1 ulp.
template <class V>
TIDEMARK_INLINE V exp_f32(V x) {
  return exp_of_sum_f32(x, like(x, -0.0));
}

// expm1(x), to 2 ulp.
template <class V>
TIDEMARK_INLINE V expm1_f32(V x) {
  const V low = like(x, -18.0);  // expm1 is -1 to the last bit from here down.
  const V high = like(x, 89.0);
  const V above = select(less(x, low), low, x);
  const V clamped = select(less(high, above), high, above);
  const auto [shifted, whole, rest] = split_exponent_f32(clamped);
  // Half of 2^whole, which may itself be 2^128.
  const V half = like(x, 0.5);
  const V power = from_bits(shift_left(bits(shifted), 23) + bits(half));
  const V value = fma(power, expm1_polynomial_f32(rest), power - half);
  // Halving would lose a denormal's last bit, and the sum the sign of -0.
  return select(less(abs(x), like(x, 0x1p-30)), x, value + value);
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

// Whether x is positive, finite and not denormal.
template <class V>
TIDEMARK_INLINE auto log_is_ordinary_f32(V x) {
  return both(less_equal(like(x, 0x1p-126), x), less(x, like(x, __builtin_inf())));
}

// log(x) of an ordinary x, in fewer steps and with the same bits.
template <class V>
TIDEMARK_INLINE V log_ordinary_f32(V x) {
  const auto [exponent, fraction] = split_mantissa_f32(x);
  return log_of_split_f32(exponent, fraction);
}

// The logarithm of x, given its value for finite x > 0: that of 0 is -infinity, and that of a
// negative number NaN.
template <class V>
TIDEMARK_INLINE V log_with_special(V x, V value) {
  const V zero = like(x, 0.0);
  const V infinity = like(x, __builtin_inf());
  const V ordinary = select(less(x, infinity), value, x);  // Infinity and NaN are their own logs.
  const V positive = select(less(x, zero), like(x, __builtin_nan("")), ordinary);
  return select(equal(x, zero), -infinity, positive);
}

// log(x), to 1 ulp.
template <class V>
TIDEMARK_INLINE V log_f32(V x) {
  const auto denormal = less(x, like(x, 0x1p-126));
  const V scaled = select(denormal, x * like(x, 0x1p23), x);
  const auto [exponent, fraction] = split_mantissa_f32(scaled);
  const V shift = select(denormal, like(x, -23.0), like(x, 0.0));
  return log_with_special(x, log_of_split_f32(exponent + shift, fraction));
}

// log1p(x), to 1.5 ulp. log1p(-1) is -infinity, and below that it is NaN.
//
// 1 + x need not be known exactly: it only picks an exponent, and with s = 2^-exponent the fraction
// is s (1 + x) - 1 = s x + (s - 1), in one rounding. s - 1 is exact where it matters.
template <class V>
TIDEMARK_INLINE V log1p_f32(V x) {
  const V one = like(x, 1.0);
  const V infinity = like(x, __builtin_inf());
  const auto sqrt_half = bits(like(x, 0x1.6a09e6p-1));
  const auto exponent = shift_right(bits(one + x) - sqrt_half, 23);
  // 4 s, since s itself may be the denormal 2^-128.
  const V quarter = like(x, 0.25);
  const V scale = from_bits(bits(like(x, 4.0)) - shift_left(exponent, 23));
  const V fraction = fma(x * quarter, scale, fma(quarter, scale, -one));
  const V value = log_of_split_f32(to_float(exponent), fraction);
  const V small = select(less(abs(x), like(x, 0x1p-26)), x, value);
  const V ordinary = select(less(x, infinity), small, x);
  const V defined = select(less(x, -one), like(x, __builtin_nan("")), ordinary);
  return select(equal(x, -one), -infinity, defined);
}

// tanh(x), to 2.6 ulp.
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

// erf(x), to 2 ulp: near 0 a polynomial, and from 1 on 1 - exp(log(erfc(x))), where the exponential
// is small enough that its own error hardly counts.
template <class V>
TIDEMARK_INLINE V erf_f32(V x) {
  const V one = like(x, 1.0);
  const V near_zero =
      fma(x,
          polynomial(x * x, 0.12837916612625122, -0.3761262595653534, 0.11283600330352783,
                     -0.026854444295167923, 0.005189535673707724, -0.0008020842215046287,
                     7.889122935011983e-05),
          x);
  const V size = abs(x);
  const V limit = like(x, 4.0);  // erf is 1 to the last bit from 3.92 on.
  const V clamped = select(less(limit, size), limit, size);
  const V log_erfc = polynomial(clamped, -0.00035371939884498715, -1.1270400285720825,
                                -0.6382256746292114, -0.10303736478090286, 0.02180531807243824,
                                -0.0029396070167422295, 0.000185573982889764);
  const auto [shifted, whole, rest] = split_exponent_f32(log_erfc);
  const V power = from_bits(shift_left(bits(shifted), 23) + bits(one));
  const V tail = fma(-power, expm1_polynomial_f32(rest), one - power);
  return select(less(size, one), near_zero, copysign(tail, x));
}

// erfc(size) exp(size^2) for size from 0 to 11: hardly varies if multiplied by size + 2.
template <class V>
TIDEMARK_INLINE V scaled_erfc_f32(V size) {
  const V two = like(size, 2.0);
  const V inverse = like(size, 1.0) / (size + two);
  const V t = (size - two) * inverse;
  return polynomial(t, 0.5107913613319397, -0.34358033537864685, 0.1397358626127243,
                    -0.018220989033579826, -0.010752641595900059, 0.0032387629617005587,
                    0.001530716777779162, -0.00041865865932777524, -0.0002965114254038781,
                    2.6287156288162805e-05, 3.627705518738367e-05) *
         (inverse + inverse);
}

// Whether exp(-x^2) is ordinary.
template <class V>
TIDEMARK_INLINE auto erfc_is_ordinary_f32(V x) {
  return less(abs(x), like(x, 9.3));
}

// erfc(x) where it is ordinary, in fewer steps and with the same bits.
template <class V>
TIDEMARK_INLINE V erfc_ordinary_f32(V x) {
  const V size = abs(x), square = size * size;
  const V tail =
      scaled_erfc_f32(size) * exp_of_ordinary_sum_f32(-square, -fma(size, size, -square));
  return select(less(x, like(x, 0.0)), like(x, 2.0) - tail, tail);
}

// erfc(x), to 5 ulp also where it is small. What the square loses in rounding would show in the
// exponential, so it is put back.
template <class V>
TIDEMARK_INLINE V erfc_f32(V x) {
  const V limit = like(x, 11.0);  // erfc is 0 from 10.06 on.
  const V size = select(less(limit, abs(x)), limit, abs(x)), square = size * size;
  const V tail = scaled_erfc_f32(size) * exp_of_sum_f32(-square, -fma(size, size, -square));
  return select(less(x, like(x, 0.0)), like(x, 2.0) - tail, tail);
}

}  // namespace tidemark::math

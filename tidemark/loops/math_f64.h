// Elementary functions of 64-bit floats, as templates over the operations of `lane.h`. The methods
// are those of `math_f32.h`, with longer polynomials and, where rounding would show, a second float
// that holds what the first left out. Bounds are in units in the last place, above what random and
// hard arguments reach in the tests. Coefficients come from `tools/fit_polynomials.py`.
#pragma once

#include "tidemark/loops/lane.h"
#include "tidemark/loops/math_f32.h"
#include "tidemark/loops/polynomial.h"

namespace tidemark::math {

using namespace lane;

// x = whole * ln2 + rest with |rest| <= ln2 / 2, for |x| < 2^20; `shifted` as in the f32 one.
template <class V>
TIDEMARK_INLINE SplitExponent<V> split_exponent_f64(V x) {
  const V shifter = like(x, 0x1.8p52);
  const V shifted = fma(x, like(x, 0x1.71547652b82fep0), shifter);
  const V whole = shifted - shifter;
  const V high = fma(whole, like(x, -0x1.62e42fefa39efp-1), x);
  return {shifted, whole, fma(whole, like(x, -0x1.abc9e3b39803fp-56), high)};
}

// expm1(r) for |r| <= ln2 / 2.
template <class V>
TIDEMARK_INLINE V expm1_polynomial_f64(V r) {
  const V tail = polynomial(r, 0x1.000000000000cp-1, 0x1.5555555555561p-3, 0x1.555555554ffeap-5,
                            0x1.111111110d60cp-7, 0x1.6c16c185b711ap-10, 0x1.a01a01baf1f40p-13,
                            0x1.a0199667d5d45p-16, 0x1.71dddfa81ef62p-19, 0x1.28b072c4cf40cp-22,
                            0x1.af85c14452b60p-26);
  return fma(r * r, tail, r);
}

// exp(x + tail) for a tail far below x; infinite and NaN x are right when tail is finite.
template <class V>
TIDEMARK_INLINE V exp_of_sum_f64(V x, V tail) {
  const auto [shifted, whole, rest] = split_exponent_f64(x);
  const V value = expm1_polynomial_f64(rest + tail) + like(x, 1.0);
  // As in f32: two factors, since 2^whole may be outside the normal range.
  const auto small = less(x, like(x, -700.0));
  const V first = select(small, like(x, 0x1p600), like(x, 0x1p-1));
  const V second = select(small, like(x, 0x1p-600), like(x, 0x1p1));
  const V power = from_bits(shift_left(bits(shifted), 52) + bits(first));
  const V ordinary = value * power * second;
  const V not_small = select(less(x, like(x, -746.0)), like(x, 0.0), ordinary);
  return select(less(like(x, 710.0), x), like(x, __builtin_inf()), not_small);
}

// Whether exp(x) is normal, and no step on the way to it leaves the range.
template <class V>
TIDEMARK_INLINE auto exp_is_ordinary_f64(V x) {
  return less(abs(x), like(x, 700.0));
}

// exp(x + tail) for a tail far below x, where exp(x) is ordinary, with the same bits.
template <class V>
TIDEMARK_INLINE V exp_of_ordinary_sum_f64(V x, V tail) {
  const auto [shifted, whole, rest] = split_exponent_f64(x);
  const V power = from_bits(shift_left(bits(shifted), 52) + bits(like(x, 1.0)));
  return (expm1_polynomial_f64(rest + tail) + like(x, 1.0)) * power;
}

// exp(x) where it is ordinary, in fewer steps and with the same bits.
template <class V>
TIDEMARK_INLINE V exp_ordinary_f64(V x) {
  return exp_of_ordinary_sum_f64(x, like(x, 0.0));
}

// exp(x), to 1.2 ulp.
template <class V>
TIDEMARK_INLINE V exp_f64(V x) {
  return exp_of_sum_f64(x, like(x, 0.0));
}

// expm1(x), to 2.5 ulp.
template <class V>
TIDEMARK_INLINE V expm1_f64(V x) {
  const V low = like(x, -40.0);
  const V high = like(x, 710.0);
  const V above = select(less(x, low), low, x);
  const V clamped = select(less(high, above), high, above);
  const auto [shifted, whole, rest] = split_exponent_f64(clamped);
  const V half = like(x, 0.5);
  const V power = from_bits(shift_left(bits(shifted), 52) + bits(half));
  const V value = fma(power, expm1_polynomial_f64(rest), power - half);
  return select(less(abs(x), like(x, 0x1p-60)), x, value + value);
}

// tanh(x), to 3 ulp.
template <class V>
TIDEMARK_INLINE V tanh_f64(V x) {
  const V size = abs(x);
  const V limit = like(x, 20.0);  // tanh is 1 to the last bit from 19.1 on.
  const V clamped = select(less(limit, size), limit, size);
  const auto [shifted, whole, rest] = split_exponent_f64(clamped + clamped);
  const V power = from_bits(shift_left(bits(shifted), 52) + bits(like(x, 1.0)));
  const V e = fma(power, expm1_polynomial_f64(rest), power - like(x, 1.0));
  return copysign(e / (e + like(x, 2.0)), x);
}

// log1p(f) + exponent * ln2 for f in [sqrt(1/2) - 1, sqrt(2) - 1).
//
// With s = f / (2 + f), log1p(f) = log((1 + s) / (1 - s)) = 2s + s z R(z) for z = s^2; and 2s is
// f - s f, so that the leading term is exact and the division's error counts little.
template <class V>
TIDEMARK_INLINE V log_of_split_f64(V exponent, V f) {
  const V s = f / (f + like(f, 2.0));
  const V z = s * s;
  const V tail = z * polynomial(z, 0x1.5555555555592p-1, 0x1.999999997fdb8p-2, 0x1.24924941f1217p-2,
                                0x1.c71c52095f59ep-3, 0x1.74663ee80c0d8p-3, 0x1.39a1babfa309fp-3,
                                0x1.2f05633e1d5bap-3);
  const V half_square = like(f, 0.5) * f * f;
  // s f = f^2/2 - s f^2/2, so log1p(f) = f - (f^2/2 - s (f^2/2 + tail)).
  const V low = fma(s, half_square + tail, exponent * like(f, 0x1.ef35793c7673p-45));
  return fma(exponent, like(f, 0x1.62e42fefa38p-1), f - (half_square - low));
}

// The exponent e of a positive normal float with bits `biased`, as a float. The bits of the
// exponent become the last bits of 2^52 and more: few instruction sets convert 64-bit integers.
template <class I>
TIDEMARK_INLINE auto exponent_f64(I biased) {
  const auto field =
      from_bits(bit_or(shift_right_logical(biased, 52), like(biased, int64_t{0x4330000000000000})));
  return field - like(field, 0x1p52 + 1023);
}

// x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)); gives m - 1, exactly. For normal positive x.
template <class V>
TIDEMARK_INLINE SplitMantissa<V> split_mantissa_f64(V x) {
  const auto sqrt_half = bits(like(x, 0x1.6a09e667f3bcdp-1));
  const auto biased = (bits(x) - sqrt_half) + bits(like(x, 1.0));
  const auto mantissa = bit_and(biased, like(biased, int64_t{0x000fffffffffffff})) + sqrt_half;
  return {exponent_f64(biased), from_bits(mantissa) - like(x, 1.0)};
}

// The same for denormal x too.
template <class V>
TIDEMARK_INLINE SplitMantissa<V> split_any_mantissa_f64(V x) {
  const auto denormal = less(x, like(x, 0x1p-1022));
  const auto [exponent, fraction] = split_mantissa_f64(select(denormal, x * like(x, 0x1p52), x));
  return {exponent + select(denormal, like(x, -52.0), like(x, 0.0)), fraction};
}

// Whether x is positive, finite and not denormal.
template <class V>
TIDEMARK_INLINE auto log_is_ordinary_f64(V x) {
  return both(less_equal(like(x, 0x1p-1022), x), less(x, like(x, __builtin_inf())));
}

// log(x) of an ordinary x, in fewer steps and with the same bits.
template <class V>
TIDEMARK_INLINE V log_ordinary_f64(V x) {
  const auto [exponent, fraction] = split_mantissa_f64(x);
  return log_of_split_f64(exponent, fraction);
}

// log(x), to 1 ulp.
template <class V>
TIDEMARK_INLINE V log_f64(V x) {
  const auto [exponent, fraction] = split_any_mantissa_f64(x);
  return log_with_special(x, log_of_split_f64(exponent, fraction));
}

// log2(x), to 2 ulp; whole for powers of two.
template <class V>
TIDEMARK_INLINE V log2_f64(V x) {
  const auto [exponent, fraction] = split_any_mantissa_f64(x);
  const V of_fraction = log_of_split_f64(like(x, 0.0), fraction);
  return log_with_special(x, fma(of_fraction, like(x, 0x1.71547652b82fep0), exponent));
}

// log10(x), to 2 ulp.
template <class V>
TIDEMARK_INLINE V log10_f64(V x) {
  return log_f64(x) * like(x, 0x1.bcb7b1526e50ep-2);
}

// log1p(x), to 1.5 ulp. log1p(-1) is -infinity, and below that it is NaN.
template <class V>
TIDEMARK_INLINE V log1p_f64(V x) {
  const V one = like(x, 1.0);
  const V infinity = like(x, __builtin_inf());
  const auto sqrt_half = bits(like(x, 0x1.6a09e667f3bcdp-1));
  const auto biased = (bits(one + x) - sqrt_half) + bits(one);
  const V quarter = like(x, 0.25);
  // 4 * 2^-exponent; the mask leaves the exponent's bits, of which 1023 are bits(1).
  const auto field = bit_and(biased, like(biased, int64_t{0x7ff0000000000000}));
  const V scale = from_bits((bits(like(x, 4.0)) + bits(one)) - field);
  const V fraction = fma(x * quarter, scale, fma(quarter, scale, -one));
  const V value = log_of_split_f64(exponent_f64(biased), fraction);
  const V small = select(less(abs(x), like(x, 0x1p-55)), x, value);
  const V ordinary = select(less(x, infinity), small, x);
  const V defined = select(less(x, -one), like(x, __builtin_nan("")), ordinary);
  return select(equal(x, -one), -infinity, defined);
}

// erf(x), to 2 ulp.
template <class V>
TIDEMARK_INLINE V erf_f64(V x) {
  const V one = like(x, 1.0);
  const V near_zero =
      fma(x,
          polynomial(x * x, 0x1.06eba8214db68p-3, -0x1.812746b0379c2p-2, 0x1.ce2f21a041017p-4,
                     -0x1.b82ce31206287p-6, 0x1.565bccfa9a2d5p-8, -0x1.c02db072ea33ep-11,
                     0x1.f9a2bf7341819p-14, -0x1.f4ca949181055p-17, 0x1.b9827ae6e14c4p-20,
                     -0x1.5c16e260e3f3cp-23, 0x1.d78491a9034cbp-27, -0x1.acdffb81f2768p-31),
          x);
  const V size = abs(x);
  const V limit = like(x, 6.0);  // erf is 1 to the last bit from 5.93 on.
  const V clamped = select(less(limit, size), limit, size);
  const V log_erfc = polynomial(
      clamped, -0x1.8bed5f6841dfap-23, -0x1.20dd55662d596p+0, -0x1.45f43285b996dp-1,
      -0x1.a4d9aa73989f5p-4, 0x1.388e917d4add6p-6, 0x1.27ee7525379a7p-12, -0x1.d03c4ce5c77bcp-10,
      0x1.5106c88565e3bp-11, -0x1.817744d8c4b8cp-15, -0x1.2490f7f8ae809p-14, 0x1.77916c6fcbd46p-15,
      -0x1.1383b892ec689p-16, 0x1.20b24152ee514p-18, -0x1.c5c6475d2f7a4p-21, 0x1.0c14f9cf65cd6p-23,
      -0x1.d0a3745862714p-27, 0x1.179357750140dp-30, -0x1.a1fba4b60bd3bp-35, 0x1.247ad060a9139p-40);
  const auto [shifted, whole, rest] = split_exponent_f64(log_erfc);
  const V power = from_bits(shift_left(bits(shifted), 52) + bits(one));
  const V tail = fma(-power, expm1_polynomial_f64(rest), one - power);
  return select(less(size, one), near_zero, copysign(tail, x));
}

// erfc(x), to 7 ulp.
template <class V>
TIDEMARK_INLINE V erfc_f64(V x) {
  const V one = like(x, 1.0), two = like(x, 2.0), four = like(x, 4.0);
  const V limit = like(x, 28.0);  // erfc is 0 from 27.3 on.
  const V size = select(less(limit, abs(x)), limit, abs(x));
  const V t = (size - four) / (size + four);
  const V factor = polynomial(t, 0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a29cp-3, 0x1.f7f5df66fd779p-7,
                              0x1.16ecefcfa5fep-4, -0x1.9ddb23c3e8c71p-4, 0x1.7fee004df763cp-4,
                              -0x1.0fb06dfe56375p-4, 0x1.3079edf9e6b4ep-5, -0x1.09623880e00ecp-6,
                              0x1.49c67195d029dp-8, -0x1.8d4a9f9feabafp-11, -0x1.a1de85e47d866p-13,
                              0x1.3be0ce2da59eap-13, -0x1.9969af8001d92p-16, -0x1.78a7bddc08c88p-17,
                              0x1.7fada6014c21ap-18, 0x1.44178f268bf41p-22, -0x1.bfdec25b64c46p-21,
                              0x1.0c66a245fe14ep-24, 0x1.ec19509754a41p-24, -0x1.0c9acb088fb6fp-27,
                              -0x1.cc62bdee5b9fap-27, -0x1.d7c43c2ece72bp-30) /
                   fma(two, size, one);
  const V square = size * size;
  const V tail = factor * exp_of_sum_f64(-square, -fma(size, size, -square));
  return select(less(x, like(x, 0.0)), two - tail, tail);
}

}  // namespace tidemark::math

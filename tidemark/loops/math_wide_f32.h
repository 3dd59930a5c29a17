// Sine and cosine of 32-bit floats, logarithms to base 2 and 10, and powers: the functions that go
// through 64-bit arithmetic. See `math_f32.h` for their common rules.
#pragma once

#include "tidemark/loops/lane.h"
#include "tidemark/loops/math_f32.h"
#include "tidemark/loops/math_f64.h"
#include "tidemark/loops/polynomial.h"

namespace tidemark::math {

// x = (4 j + quadrant) pi/2 + rest for some integer j, with |rest| <= 0.51 pi/2, for every finite
// x. Of the integer `quadrant` only the last two bits count.
template <class V, class I>
struct SplitAngle {
  V rest;
  I quadrant;
};

// Five candidates for a piece of 2/pi; which of them holds is decided by the size of the angle.
template <class W>
TIDEMARK_INLINE W piece_for_size(W size, double p0, double p1, double p2, double p3, double p4) {
  const W small = select(less(like(size, 0x1p24), size), like(size, p1), like(size, p0));
  const W medium = select(less(like(size, 0x1p50), size), like(size, p2), small);
  const W large = select(less(like(size, 0x1p76), size), like(size, p3), medium);
  return select(less(like(size, 0x1p102), size), like(size, p4), large);
}

// t - 4 j for the integer j that leaves it in [-2, 2]; exact.
template <class W>
TIDEMARK_INLINE W modulo_4(W t) {
  return fma(round_even(t * like(t, 0.25)), like(t, -4.0), t);
}

// The quarter turns t = x 2/pi are wanted modulo 4, to some 30 bits behind the point even where
// they nearly are an integer. 2/pi is cut into three pieces, the first two of 29 bits. x has 24, so
// their products are exact in 64-bit floats. For large x the leading bits of 2/pi contribute
// multiples of 4 only; each row of pieces leaves out those that do so for all x from its bound on.
template <class V>
TIDEMARK_INLINE auto split_angle_f32(V x) {
  const auto wide = widen(x);
  const auto size = abs(wide);
  const auto first =
      modulo_4(wide * piece_for_size(size, 0x1.45f306dp-1, 0x1.45f306cp-1, 0x1.b939105p-26,
                                     0x1.529fc27p-52, 0x1.d5f47d4p-78));
  const auto second =
      modulo_4(wide * piece_for_size(size, 0x1.9391054p-30, 0x1.c9c882ap-29, 0x1.29fc274p-56,
                                     0x1.5f47d4cp-82, 0x1.a6ee06dp-107));
  const auto third =
      wide * piece_for_size(size, 0x1.4fe13abe8fa9ap-59, 0x1.4fe13abe8fa9ap-59,
                            0x1.7d1f534ddc0dbp-84, 0x1.377036d8a5665p-110, 0x1.6295993c43904p-136);
  // Where the first two nearly cancel against a whole number, their sum is exact.
  const auto whole = round_even(first + second);
  const auto fraction = ((first - whole) + second) + third;
  // Adding 1.5 * 2^23 puts an integer in the low bits, also for NaN without undefined conversions.
  return SplitAngle<V, decltype(bits(x))>{narrow(fraction * like(wide, 0x1.921fb54442d18p0)),
                                          bits(narrow(whole) + like(x, 0x1.8p23))};
}

// sin(rest + quadrant pi/2).
template <class V, class I>
TIDEMARK_INLINE V sin_of_split_f32(V rest, I quadrant) {
  const V square = rest * rest;
  const V one = like(rest, 1.0);
  const V sine =
      fma(rest * square,
          polynomial(square, -0.16666653752326965, 0.008332083001732826, -0.00019504317606333643),
          rest);
  const V cosine = fma(
      square,
      fma(square,
          polynomial(square, 0.04166664555668831, -0.0013887243112549186, 2.4423889044555835e-05),
          like(rest, -0.5)),
      one);
  const auto swap = equal(bit_and(quadrant, like(quadrant, 1)), like(quadrant, 1));
  // Quadrants 2 and 3 turn the sign, which is the bit a shift by 30 brings to the top.
  const auto sign = shift_left(bit_and(quadrant, like(quadrant, 2)), 30);
  return from_bits(bit_xor(bits(select(swap, cosine, sine)), sign));
}

// Whether an angle can be split in 32 bits. From here on the rounding of 2/pi takes the rest so far
// beyond a quarter of pi that the polynomials err by more than 1.6 ulp.
template <class V>
TIDEMARK_INLINE auto is_near_angle_f32(V x) {
  return less(abs(x), like(x, 0x1p19));
}

// The same split for near angles. The first of three parts of pi/2 has 24 bits, all multiples of
// which differ from x by a number of 24 bits.
template <class V>
TIDEMARK_INLINE auto split_near_angle_f32(V x) {
  const V shifter = like(x, 0x1.8p23);
  const V shifted = fma(x, like(x, 0x1.45f306p-1), shifter);
  const V whole = shifted - shifter;
  const V first = fma(whole, like(x, -0x1.921fb6p0), x);
  const V second = fma(whole, like(x, 0x1.777a5cp-25), first);
  return SplitAngle<V, decltype(bits(x))>{fma(whole, like(x, 0x1.ee59dap-50), second),
                                          bits(shifted)};
}

// Whether two parts of pi/2 split an angle in 64 bits as `split_angle_f32` does, to the last bit.
template <class V>
TIDEMARK_INLINE auto is_moderate_angle_f32(V x) {
  return less(abs(x), like(x, 0x1p30));
}

// The same split for moderate angles, in fewer steps. x and all multiples of the first part, which
// has 53 bits, differ by a number of 53 bits.
template <class V>
TIDEMARK_INLINE auto split_moderate_angle_f32(V x) {
  const auto wide = widen(x);
  const auto shifter = like(wide, 0x1.8p52);
  const auto shifted = fma(wide, like(wide, 0x1.45f306dc9c883p-1), shifter);
  const auto whole = shifted - shifter;
  const auto first = fma(whole, like(wide, -0x1.921fb54442d18p0), wide);
  return SplitAngle<V, decltype(bits(x))>{
      narrow(fma(whole, like(wide, -0x1.1a62633145c07p-54), first)), narrow(bits(shifted))};
}

// `split`, or the split of near angles where x is one.
template <class V, class I>
TIDEMARK_INLINE SplitAngle<V, I> unless_near(V x, SplitAngle<V, I> split) {
  const auto near = is_near_angle_f32(x);
  const auto [rest, quadrant] = split_near_angle_f32(x);
  return {select(near, rest, split.rest), select(near, quadrant, split.quadrant)};
}

// sin(x) and cos(x), given a split of x.
template <class V, class I>
TIDEMARK_INLINE V sin_given_split_f32(V x, SplitAngle<V, I> split) {
  // A sum with +0 would lose the sign of -0.
  return select(equal(x, like(x, 0.0)), x, sin_of_split_f32(split.rest, split.quadrant));
}
template <class V, class I>
TIDEMARK_INLINE V cos_given_split_f32(SplitAngle<V, I> split) {
  return sin_of_split_f32(split.rest, split.quadrant + like(split.quadrant, 1));
}

// sin(x) and cos(x) of near angles, and of moderate ones, which near ones are too.
template <class V>
TIDEMARK_INLINE V sin_near_f32(V x) {
  return sin_given_split_f32(x, split_near_angle_f32(x));
}
template <class V>
TIDEMARK_INLINE V cos_near_f32(V x) {
  return cos_given_split_f32(split_near_angle_f32(x));
}
template <class V>
TIDEMARK_INLINE V sin_moderate_f32(V x) {
  return sin_given_split_f32(x, unless_near(x, split_moderate_angle_f32(x)));
}
template <class V>
TIDEMARK_INLINE V cos_moderate_f32(V x) {
  return cos_given_split_f32(unless_near(x, split_moderate_angle_f32(x)));
}

// sin(x), to 1.6 ulp for every finite x; NaN for infinities.
template <class V>
TIDEMARK_INLINE V sin_f32(V x) {
  return sin_given_split_f32(x, unless_near(x, split_angle_f32(x)));
}

// cos(x), to 1.6 ulp for every finite x; NaN for infinities.
template <class V>
TIDEMARK_INLINE V cos_f32(V x) {
  return cos_given_split_f32(unless_near(x, split_angle_f32(x)));
}

// log2(x) in 64 bits for finite x > 0, with a relative error below 2^-38.
template <class V>
TIDEMARK_INLINE auto wide_log2_f32(V x) {
  const auto [exponent, f] = split_mantissa_f64(widen(x));
  const auto factor = polynomial(
      f, 0x1.71547652b58f6p+0, -0x1.71547651b708fp-1, 0x1.ec709de33c708p-2, -0x1.7154788839ab9p-2,
      0x1.2776b6cd03a2fp-2, -0x1.ec6f2e01fee1ep-3, 0x1.a61b7dcc98d79p-3, -0x1.7188d30093ae7p-3,
      0x1.481fad0866c7fp-3, -0x1.23d650c177291p-3, 0x1.0acdef750e51ap-3, -0x1.13b88f209128bp-3,
      0x1.0f6281b20d5dbp-3, -0x1.1da6ce89cc4fdp-4);
  return fma(f, factor, exponent);
}

// log2(x) and log10(x) for finite x > 0, to 0.501 ulp: whole for powers of their base.
template <class V>
TIDEMARK_INLINE V log2_ordinary_f32(V x) {
  return narrow(wide_log2_f32(x));
}
template <class V>
TIDEMARK_INLINE V log10_ordinary_f32(V x) {
  const auto wide = wide_log2_f32(x);
  return narrow(wide * like(wide, 0x1.34413509f79ffp-2));
}

// The same for any x.
template <class V>
TIDEMARK_INLINE V log2_f32(V x) {
  return log_with_special(x, log2_ordinary_f32(x));
}
template <class V>
TIDEMARK_INLINE V log10_f32(V x) {
  return log_with_special(x, log10_ordinary_f32(x));
}

// log2(x) for x a positive normal 64-bit float, with a relative error below 2^-42 or so.
template <class W>
TIDEMARK_INLINE W log2_for_power_f32(W x) {
  const auto [exponent, fraction] = split_mantissa_f64(x);
  const W s = fraction / (fraction + like(x, 2.0));
  const W log2_mantissa =
      s * polynomial(s * s, 0x1.71547652b8250p+1, 0x1.ec709dc53da10p-1, 0x1.2776c291faff2p-1,
                     0x1.a61a2fb30aa90p-2, 0x1.479533ea69474p-2, 0x1.21b2adca6e111p-2);
  return exponent + log2_mantissa;
}

// 2^t in 64-bit floats with a relative error below 2^-28; 0 or infinity once narrowed where t is
// beyond the range of 32-bit floats.
template <class W>
TIDEMARK_INLINE W exp2_for_power_f32(W t) {
  const W low = like(t, -200.0);
  const W high = like(t, 200.0);
  const W above = select(less(t, low), low, t);
  const W clamped = select(less(high, above), high, above);
  const W shifter = like(t, 0x1.8p52);
  const W shifted = clamped + shifter;
  const W rest = clamped - (shifted - shifter);
  const W value = polynomial(rest, 0x1.ffffffff4dff4p-1, 0x1.62e430d0435afp-1, 0x1.ebfbe10e36aa7p-3,
                             0x1.c6aecc57b0a69p-5, 0x1.3b2995ee454cep-7, 0x1.5f48c648c172ap-10,
                             0x1.4499027fe05f4p-13);
  return value * from_bits(shift_left(bits(shifted), 52) + bits(like(t, 1.0)));
}

// x to the power y, with `magnitude` = |x|^y, which may be anything where |x| is 1 or y is 0: signs
// and exceptions as IEEE 754 has them for pow.
template <class V>
TIDEMARK_INLINE V power_with_signs(V x, V y, V magnitude) {
  const V zero = like(x, 0.0);
  const V one = like(x, 1.0);
  const V half = y * like(x, 0.5);
  const auto whole = equal(trunc(y), y);
  const auto odd = both(whole, no(equal(trunc(half), half)));
  const V value = select(both(equal(abs(x), one), no(is_nan(y))), one, magnitude);
  const V signed_value = select(odd, copysign(value, x), value);
  const auto finite_negative = both(less(x, zero), less(like(x, -__builtin_inf()), x));
  const V defined =
      select(both(finite_negative, no(whole)), like(x, __builtin_nan("")), signed_value);
  return select(either(equal(x, one), equal(y, zero)), one, defined);
}

// x^y, to 0.6 ulp.
template <class V>
TIDEMARK_INLINE V power_f32(V x, V y) {
  const auto base = widen(abs(x));
  const auto zero = like(base, 0.0);
  const auto infinity = like(base, __builtin_inf());
  const auto finite = select(less(base, infinity), log2_for_power_f32(base), base);
  const auto log2_base = select(equal(base, zero), -infinity, finite);
  const V magnitude = narrow(exp2_for_power_f32(widen(y) * log2_base));
  return power_with_signs(x, y, magnitude);
}

}  // namespace tidemark::math

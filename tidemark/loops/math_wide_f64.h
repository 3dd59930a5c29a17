// Sine, cosine and powers of 64-bit floats: the functions whose inner steps need more than 53 bits.
// See `math_f64.h` for what all of them keep to.
#pragma once

#include "tidemark/loops/lane.h"
#include "tidemark/loops/math_f32.h"
#include "tidemark/loops/math_f64.h"
#include "tidemark/loops/math_wide_f32.h"
#include "tidemark/loops/polynomial.h"

namespace tidemark::math {

// A number as an unevaluated sum; |low| is at most about half an ulp of high.
template <class V>
struct Pair {
  V high, low;
};

// a + b exactly, for |a| >= |b| or a = 0.
template <class V>
TIDEMARK_INLINE Pair<V> exact_sum(V a, V b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b exactly, short of underflow.
template <class V>
TIDEMARK_INLINE Pair<V> exact_product(V a, V b) {
  const V product = a * b;
  return {product, fma(a, b, -product)};
}

// a * b to about 104 bits.
template <class V>
TIDEMARK_INLINE Pair<V> product(Pair<V> a, Pair<V> b) {
  const auto [high, low] = exact_product(a.high, b.high);
  return exact_sum(high, fma(a.high, b.low, fma(a.low, b.high, low)));
}

// x = (4 j + quadrant) pi/2 + rest for some integer j, |rest| <= 0.51 pi/2, for |x| <= 2^45.
//
// pi/2 in three pieces of 53 bits. The first difference is exact, because it is small and a
// multiple of the first piece's last bit; the rest is carried as a pair.
template <class V>
TIDEMARK_INLINE auto split_angle_f64(V x) {
  const V shifter = like(x, 0x1.8p52);
  const V shifted = fma(x, like(x, 0x1.45f306dc9c883p-1), shifter);
  const V whole = shifted - shifter;
  const V first = fma(whole, like(x, -0x1.921fb54442d18p0), x);
  const auto [middle, middle_low] = exact_product(whole, like(x, 0x1.1a62633145c07p-54));
  const V second = first - middle;
  // Knuth's sum, since either may be the larger.
  const V back = second - first;
  const V lost = (first - (second - back)) - (middle + back);
  const V low = (lost - middle_low) - whole * like(x, -0x1.f1976b7ed8fbcp-110);
  const auto rest = exact_sum(second, low);
  return SplitAngle<Pair<V>, decltype(bits(x))>{rest, bits(shifted)};
}

// sin(rest + quadrant pi/2).
template <class V, class I>
TIDEMARK_INLINE V sin_of_split_f64(Pair<V> rest, I quadrant) {
  const V r = rest.high;
  const V square = r * r;
  const V one = like(r, 1.0);
  const V half_square = like(r, 0.5) * square;
  // sin(r + low) = sin(r) + low cos(r), and cos(r + low) = cos(r) - low sin(r).
  const V sine_tail =
      polynomial(square, -0x1.5555555555546p-3, 0x1.111111110f322p-7, -0x1.a01a019b61badp-13,
                 0x1.71de34dbcf10cp-19, -0x1.ae5de9ff93549p-26, 0x1.5d6e7a8dcd6aap-33);
  const V sine = r + fma(r * square, sine_tail, fma(-half_square, rest.low, rest.low));
  const V cosine_tail =
      polynomial(square, 0x1.5555555555549p-5, -0x1.6c16c16c14bb5p-10, 0x1.a01a019c1d21fp-16,
                 -0x1.27e4f79c170f8p-22, 0x1.1ee99fd020282p-29, -0x1.8f8695e3e2a7dp-37);
  const auto leading = exact_sum(one, -half_square);
  const V cosine = leading.high + fma(square * square, cosine_tail, fma(-r, rest.low, leading.low));
  const auto swap = equal(bit_and(quadrant, like(quadrant, 1)), like(quadrant, 1));
  const auto sign = shift_left(bit_and(quadrant, like(quadrant, 2)), 62);
  return from_bits(bit_xor(bits(select(swap, cosine, sine)), sign));
}

// Angles above 2^45 in size are taken to be 0: neighbouring floats there are further apart than
// 1/128, and the period is not known to enough bits. Infinities and NaN become NaN.
template <class V>
TIDEMARK_INLINE V angle_in_range_f64(V x) {
  return select(less_equal(abs(x), like(x, 0x1p45)), x, x - x);
}

// sin(x), to 1 ulp for |x| <= 2^45; beyond, 0; NaN for infinities.
template <class V>
TIDEMARK_INLINE V sin_f64(V x) {
  const auto [rest, quadrant] = split_angle_f64(angle_in_range_f64(x));
  const V value = sin_of_split_f64(rest, quadrant);
  return select(less(abs(x), like(x, 0x1p-30)), x, value);
}

// cos(x), to 1 ulp for |x| <= 2^45; beyond, 1; NaN for infinities.
template <class V>
TIDEMARK_INLINE V cos_f64(V x) {
  const auto [rest, quadrant] = split_angle_f64(angle_in_range_f64(x));
  return sin_of_split_f64(rest, quadrant + like(quadrant, 1));
}

// log(x) for finite x > 0 to about 65 bits.
//
// As `log_of_split_f64`, with each term of log m = 2s + s z (2/3 + z q(z)) carried as a pair as far
// as its size asks for: z q is below 1/50 of 2/3, whose term is below 1/100 of 2s.
template <class V>
TIDEMARK_INLINE Pair<V> log_pair_f64(V x) {
  const auto [exponent, f] = split_any_mantissa_f64(x);
  const auto denominator = exact_sum(like(x, 2.0), f);
  const V s_high = f / denominator.high;
  const V remainder = fma(-s_high, denominator.low, fma(-s_high, denominator.high, f));
  const Pair<V> s = {s_high, remainder / denominator.high};
  const Pair<V> z = product(s, s);
  const V q = z.high * polynomial(z.high, 0x1.9999999999996p-2, 0x1.2492492493033p-2,
                                  0x1.c71c71c580906p-3, 0x1.745d18323ffbcp-3, 0x1.3b1362bafc951p-3,
                                  0x1.1120b4e449896p-3, 0x1.de338ea212318p-4, 0x1.eb1027e970050p-4);
  const auto two_thirds = exact_sum(like(x, 0x1.5555555555555p-1), q);
  const Pair<V> factor = {two_thirds.high, two_thirds.low + like(x, 0x1.5555555555555p-55)};
  const Pair<V> tail = product(s, product(z, factor));
  const V ln2_part = exponent * like(x, 0x1.62e42fefa38p-1);  // Exact: 42 bits times 11.
  const auto sum1 = exact_sum(ln2_part, s.high + s.high);
  const auto sum2 = exact_sum(sum1.high, tail.high);
  const V low = fma(exponent, like(x, 0x1.ef35793c7673p-45),
                    ((s.low + s.low) + tail.low) + (sum1.low + sum2.low));
  return exact_sum(sum2.high, low);
}

// x^y, to 1.5 ulp.
template <class V>
TIDEMARK_INLINE V power_f64(V x, V y) {
  const V zero = like(x, 0.0);
  const V infinity = like(x, __builtin_inf());
  const V base = abs(x);
  const auto ordinary = both(less(zero, base), less(base, infinity));
  const Pair<V> log_base = log_pair_f64(base);
  const V at_ends = select(equal(base, zero), -infinity, base);  // A NaN stays one.
  const V log_high = select(ordinary, log_base.high, at_ends);
  const V high = y * log_high;
  const V low = fma(y, log_base.high, -high) + y * log_base.low;
  const auto in_range = both(ordinary, less(abs(high), like(x, 1000.0)));
  const V magnitude = exp_of_sum_f64(high, select(in_range, low, zero));
  return power_with_signs(x, y, magnitude);
}

}  // namespace tidemark::math

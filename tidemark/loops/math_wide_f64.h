// Sine, cosine and powers of 64-bit floats: the functions whose inner steps need more than 53 bits.
// See `math_f64.h` for their common rules.
#pragma once

#include <type_traits>
#include <utility>

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

// a + b exactly, whichever is larger.
template <class V>
TIDEMARK_INLINE Pair<V> exact_sum_any(V a, V b) {
  const V sum = a + b;
  const V part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// 2/pi in words of 48 bits: word k stands for kTwoOverPi[k] * 2^(-48 k).
inline constexpr double kTwoOverPi[25] = {
    0x1.45f306dc9c88p-1, 0x1.529fc2757d1p-4,  0x1.ea69bb81b6c4p-1, 0x1.2b3278872082p-1,
    0x1.fca2c757bd76p-1, 0x1.8ac36e48dc74p-1, 0x1.09374b801924p-2, 0x1.77504e8c90ep-3,
    0x1.fc3bd6396252p-1, 0x1.4e7dd1046beap-1, 0x1.75da24274cep-3,  0x1.c09ad17df904p-2,
    0x1.cc8eb1cc1a98p-3, 0x1.cfa4e422fc58p-3, 0x1.7bf250763ffp-1,  0x1.2fffbc0b301ep-1,
    0x1.de5e2316b414p-1, 0x1.b47db4d9fb3cp-2, 0x1.3e584dba7a3p-3,  0x1.fb34f2ff5168p-3,
    0x1.d49eeb1faf94p-2, 0x1.e2f67a0e73eep-1, 0x1.14a525d4d7f6p-1, 0x1.7ec47e35742p-2,
    0x1.580cc11bf1ecp-2};

template <class V, int kCount>
struct Words {
  V at[kCount];
};
template <class V, int... kIndex>
TIDEMARK_INLINE Words<V, 25> two_over_pi(V x, std::integer_sequence<int, kIndex...>) {
  return {{like(x, kTwoOverPi[kIndex])...}};
}
// Words from kShift on where the mask is set, else from 0 on; past the end, those that are there.
template <int kShift, class V, int kCount, class Mask, int... kIndex>
TIDEMARK_INLINE auto words_from(Mask mask, const Words<V, kCount>& words,
                                std::integer_sequence<int, kIndex...>) {
  return Words<V, sizeof...(kIndex)>{{select(
      mask, words.at[kIndex + kShift < kCount ? kIndex + kShift : kIndex], words.at[kIndex])...}};
}

// Five words of 2/pi from word `first` on, a whole number from 0 to 20.
template <class V>
TIDEMARK_INLINE Words<V, 5> words_at(V first) {
  const auto all = two_over_pi(first, std::make_integer_sequence<int, 25>());
  const auto by16 = less_equal(like(first, 16.0), first);
  const V left16 = select(by16, first - like(first, 16.0), first);
  const auto by8 = less_equal(like(first, 8.0), left16);
  const V left8 = select(by8, left16 - like(first, 8.0), left16);
  const auto by4 = less_equal(like(first, 4.0), left8);
  const V left4 = select(by4, left8 - like(first, 4.0), left8);
  const auto by2 = less_equal(like(first, 2.0), left4);
  const V left2 = select(by2, left4 - like(first, 2.0), left4);
  const auto by1 = less_equal(like(first, 1.0), left2);
  // At each step only words are kept that a later one can still ask for.
  const auto words20 = words_from<16>(by16, all, std::make_integer_sequence<int, 20>());
  const auto words12 = words_from<8>(by8, words20, std::make_integer_sequence<int, 12>());
  const auto words8 = words_from<4>(by4, words12, std::make_integer_sequence<int, 8>());
  const auto words6 = words_from<2>(by2, words8, std::make_integer_sequence<int, 6>());
  return words_from<1>(by1, words6, std::make_integer_sequence<int, 5>());
}

// x = (4 j + quadrant) pi/2 + rest for some integer j, |rest| <= 0.51 pi/2, for every finite x.
//
// The quarter turns x 2/pi are wanted modulo 4. Words of 2/pi that contribute multiples of 4 only
// are left out: with x a multiple of 2^(e - 52), those are the first `first` words, if 48 first <=
// e - 54. The five words after them leave out less than 2^-137, and no double but 0 lies within
// 2^-62 of a multiple of pi/2.
template <class V>
TIDEMARK_INLINE auto split_angle_f64(V x) {
  const V exponent = exponent_f64(bits(abs(x)));
  const V blocks = floor(fma(exponent, like(x, 1.0 / 48), like(x, -53.5 / 48)));
  const V first = select(less(blocks, like(x, 0.0)), like(x, 0.0), blocks);
  const auto shift = bits(fma(first, like(x, 48.0), like(x, 0x1.8p52)));
  const auto scale_bits = bits(like(x, 1.0)) - shift_left(shift, 52);
  const V scaled = x * from_bits(scale_bits);
  const Words<V, 5> words = words_at(first);
  const auto turns0 = exact_product(scaled, words.at[0]);
  const auto turns1 = exact_product(scaled, words.at[1] * like(x, 0x1p-48));
  const auto turns2 = exact_product(scaled, words.at[2] * like(x, 0x1p-96));
  const auto turns3 = exact_product(scaled, words.at[3] * like(x, 0x1p-144));
  const V turns4 = scaled * (words.at[4] * like(x, 0x1p-192));
  // The parts that can exceed half a turn, as whole turns and fractions.
  const V part0 = modulo_4(turns0.high);
  const V part1 = modulo_4(turns0.low);
  const V part2 = modulo_4(turns1.high);
  const V whole0 = round_even(part0);
  const V whole1 = round_even(part1);
  const V whole2 = round_even(part2);
  const V whole3 = round_even(turns1.low);
  const V whole4 = round_even(turns2.high);
  const auto sum1 = exact_sum_any(part0 - whole0, part1 - whole1);
  const auto sum2 = exact_sum_any(sum1.high, part2 - whole2);
  const auto sum3 = exact_sum_any(sum2.high, turns1.low - whole3);
  const auto sum4 = exact_sum_any(sum3.high, turns2.high - whole4);
  const V whole5 = round_even(sum4.high);
  const auto sum5 = exact_sum_any(sum4.high - whole5, turns3.high);
  const auto sum6 = exact_sum_any(sum5.high, turns2.low);
  const V low = ((sum1.low + sum2.low) + (sum3.low + sum4.low)) +
                (sum5.low + (sum6.low + (turns3.low + turns4)));
  const auto fraction = exact_sum_any(sum6.high, low);
  const V whole = ((whole0 + whole1) + (whole2 + whole3)) + (whole4 + whole5);
  const Pair<V> half_pi = {like(x, 0x1.921fb54442d18p0), like(x, 0x1.1a62633145c07p-54)};
  return SplitAngle<Pair<V>, decltype(bits(x))>{product(fraction, half_pi),
                                                bits(whole + like(x, 0x1.8p52))};
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

// Whether an angle can be split by three parts of pi/2.
template <class V>
TIDEMARK_INLINE auto is_near_angle_f64(V x) {
  return less(abs(x), like(x, 0x1p20));
}

// The same split for near angles, as in 32 bits; the products with the second part are exact.
template <class V>
TIDEMARK_INLINE auto split_near_angle_f64(V x) {
  const V shifter = like(x, 0x1.8p52);
  const V shifted = fma(x, like(x, 0x1.45f306dc9c883p-1), shifter);
  const V whole = shifted - shifter;
  const V first = fma(whole, like(x, -0x1.921fb54442d18p0), x);
  const auto second = exact_product(whole, like(x, -0x1.1a62633145c07p-54));
  const auto sum = exact_sum_any(first, second.high);
  const V low = fma(whole, like(x, 0x1.f1976b7ed8fbcp-110), sum.low + second.low);
  return SplitAngle<Pair<V>, decltype(bits(x))>{exact_sum(sum.high, low), bits(shifted)};
}

// sin(x) and cos(x) of near angles.
template <class V>
TIDEMARK_INLINE V sin_near_f64(V x) {
  const auto [rest, quadrant] = split_near_angle_f64(x);
  return select(less(abs(x), like(x, 0x1p-30)), x, sin_of_split_f64(rest, quadrant));
}
template <class V>
TIDEMARK_INLINE V cos_near_f64(V x) {
  const auto [rest, quadrant] = split_near_angle_f64(x);
  return sin_of_split_f64(rest, quadrant + like(quadrant, 1));
}

// sin(x), to 1 ulp for every finite x; NaN for infinities.
template <class V>
TIDEMARK_INLINE V sin_f64(V x) {
  const auto [rest, quadrant] = split_angle_f64(x);
  return select(is_near_angle_f64(x), sin_near_f64(x), sin_of_split_f64(rest, quadrant));
}

// cos(x), to 1 ulp for every finite x; NaN for infinities.
template <class V>
TIDEMARK_INLINE V cos_f64(V x) {
  const auto [rest, quadrant] = split_angle_f64(x);
  const V far = sin_of_split_f64(rest, quadrant + like(quadrant, 1));
  return select(is_near_angle_f64(x), cos_near_f64(x), far);
}

// log(x) for finite x > 0, given its split, to about 65 bits.
//
// As `log_of_split_f64`, with each term of log m = 2s + s z (2/3 + z q(z)) carried as a pair as far
// as its size asks for: z q is below 1/50 of 2/3, whose term is below 1/100 of 2s.
template <class V>
TIDEMARK_INLINE Pair<V> log_pair_f64(SplitMantissa<V> split) {
  const auto [exponent, f] = split;
  const auto denominator = exact_sum(like(f, 2.0), f);
  const V s_high = f / denominator.high;
  const V remainder = fma(-s_high, denominator.low, fma(-s_high, denominator.high, f));
  const Pair<V> s = {s_high, remainder / denominator.high};
  const Pair<V> z = product(s, s);
  const V q = z.high * polynomial(z.high, 0x1.9999999999996p-2, 0x1.2492492493033p-2,
                                  0x1.c71c71c580906p-3, 0x1.745d18323ffbcp-3, 0x1.3b1362bafc951p-3,
                                  0x1.1120b4e449896p-3, 0x1.de338ea212318p-4, 0x1.eb1027e970050p-4);
  const auto two_thirds = exact_sum(like(f, 0x1.5555555555555p-1), q);
  const Pair<V> factor = {two_thirds.high, two_thirds.low + like(f, 0x1.5555555555555p-55)};
  const Pair<V> tail = product(s, product(z, factor));
  const V ln2_part = exponent * like(f, 0x1.62e42fefa38p-1);  // Exact: 42 bits times 11.
  const auto sum1 = exact_sum(ln2_part, s.high + s.high);
  const auto sum2 = exact_sum(sum1.high, tail.high);
  const V low = fma(exponent, like(f, 0x1.ef35793c7673p-45),
                    ((s.low + s.low) + tail.low) + (sum1.low + sum2.low));
  return exact_sum(sum2.high, low);
}

// x^y where it is ordinary: the logarithm of x is, and so is the exponential of its product with y.
template <class V, class Mask>
struct OrdinaryPower {
  V value;
  Mask is_ordinary;
};
template <class V>
TIDEMARK_INLINE auto power_ordinary_f64(V x, V y) {
  const Pair<V> log_base = log_pair_f64(split_mantissa_f64(x));
  const V high = y * log_base.high;
  const V low = fma(y, log_base.high, -high) + y * log_base.low;
  const auto is_ordinary = both(log_is_ordinary_f64(x), exp_is_ordinary_f64(high));
  return OrdinaryPower<V, std::remove_const_t<decltype(is_ordinary)>>{
      exp_of_ordinary_sum_f64(high, low), is_ordinary};
}

// x^y, to 1.5 ulp.
template <class V>
TIDEMARK_INLINE V power_f64(V x, V y) {
  const V zero = like(x, 0.0);
  const V infinity = like(x, __builtin_inf());
  const V base = abs(x);
  const auto ordinary = both(less(zero, base), less(base, infinity));
  const Pair<V> log_base = log_pair_f64(split_any_mantissa_f64(base));
  const V at_ends = select(equal(base, zero), -infinity, base);  // A NaN stays one.
  const V log_high = select(ordinary, log_base.high, at_ends);
  const V high = y * log_high;
  const V low = fma(y, log_base.high, -high) + y * log_base.low;
  const auto in_range = both(ordinary, less(abs(high), like(x, 1000.0)));
  const V magnitude = exp_of_sum_f64(high, select(in_range, low, zero));
  return power_with_signs(x, y, magnitude);
}

}  // namespace tidemark::math

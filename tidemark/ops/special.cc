#include "tidemark/ops/special.h"

namespace tidemark {
namespace {

// coefficients[0] + coefficients[1] x + ...
template <size_t N>
Scalar polynomial(Scalar x, const double (&coefficients)[N]) {
  Scalar sum = x.like(coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = sum.fma(x, x.like(coefficients[i]));
  return sum;
}

// sin(pi x) without its sign, for an x of any size.
Scalar sine_of_half_turns(Scalar x) {
  return ((x - x.round()) * x.like(std::numbers::pi)).sin().abs();
}

// 0, -1, -2, ..., as are all large negative numbers, and -infinity.
Scalar is_pole(Scalar x) { return (x == x.round()) & (x <= x.like(0)); }

// The asymptotic series of these functions hold from here on; smaller arguments are moved there,
// one at a time.
constexpr int kMoves = 8;

// The sum of (x + k)^-s over k = 0, 1, ..., for x > 0 and s > 1: some terms, then the formula of
// Euler and Maclaurin for the others.
Scalar hurwitz_zeta(Scalar s, Scalar x) {
  const Scalar one = x.like(1);
  Scalar sum = x.pow(-s);
  for (int k = 1; k <= kMoves; ++k) sum = sum + (x + x.like(k)).pow(-s);
  const Scalar z = x + x.like(kMoves + 1), inverse = one / z;
  // Bernoulli numbers over factorials.
  constexpr double series[] = {1.0 / 12,          -1.0 / 720,
                               1.0 / 30240,       -1.0 / 1209600,
                               1.0 / 47900160,    -691.0 / 1307674368000,
                               1.0 / 74724249600, -3617.0 / 10670622842880000};
  Scalar rising = s * inverse, tail = x.like(0.5);
  for (size_t j = 0; j < std::size(series); ++j) {
    tail = tail + rising * x.like(series[j]);
    const auto next = static_cast<double>(2 * j + 1);
    rising = rising * ((s + x.like(next)) * inverse) * ((s + x.like(next + 1)) * inverse);
  }
  return sum + z.pow(one - s) * (one / (s - one) + inverse * tail);
}

// A first guess by a formula of elementary functions (Winitzki, relative error 2e-3), then two
// steps of Halley's method on erfc(y) = 1 - |x|, each of which triples the correct digits. In the
// tail, 1 - |x| is exact; near 0 it is not, and erf(y) = |x| is solved instead.
Scalar inverse_erf_f64(Scalar x) {
  const Scalar size = x.abs(), one = x.like(1), zero = x.like(0);
  const Scalar rest = one - size;
  const Scalar logarithm = (rest * (one + size)).log() * x.like(0.5);
  constexpr double kFit = 0.147;
  const Scalar middle = x.like(2 / (std::numbers::pi * kFit)) + logarithm;
  Scalar y = ((middle * middle - logarithm * x.like(2 / kFit)).sqrt() - middle).sqrt();
  for (int step = 0; step < 2; ++step) {
    const Scalar error = (size < x.like(0.5)).select(y.erf() - size, rest - y.erfc());
    const Scalar newton = error * (y * y).exp() * x.like(0.5 / std::numbers::inv_sqrtpi);
    y = y - newton / (one + y * newton);
  }
  const Scalar inside = (size == zero).select(zero, y);
  const Scalar result = (size == one).select(x.infinity(), inside);
  return result.copysign(x);
}

// x times a function of -log(1 - x^2) that is nearly linear in its root where that is large;
// coefficients from tools/fit_polynomials.py.
Scalar inverse_erf_f32(Scalar x) {
  constexpr double near[] = {1.5014094114303589,     0.24664027988910675,
                             -0.004177386872470379,  -0.0012527419021353126,
                             0.00021834444487467408, -4.9633445087238215e-06,
                             -3.462704398771166e-06, 4.661699506414152e-07,
                             2.3232622936575353e-08, -8.791004368902122e-09};
  constexpr double far[] = {2.832976818084717,     1.0016751289367676,     0.009445684030652046,
                            -0.007639409974217415, 0.00568317249417305,    -0.0035869874991476536,
                            0.0014958569081500173, -7.661952258786187e-05, -0.00031872341060079634,
                            0.00012896416592411697};
  const Scalar w = -(-x).fma(x, x.like(1)).log();
  const Scalar middle = polynomial(w - x.like(2.5), near),
               tail = polynomial(w.sqrt() - x.like(3), far);
  const Scalar inside = x * (w < x.like(5)).select(middle, tail);
  return (x.abs() == x.like(1)).select(x.infinity().copysign(x), inside);
}

}  // namespace

// In parallel: sums of neighbouring bits, of pairs, of fours, then of all bytes. The bits that an
// arithmetic shift copies from the sign are masked off.
Scalar count_bits(Scalar x) {
  const auto bits = [&](uint64_t pattern) { return x.whole(static_cast<int64_t>(pattern)); };
  const auto moved = [&](Scalar sum, int64_t places) { return sum.shift_right(x.whole(places)); };
  Scalar sum = x - (moved(x, 1) & bits(0x5555555555555555));
  sum = (sum & bits(0x3333333333333333)) + (moved(sum, 2) & bits(0x3333333333333333));
  sum = (sum + moved(sum, 4)) & bits(0x0f0f0f0f0f0f0f0f);
  for (int64_t places = 8; places < 8 * size_of(x.dtype()); places *= 2)
    sum = sum + moved(sum, places);
  return sum & bits(0x7f);
}

Scalar inverse_erf(Scalar x) {
  return x.dtype() == DType::f64 ? inverse_erf_f64(x) : inverse_erf_f32(x);
}

// Stirling's series. For x < 0, gamma(x) gamma(1 - x) = pi / sin(pi x).
Scalar log_gamma(Scalar narrow) {
  const Scalar x = narrow.cast(DType::f64), one = x.like(1);
  const Scalar mirrored = x < x.like(0.5);
  const Scalar above = mirrored.select(one - x, x);
  Scalar product = above;
  for (int i = 1; i < kMoves; ++i) product = product * (above + x.like(i));
  const Scalar moved = above < x.like(kMoves);
  const Scalar z = moved.select(above + x.like(kMoves), above);
  constexpr double series[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                               1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const Scalar inverse = one / z;
  const Scalar tail = inverse * polynomial(inverse * inverse, series);
  const Scalar stirling = (z - x.like(0.5)) * z.log() - z + x.like(kHalfLogTwoPi) + tail;
  const Scalar factors = moved.select(product, one), size = x.abs();
  const Scalar mirror = x.like(std::numbers::pi) / sine_of_half_turns(x);
  const auto apart = [&] {
    const Scalar result = stirling - factors.log();
    // Near 0 the function is -log |x|; pi / sin(pi x) of denormals is inexact or overflows.
    const Scalar reflected = (size < x.like(1e-300)).select(-size.log(), mirror.log() - result);
    return mirrored.select(reflected, result);
  };
  // Numbers of f32 leave room for the product.
  const auto together = [&] {
    const Scalar logarithm = mirrored.select(factors * mirror, factors).log();
    return mirrored.select(logarithm - stirling, stirling - logarithm);
  };
  const Scalar zero = (x == one) | (x == x.like(2));
  const bool is_narrow = narrow.dtype() != DType::f64;
  const Scalar finite = zero.select(x.like(0), is_narrow ? together() : apart());
  const Scalar endless = (size == x.infinity()) | is_pole(x);
  return endless.select(x.infinity(), finite).cast(narrow.dtype());
}

// For x < 0, digamma(1 - x) - digamma(x) = pi / tan(pi x).
Scalar digamma_of(Scalar narrow) {
  const Scalar x = narrow.cast(DType::f64), one = x.like(1), zero = x.like(0);
  const Scalar mirrored = x < x.like(0.5);
  const Scalar above = mirrored.select(one - x, x);
  Scalar sum = one / above;
  for (int i = 1; i < kMoves; ++i) sum = sum + one / (above + x.like(i));
  const Scalar moved = above < x.like(kMoves);
  const Scalar z = moved.select(above + x.like(kMoves), above);
  constexpr double series[] = {-1.0 / 12,  1.0 / 120,     -1.0 / 252, 1.0 / 240,
                               -1.0 / 132, 691.0 / 32760, -1.0 / 12,  3617.0 / 8160};
  const Scalar inverse = one / z, square = inverse * inverse;
  const Scalar result = z.log() - inverse * x.like(0.5) + square * polynomial(square, series) -
                        moved.select(sum, zero);
  const Scalar turns = (x - x.round()) * x.like(std::numbers::pi);
  const Scalar reflected = result - x.like(std::numbers::pi) * (turns.cos() / turns.sin());
  const Scalar pole = is_pole(x) & (x < zero);
  const Scalar none = x.like(std::numeric_limits<double>::quiet_NaN());
  const Scalar finite = mirrored.select(reflected, result);
  return pole.select(none, (x == zero).select(-(one / x), finite)).cast(narrow.dtype());
}

// For x < 0, trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2.
Scalar trigamma_of(Scalar narrow) {
  const Scalar x = narrow.cast(DType::f64), one = x.like(1), zero = x.like(0);
  const Scalar mirrored = x < x.like(0.5);
  const Scalar above = mirrored.select(one - x, x);
  Scalar sum = one / (above * above);
  for (int i = 1; i < kMoves; ++i) {
    const Scalar next = above + x.like(i);
    sum = sum + one / (next * next);
  }
  const Scalar moved = above < x.like(kMoves);
  const Scalar z = moved.select(above + x.like(kMoves), above);
  constexpr double series[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                               5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  const Scalar inverse = one / z, square = inverse * inverse;
  const Scalar result = inverse + square * x.like(0.5) +
                        inverse * square * polynomial(square, series) + moved.select(sum, zero);
  const Scalar ratio = x.like(std::numbers::pi) / sine_of_half_turns(x);
  const Scalar finite = mirrored.select(ratio * ratio - result, result);
  return is_pole(x).select(x.infinity(), finite).cast(narrow.dtype());
}

// (-1)^s n! times the sum of (x + k)^-s over k >= 0, with s = n + 1. For x < 0 the sum over all
// whole k, which depends only on the distance of x from the nearest one, less that over k < 0.
Scalar polygamma_of(Scalar order, Scalar narrow) {
  const Scalar x = narrow.cast(DType::f64),
               n = (order.cast(DType::f64) + order.cast(DType::f64).like(0.5)).floor();
  const Scalar zero = x.like(0), one = x.like(1), s = n + one;
  const Scalar half = s * x.like(0.5);
  const Scalar sign = (half == half.floor()).select(one, x.like(-1));  // (-1)^s.
  const Scalar apart = x - x.round();
  const Scalar below = apart < zero;
  const Scalar pole = apart.abs().pow(-s) * below.select(sign, one);
  // Halfway between two poles they cancel, so the two nearest terms are added up first.
  const Scalar right = (one + apart).pow(-s), left = sign * (one - apart).pow(-s);
  const Scalar two = x.like(2);
  const Scalar far = below.select(left, right) + hurwitz_zeta(s, two + apart) +
                     sign * hurwitz_zeta(s, two - apart);
  const Scalar mirrored = x < zero;
  const Scalar direct = hurwitz_zeta(s, mirrored.select(one - x, x));
  const Scalar sum =
      mirrored.select((pole + below.select(right, left)) + (far - sign * direct), direct);
  const Scalar result = sign * log_gamma(s).exp() * sum;
  const Scalar none = x.like(std::numeric_limits<double>::quiet_NaN());
  const Scalar of_first = (n == zero).select(digamma_of(x), none);
  return (n >= one).select(result, of_first).cast(narrow.dtype());
}

}  // namespace tidemark

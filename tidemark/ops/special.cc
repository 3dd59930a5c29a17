#include "tidemark/ops/special.h"

namespace tidemark {
namespace {

// coefficients[0] + coefficients[1] x + ...
template <size_t N>
Scalar polynomial(Scalar x, const double (&coefficients)[N]) {
  Scalar sum = x.like(coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + x.like(coefficients[i]);
  return sum;
}

// sin(pi x) without its sign, for an x of any size.
Scalar sine_of_half_turns(Scalar x) {
  return ((x - x.round()) * x.like(std::numbers::pi)).sin().abs();
}

// The asymptotic series of these functions hold from here on; smaller arguments are moved there,
// one at a time.
constexpr int kMoves = 8;

// atan(u) for |u| <= tan(pi / 8); coefficients from tools/fit_polynomials.py.
Scalar atan_near_zero(Scalar u) {
  constexpr double coefficients[] = {
      -0x1.555555555553dp-2, 0x1.99999999957cap-3, -0x1.24924922a9a3cp-3, 0x1.c71c70e494c63p-4,
      -0x1.745cf8b006f3ap-4, 0x1.3b1115db73a7bp-4, -0x1.10eb912d4406cp-4, 0x1.df0cf230c1d6ap-5,
      -0x1.9cc7976c63c2dp-5, 0x1.37b7e47784e45p-5, -0x1.25261d1c68263p-6};
  const Scalar z = u * u;
  return u + u * (z * polynomial(z, coefficients));
}

// A multiple of pi in two parts: the nearest double, and the rest.
struct Angle {
  double high, low;
};
constexpr Angle kPi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
constexpr Angle kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr Angle kQuarterPi = {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55};

Scalar less_than(Angle whole, Scalar part) {
  return part.like(whole.high) - (part - part.like(whole.low));
}

}  // namespace

Scalar is_negative(Scalar x) { return (x < x.like(0)) | (x.like(1) / x < x.like(0)); }

Scalar with_sign_of(Scalar size, Scalar x) {
  return ((size == size) & is_negative(x)).select(-size, size);
}

Scalar angle_of(Scalar narrow_y, Scalar narrow_x) {
  const Scalar y = narrow_y.cast(DType::f64), x = narrow_x.cast(DType::f64);
  const Scalar zero = x.like(0), one = x.like(1);
  // The slope of the octant next to the x axis, in [0, 1]. 0/0 is on the axis, and infinity over
  // infinity on the diagonal.
  const Scalar across = x.abs(), up = y.abs();
  const Scalar shorter = across.minimum(up), longer = across.maximum(up);
  const Scalar ratio = shorter / longer;
  const Scalar slope =
      (longer == zero).select(zero, (shorter == shorter.infinity()).select(one, ratio));
  // Angles above pi / 8 are measured from the diagonal.
  const Scalar steep = slope > slope.like(0x1.a827999fcef32p-2);
  const Scalar near = atan_near_zero(steep.select((slope - one) / (slope + one), slope));
  const Scalar octant =
      steep.select(near.like(kQuarterPi.high) + (near + near.like(kQuarterPi.low)), near);
  const Scalar quadrant = (up > across).select(less_than(kHalfPi, octant), octant);
  const Scalar half = is_negative(x).select(less_than(kPi, quadrant), quadrant);
  return with_sign_of(half, y).cast(narrow_y.dtype());
}

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

// A first guess by a formula of elementary functions (Winitzki, relative error 2e-3), then two
// steps of Halley's method on erfc(y) = 1 - |x|, each of which triples the correct digits. In the
// tail, 1 - |x| is exact; near 0 it is not, and erf(y) = |x| is solved instead.
Scalar inverse_erf(Scalar narrow) {
  const Scalar x = narrow.cast(DType::f64), size = x.abs(), one = x.like(1), zero = x.like(0);
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
  return with_sign_of(result, x).cast(narrow.dtype());
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
  const Scalar result = stirling - moved.select(product, one).log();
  const Scalar size = x.abs();
  // Near 0 the function is -log |x|; pi / sin(pi x) of denormals is inexact or overflows.
  const Scalar reflected =
      (size < x.like(1e-300))
          .select(-size.log(), (x.like(std::numbers::pi) / sine_of_half_turns(x)).log() - result);
  const Scalar zero = (x == one) | (x == x.like(2));
  const Scalar finite = zero.select(x.like(0), mirrored.select(reflected, result));
  return (size == x.infinity()).select(x.infinity(), finite).cast(narrow.dtype());
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
  const Scalar pole = (x == x.round()) & (x < zero);
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
  return mirrored.select(ratio * ratio - result, result).cast(narrow.dtype());
}

}  // namespace tidemark

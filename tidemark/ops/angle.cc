// Angles of points, and of their slopes and coordinates: atan2, atan, asin and acos, on Scalars.
// Coefficients come from tools/fit_polynomials.py.
#include <iterator>

#include "tidemark/ops/scalar.h"

namespace tidemark {
namespace {

// u + u z (c0 + c1 z + ...) for z = u^2: an odd function whose slope at 0 is 1.
template <size_t N>
Scalar odd_polynomial(Scalar u, Scalar z, const double (&coefficients)[N]) {
  Scalar tail = u.like(coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) tail = tail.fma(z, u.like(coefficients[i]));
  return (u * z).fma(tail, u);
}

// atan(u) for |u| <= tan(pi / 8).
Scalar atan_near_zero_f64(Scalar u) {
  constexpr double coefficients[] = {
      -0x1.555555555553dp-2, 0x1.99999999957cap-3, -0x1.24924922a9a3cp-3, 0x1.c71c70e494c63p-4,
      -0x1.745cf8b006f3ap-4, 0x1.3b1115db73a7bp-4, -0x1.10eb912d4406cp-4, 0x1.df0cf230c1d6ap-5,
      -0x1.9cc7976c63c2dp-5, 0x1.37b7e47784e45p-5, -0x1.25261d1c68263p-6};
  return odd_polynomial(u, u * u, coefficients);
}

// atan(u) for u from 0 to 1, in f64 with a relative error below 2^-39: rounded to f32 it is right.
Scalar atan_of_slope_for_f32(Scalar u) {
  constexpr double coefficients[] = {
      -0x1.5555554e4cb3p-2,  0x1.99999515d43bdp-3, -0x1.2491c6b494deep-3, 0x1.c70d7ea4ed8b9p-4,
      -0x1.73da434be7379p-4, 0x1.38283060a95ep-4,  -0x1.05888522997fp-4,  0x1.a057b9b00f28cp-5,
      -0x1.24ee9a585d267p-5, 0x1.4ded40c78cd33p-6, -0x1.169573cfad122p-7, 0x1.271e2d45299f4p-9,
      -0x1.25a6cc5162776p-12};
  return odd_polynomial(u, u * u, coefficients);
}

// atan(u) for u from 0 to 1, in f32.
Scalar atan_of_slope_f32(Scalar u) {
  constexpr double coefficients[] = {
      -0.33333298563957214, 0.19998548924922943,  -0.14264242351055145,
      0.10952186584472656,  -0.0840345174074173,  0.057957619428634644,
      -0.03117787092924118, 0.010914618149399757, -0.0017936243675649166};
  return odd_polynomial(u, u * u, coefficients);
}

// A multiple of pi in two parts: the nearest number of the dtype, and the rest.
struct Angle {
  double high, low;
};
constexpr Angle kPi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
constexpr Angle kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr Angle kQuarterPi = {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55};
constexpr Angle kPi_f32 = {0x1.921fb6p+1, -0x1.777a5cp-24};
constexpr Angle kHalfPi_f32 = {0x1.921fb6p+0, -0x1.777a5cp-25};

Scalar less_than(Angle whole, Scalar part) {
  return part.like(whole.high) - (part - part.like(whole.low));
}

// atan(u) for u from 0 to 1. Angles above pi / 8 are measured from the diagonal.
Scalar atan_of_slope_f64(Scalar slope) {
  const Scalar one = slope.like(1);
  const Scalar steep = slope > slope.like(0x1.a827999fcef32p-2);
  const Scalar near = atan_near_zero_f64(steep.select((slope - one) / (slope + one), slope));
  return steep.select(near.like(kQuarterPi.high) + (near + near.like(kQuarterPi.low)), near);
}

// asin(size) for size up to 1/2, and half of acos(size) from there on: the angle whose sine is
// sqrt((1 - size) / 2).
struct SmallAngle {
  Scalar angle, is_large;
};
SmallAngle small_angle_f32(Scalar size) {
  constexpr double coefficients[] = {0.16666755080223083, 0.07495207339525223, 0.045482754707336426,
                                     0.024113651365041733, 0.0422857291996479};
  const Scalar half = size.like(0.5), is_large = size > half;
  const Scalar z = is_large.select((size.like(1) - size) * half, size * size);
  const Scalar u = is_large.select(z.sqrt(), size);
  return {odd_polynomial(u, z, coefficients), is_large};
}

}  // namespace

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
  const bool is_wide = narrow_x.dtype() == DType::f64;
  const Scalar octant = is_wide ? atan_of_slope_f64(slope) : atan_of_slope_for_f32(slope);
  const Scalar quadrant = (up > across).select(less_than(kHalfPi, octant), octant);
  const Scalar is_left = one.copysign(x) < zero;
  const Scalar half = is_left.select(less_than(kPi, quadrant), quadrant);
  return half.copysign(y).cast(narrow_y.dtype());
}

Scalar angle_of_tangent(Scalar x) {
  const Scalar one = x.like(1), size = x.abs();
  if (x.dtype() == DType::f64) return angle_of(x, one);
  const Scalar is_steep = size > one;
  const Scalar angle = atan_of_slope_f32(is_steep.select(one / size, size));
  return is_steep.select(less_than(kHalfPi_f32, angle), angle).copysign(x);
}

Scalar angle_of_sine(Scalar x) {
  const Scalar one = x.like(1);
  if (x.dtype() == DType::f64) return angle_of(x, ((one - x) * (one + x)).sqrt());
  const auto [angle, is_large] = small_angle_f32(x.abs());
  return is_large.select(less_than(kHalfPi_f32, angle + angle), angle).copysign(x);
}

Scalar angle_of_cosine(Scalar x) {
  const Scalar one = x.like(1);
  if (x.dtype() == DType::f64) return angle_of(((one - x) * (one + x)).sqrt(), x);
  const auto [angle, is_large] = small_angle_f32(x.abs());
  const Scalar twice = angle + angle;
  const Scalar near_end = (x < x.like(0)).select(less_than(kPi_f32, twice), twice);
  return is_large.select(near_end, less_than(kHalfPi_f32, angle.copysign(x)));
}

}  // namespace tidemark

// The angle of a point (x, y), as atan2, on Scalars.
#include "tidemark/ops/scalar.h"
#include "tidemark/ops/special.h"

namespace tidemark {
namespace {

// atan(u) for |u| <= tan(pi / 8); coefficients from tools/fit_polynomials.py.
Scalar atan_near_zero(Scalar u) {
  constexpr double coefficients[] = {
      -0x1.555555555553dp-2, 0x1.99999999957cap-3, -0x1.24924922a9a3cp-3, 0x1.c71c70e494c63p-4,
      -0x1.745cf8b006f3ap-4, 0x1.3b1115db73a7bp-4, -0x1.10eb912d4406cp-4, 0x1.df0cf230c1d6ap-5,
      -0x1.9cc7976c63c2dp-5, 0x1.37b7e47784e45p-5, -0x1.25261d1c68263p-6};
  const Scalar z = u * u;
  Scalar tail = u.like(coefficients[std::size(coefficients) - 1]);
  for (size_t i = std::size(coefficients) - 1; i-- > 0;) tail = tail * z + u.like(coefficients[i]);
  return u + u * (z * tail);
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

}  // namespace tidemark

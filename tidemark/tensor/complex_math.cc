#include "tidemark/tensor/complex_math.h"

#include <numbers>

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/special.h"
#include "tidemark/tensor/bind.h"

namespace tidemark::detail {

Tensor magnitude_of(const Parts& z) { return hypot(z.re, z.im); }

namespace {

// ---- arithmetic ---------------------------------------------------------------------------------

// Every function below takes numbers with an imaginary part, unless it says so.
Tensor number_like(const Tensor& x, double number) {
  const Source at = Source::here();
  return broadcast(literal(x.dtype(), number, 0, at), x.shape(), at);
}
Tensor zero_of(const Tensor& x) { return number_like(x, 0); }
Tensor one_of(const Tensor& x) { return number_like(x, 1); }

Parts operator-(const Parts& z) { return {negative(z.re), negative(z.im)}; }
Parts operator+(const Parts& a, double b) { return {add(a.re, b), a.im}; }
Parts operator*(const Parts& a, double b) { return {multiply(a.re, b), multiply(a.im, b)}; }
Parts conjugate(const Parts& z) { return {z.re, negative(z.im)}; }
// i z and -i z.
Parts turned(const Parts& z) { return {negative(z.im), z.re}; }
Parts turned_back(const Parts& z) { return {z.im, negative(z.re)}; }

// Either may be real.
Parts sum_of(const Parts& a, const Parts& b) {
  if (!b.im.has_value()) return {add(a.re, b.re), a.im};
  return {add(a.re, b.re), a.im.has_value() ? add(a.im, b.im) : b.im};
}

Parts difference_of(const Parts& a, const Parts& b) {
  if (!b.im.has_value()) return {subtract(a.re, b.re), a.im};
  return {subtract(a.re, b.re), a.im.has_value() ? subtract(a.im, b.im) : negative(b.im)};
}

Parts product_of(const Parts& a, const Parts& b) {
  if (!b.im.has_value()) return {multiply(a.re, b.re), multiply(a.im, b.re)};
  if (!a.im.has_value()) return product_of(b, a);
  return {subtract(multiply(a.re, b.re), multiply(a.im, b.im)),
          add(multiply(a.re, b.im), multiply(a.im, b.re))};
}

// Smith's method: the larger part of the divisor is divided by, so that nothing overflows on the
// way.
Parts quotient_of(const Parts& a, const Parts& b) {
  if (!b.im.has_value()) return {divide(a.re, b.re), divide(a.im, b.re)};
  const Tensor is_flat = greater_equal(abs(b.re), abs(b.im));
  const Tensor large = where(is_flat, b.re, b.im), small = where(is_flat, b.im, b.re);
  // A quotient of zeros is not a number, and that of a divisor of 0 is none anyway.
  const Tensor ratio = where(equal(large, 0.0), zero_of(small), divide(small, large));
  const Tensor size = add(large, multiply(small, ratio));
  const Tensor im = a.im.has_value() ? a.im : zero_of(a.re);
  const Tensor up = where(is_flat, add(a.re, multiply(im, ratio)), add(multiply(a.re, ratio), im));
  const Tensor side =
      where(is_flat, subtract(im, multiply(a.re, ratio)), subtract(multiply(im, ratio), a.re));
  return {divide(up, size), divide(side, size)};
}

Tensor angle_of(const Parts& z) { return atan2(z.im, z.re); }

// ---- functions ----------------------------------------------------------------------------------

Parts exp_of(const Parts& z) {
  const Tensor size = exp(z.re);
  return {multiply(size, cos(z.im)), multiply(size, sin(z.im))};
}
Parts log_of(const Parts& z) { return {log(magnitude_of(z)), angle_of(z)}; }
// The root with a part that is not negative. The other part is the quotient of the imaginary part
// by it, so that nothing cancels.
Parts sqrt_of(const Parts& z) {
  const Tensor root = sqrt(multiply(add(abs(z.re), magnitude_of(z)), 0.5));
  const Tensor is_zero = equal(root, 0.0);
  const Tensor other =
      where(is_zero, zero_of(z.im), divide(multiply(z.im, 0.5), where(is_zero, 1.0, root)));
  const Tensor sign = copysign(one_of(z.re), z.im), is_right = greater_equal(z.re, 0.0);
  return {where(is_right, root, multiply(sign, other)),
          where(is_right, other, multiply(sign, root))};
}
Parts sinh_of(const Parts& z) {
  return {multiply(sinh(z.re), cos(z.im)), multiply(cosh(z.re), sin(z.im))};
}
Parts cosh_of(const Parts& z) {
  return {multiply(cosh(z.re), cos(z.im)), multiply(sinh(z.re), sin(z.im))};
}
Parts tanh_of(const Parts& z) {
  const Tensor along = tanh(z.re), across = tan(z.im), steep = square(across);
  const Tensor size = add(multiply(square(along), steep), 1.0);
  const Tensor flat = square(reciprocal(cosh(z.re)));
  return {divide(multiply(along, add(steep, 1.0)), size), divide(multiply(across, flat), size)};
}
Parts sin_of(const Parts& z) { return turned_back(sinh_of(turned(z))); }
Parts cos_of(const Parts& z) { return cosh_of(turned(z)); }
Parts tan_of(const Parts& z) { return turned_back(tanh_of(turned(z))); }
// Kahan's formulas, whose branch cuts are those of C.
Parts asin_of(const Parts& z) {
  const Parts below = sqrt_of(-z + 1.0), above = sqrt_of(z + 1.0);
  return {atan2(z.re, product_of(below, above).re), asinh(product_of(conjugate(below), above).im)};
}
Parts acos_of(const Parts& z) {
  const Parts below = sqrt_of(-z + 1.0), above = sqrt_of(z + 1.0);
  return {multiply(atan2(below.re, above.re), 2.0), asinh(product_of(conjugate(above), below).im)};
}
Parts acosh_of(const Parts& z) {
  const Parts below = sqrt_of(z + -1.0), above = sqrt_of(z + 1.0);
  return {asinh(product_of(conjugate(below), above).re), multiply(atan2(below.im, above.re), 2.0)};
}
Parts asinh_of(const Parts& z) { return turned_back(asin_of(turned(z))); }
Parts atanh_of(const Parts& z) {
  const Tensor below = subtract(1.0, z.re), above = add(z.re, 1.0), side = square(z.im);
  const Tensor ratio = divide(multiply(z.re, 4.0), add(square(below), side));
  return {multiply(log1p(ratio), 0.25),
          multiply(atan2(multiply(z.im, 2.0), subtract(multiply(below, above), side)), 0.5)};
}
Parts atan_of(const Parts& z) { return turned_back(atanh_of(turned(z))); }
Parts expm1_of(const Parts& z) {
  const Tensor half = square(sin(multiply(z.im, 0.5)));
  return {subtract(multiply(expm1(z.re), cos(z.im)), multiply(half, 2.0)),
          multiply(exp(z.re), sin(z.im))};
}
Parts log1p_of(const Parts& z) {
  const Tensor beyond = add(multiply(z.re, add(z.re, 2.0)), square(z.im));
  return {multiply(log1p(beyond), 0.5), atan2(z.im, add(z.re, 1.0))};
}
Parts log2_of(const Parts& z) { return log_of(z) * std::numbers::log2e; }
Parts log10_of(const Parts& z) { return log_of(z) * std::numbers::log10e; }
Parts square_of(const Parts& z) { return product_of(z, z); }
Parts reciprocal_of(const Parts& z) { return quotient_of({one_of(z.re), zero_of(z.im)}, z); }
Parts rsqrt_of(const Parts& z) { return reciprocal_of(sqrt_of(z)); }
Parts sigmoid_of(const Parts& z) { return reciprocal_of(exp_of(-z) + 1.0); }
Parts sign_of(const Parts& z) {
  const Tensor size = magnitude_of(z), is_zero = equal(size, 0.0), by = where(is_zero, 1.0, size);
  return {divide(z.re, by), divide(z.im, by)};
}

// Powers of 0 are 0, but for the exponent 0.
Parts power_of(const Parts& base, const Parts& exponent) {
  const Parts z = base.im.has_value() ? base : Parts{base.re, zero_of(base.re)};
  const Tensor is_zero = equal(magnitude_of(z), 0.0);
  const Parts nonzero = {where(is_zero, 1.0, z.re), z.im};
  const Parts power = exp_of(product_of(log_of(nonzero), exponent));
  Tensor is_none = equal(exponent.re, 0.0);
  if (exponent.im.has_value()) is_none = logical_and(is_none, equal(exponent.im, 0.0));
  const Tensor at_zero = where(is_none, one_of(power.re), zero_of(power.re));
  return {where(is_zero, at_zero, power.re), where(is_zero, zero_of(power.im), power.im)};
}

// ---- the functions by op ------------------------------------------------------------------------

struct UnaryRule {
  const UnaryOp* op;
  ComplexFunction value;
};
constexpr UnaryRule kUnaryRules[] = {
    {&acos, acos_of},
    {&acosh, acosh_of},
    {&asin, asin_of},
    {&asinh, asinh_of},
    {&atan, atan_of},
    {&atanh, atanh_of},
    {&cos, cos_of},
    {&cosh, cosh_of},
    {&exp, exp_of},
    {&expm1, expm1_of},
    {&log, log_of},
    {&log10, log10_of},
    {&log1p, log1p_of},
    {&log2, log2_of},
    {&rsqrt, rsqrt_of},
    {&sigmoid, sigmoid_of},
    {&reciprocal, reciprocal_of},
    {&sign, sign_of},
    {&sin, sin_of},
    {&sinh, sinh_of},
    {&sqrt, sqrt_of},
    {&square, square_of},
    {&tan, tan_of},
    {&tanh, tanh_of},
};

struct BinaryRule {
  const BinaryOp* op;
  ComplexBinary value;
};
constexpr BinaryRule kBinaryRules[] = {{&add, sum_of},
                                       {&subtract, difference_of},
                                       {&multiply, product_of},
                                       {&divide, quotient_of},
                                       {&pow, power_of}};

template <class Rule, size_t n>
auto value_of(const Rule (&rules)[n], const OpDef& op) -> decltype(rules[0].value) {
  for (const Rule& rule : rules)
    if (&def_of(rule.op) == &op) return rule.value;
  return nullptr;
}

}  // namespace

Parts whole_power(const Parts& z, int64_t exponent) {
  if (exponent < 0) return reciprocal_of(whole_power(z, -exponent));
  if (exponent == 0) return {one_of(z.re), zero_of(z.im)};
  if (exponent == 1) return z;
  const Parts half = whole_power(z, exponent / 2);
  return exponent % 2 == 0 ? square_of(half) : product_of(square_of(half), z);
}

ComplexFunction complex_function(const OpDef& op) { return value_of(kUnaryRules, op); }
ComplexBinary complex_binary(const OpDef& op) { return value_of(kBinaryRules, op); }

}  // namespace tidemark::detail

#include "tidemark/tensor/complex_parts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/special.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/types/size.h"

namespace tidemark::detail {
namespace {

Tensor bind_one(const NamedOp& op, const Tensor& x, const Attrs& attrs, Source at) {
  return bind_op(def_of(&op), {&x, 1}, attrs, at);
}

Tensor reshaped(const Tensor& x, const Shape& shape, Source at) {
  return bind_one(ops::reshape, x, Attrs().add(shape), at);
}

Tensor with_last_axis(const Tensor& x, Source at) {
  Shape shape = x.shape();
  shape.push_back(1);
  return reshaped(x, shape, at);
}

// `count` elements from `begin` on along one axis, as a view.
Tensor range_of(const Tensor& x, int64_t axis, int64_t begin, Dim count, Source at) {
  DimList begins(static_cast<size_t>(x.rank()), 0);
  begins[static_cast<size_t>(axis)] = begin;
  Shape sizes = x.shape();
  sizes.set(axis, count);
  return bind_one(ops::slice, x, Attrs().add(begins).add(sizes).add(AxisList(begins.size(), 1)),
                  at);
}

Tensor without_axis(const Tensor& x, int64_t axis, Source at) {
  Shape shape = x.shape();
  shape.erase(axis);
  return reshaped(x, shape, at);
}

Tensor concat(std::span<const Tensor> list, int64_t axis, Source at) {
  return bind_op(def_of(&ops::concat), list, Attrs().add(axis), at);
}

Tensor broadcast(const Tensor& x, const Shape& shape, Source at) {
  return x.shape() == shape ? x : bind_one(ops::broadcast_to, x, Attrs().add(shape), at);
}

Parts halves_of(const Tensor& pairs, Source at) {
  const int64_t last = pairs.rank() - 1;
  return {without_axis(range_of(pairs, last, 0, 1, at), last, at),
          without_axis(range_of(pairs, last, 1, 1, at), last, at)};
}

}  // namespace

Tensor view_as_real(const Tensor& z, Source at) { return bind_one(ops::view_as_real, z, {}, at); }

Tensor view_as_complex(const Tensor& pairs, Source at) {
  return bind_one(ops::view_as_complex, pairs, {}, at);
}

Parts parts_of(const Operand& x, DType part, Source at) {
  const PlainNumber number = number_of(x, at);
  if (number.weak == Weak::complex)
    return {literal(part, number.real, 0, at), literal(part, number.imag, 0, at)};
  if (!is_complex(x)) return {tensor_of(x, at, part), {}};
  return halves_of(cast_to(view_as_real(*x.tensor(), at), part, at), at);
}

Tensor joined(const Parts& parts, Source at) {
  Shape shape = parts.re.shape();
  broadcast_into(shape, parts.im.shape(), "complex", at);
  const Tensor list[] = {with_last_axis(broadcast(parts.re, shape, at), at),
                         with_last_axis(broadcast(parts.im, shape, at), at)};
  return view_as_complex(concat(list, shape.rank(), at), at);
}

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

Tensor size_of(const Parts& z) { return hypot(z.re, z.im); }
Tensor angle_of(const Parts& z) { return atan2(z.im, z.re); }

// ---- functions ----------------------------------------------------------------------------------

Parts exp_of(const Parts& z) {
  const Tensor size = exp(z.re);
  return {multiply(size, cos(z.im)), multiply(size, sin(z.im))};
}
Parts log_of(const Parts& z) { return {log(size_of(z)), angle_of(z)}; }
// The root with a part that is not negative. The other part is the quotient of the imaginary part
// by it, so that nothing cancels.
Parts sqrt_of(const Parts& z) {
  const Tensor root = sqrt(multiply(add(abs(z.re), size_of(z)), 0.5));
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
  const Tensor size = size_of(z), is_zero = equal(size, 0.0), by = where(is_zero, 1.0, size);
  return {divide(z.re, by), divide(z.im, by)};
}

// z to the power of a small whole number, by squaring.
Parts whole_power(const Parts& z, int64_t exponent) {
  if (exponent < 0) return reciprocal_of(whole_power(z, -exponent));
  if (exponent == 0) return {one_of(z.re), zero_of(z.im)};
  if (exponent == 1) return z;
  const Parts half = whole_power(z, exponent / 2);
  return exponent % 2 == 0 ? square_of(half) : product_of(square_of(half), z);
}

// Powers of 0 are 0, but for the exponent 0.
Parts power_of(const Parts& base, const Parts& exponent) {
  const Parts z = base.im.has_value() ? base : Parts{base.re, zero_of(base.re)};
  const Tensor is_zero = equal(size_of(z), 0.0);
  const Parts nonzero = {where(is_zero, 1.0, z.re), z.im};
  const Parts power = exp_of(product_of(log_of(nonzero), exponent));
  Tensor is_none = equal(exponent.re, 0.0);
  if (exponent.im.has_value()) is_none = logical_and(is_none, equal(exponent.im, 0.0));
  const Tensor at_zero = where(is_none, one_of(power.re), zero_of(power.re));
  return {where(is_zero, at_zero, power.re), where(is_zero, zero_of(power.im), power.im)};
}

// ---- the rules of pointwise ops -----------------------------------------------------------------

struct UnaryRule {
  const UnaryOp* op;
  Parts (*value)(const Parts& z);
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
  Parts (*value)(const Parts& a, const Parts& b);
};
constexpr BinaryRule kBinaryRules[] = {{&add, sum_of},
                                       {&subtract, difference_of},
                                       {&multiply, product_of},
                                       {&divide, quotient_of},
                                       {&pow, power_of}};

// Ops of one operand that treat both parts alike, and those that give bools.
constexpr const UnaryOp* kAlike[] = {&identity, &negative};
struct TestRule {
  const UnaryOp* op;
  const ReduceOp* over;  // How the answers for the parts are joined.
};
constexpr TestRule kTestRules[] = {{&isfinite, &all}, {&isinf, &any}, {&isnan, &any}};

template <class Rules>
auto rule_of(const Rules& rules, const OpDef& op) {
  return std::find_if(std::begin(rules), std::end(rules),
                      [&](const auto& rule) { return &def_of(rule.op) == &op; });
}

DType common_dtype(const OpCall& call) {
  SmallVec<OperandType, 3> types;
  for (size_t i = has_condition(call.op) ? 1 : 0; i < call.operands.size(); ++i) {
    OperandType type{.weak = number_of(*call.operands[i], call.at).weak};
    if (call.operands[i]->tensor() != nullptr) type.dtype = call.operands[i]->tensor()->dtype();
    types.push_back(type);
  }
  return promote(types);
}

// Pairs of the operand in the dtype of the parts; of a real number, with imaginary parts of 0.
Tensor pairs_of(const Operand& x, DType part, Source at) {
  if (is_complex(x) && x.tensor() != nullptr)
    return cast_to(view_as_real(*x.tensor(), at), part, at);
  return view_as_real(complex_cast(x, complex_dtype(part), at), at);
}

Tensor of_one(const OpCall& call, DType part) {
  const Operand& x = *call.operands[0];
  const OpDef& op = call.op;
  if (&op == &def_of(&abs)) return size_of(parts_of(x, part, call.at));
  for (const UnaryOp* const alike : kAlike)
    if (&op == &def_of(alike))
      return view_as_complex((*alike)(pairs_of(x, part, call.at)), call.at);
  if (const auto* const test = rule_of(kTestRules, op); test != std::end(kTestRules))
    return (*test->over)((*test->op)(pairs_of(x, part, call.at)), -1);
  if (const auto* const rule = rule_of(kUnaryRules, op); rule != std::end(kUnaryRules))
    return joined(rule->value(parts_of(x, part, call.at)), call.at);
  refuse_complex(op.on_complex, op.name, call.at);
}

// The whole exponent of a power by a plain number, if it is small.
std::optional<int64_t> small_exponent(const OpCall& call) {
  constexpr double most = 64;
  if (&call.op != &def_of(&pow) || call.operands[1]->tensor() != nullptr) return {};
  const PlainNumber number = number_of(*call.operands[1], call.at);
  const double value = number.weak == Weak::floating || number.weak == Weak::complex
                           ? number.real
                           : static_cast<double>(number.whole);
  const bool is_small = number.imag == 0 && std::abs(value) <= most && value == std::floor(value);
  return is_small ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

bool is_one_of(const OpDef& op, std::initializer_list<const BinaryOp*> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const BinaryOp* each) { return &def_of(each) == &op; });
}

Tensor of_two(const OpCall& call, DType part) {
  const Operand &a = *call.operands[0], &b = *call.operands[1];
  if (is_one_of(call.op, {&equal, &not_equal})) {
    const Tensor x = pairs_of(a, part, call.at), y = pairs_of(b, part, call.at);
    return is_one_of(call.op, {&equal}) ? all(equal(x, y), -1) : any(not_equal(x, y), -1);
  }
  if (is_one_of(call.op, {&add, &subtract}) && is_complex(a) && is_complex(b)) {
    const Tensor x = pairs_of(a, part, call.at), y = pairs_of(b, part, call.at);
    return view_as_complex(is_one_of(call.op, {&add}) ? add(x, y) : subtract(x, y), call.at);
  }
  if (is_one_of(call.op, {&logical_and, &logical_or, &logical_xor})) {
    const Tensor truths[] = {cast_to(a, DType::boolean, call.at),
                             cast_to(b, DType::boolean, call.at)};
    return bind_op(call.op, truths, call.attrs, call.at);
  }
  if (const std::optional<int64_t> exponent = small_exponent(call))
    return joined(whole_power(parts_of(a, part, call.at), *exponent), call.at);
  if (const auto* const rule = rule_of(kBinaryRules, call.op); rule != std::end(kBinaryRules))
    return joined(rule->value(parts_of(a, part, call.at), parts_of(b, part, call.at)), call.at);
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

Tensor selected(const OpCall& call, DType part) {
  const Tensor condition = tensor_of(*call.operands[0], call.at);
  if (tidemark::is_complex(condition.dtype()))
    return where(cast_to(condition, DType::boolean, call.at), *call.operands[1], *call.operands[2],
                 call.at);
  return view_as_complex(
      where(with_last_axis(condition, call.at), pairs_of(*call.operands[1], part, call.at),
            pairs_of(*call.operands[2], part, call.at)),
      call.at);
}

Tensor pointwise(const OpCall& call) {
  if (&call.op == &def_of(&logical_not))
    return logical_not(cast_to(*call.operands[0], DType::boolean, call.at), call.at);
  const DType common = common_dtype(call);
  // A condition alone may be complex.
  if (&call.op == &def_of(&where)) {
    if (tidemark::is_complex(common)) return selected(call, part_dtype(common));
    return where(cast_to(*call.operands[0], DType::boolean, call.at), *call.operands[1],
                 *call.operands[2], call.at);
  }
  if (call.operands.size() == 1) return of_one(call, part_dtype(common));
  if (call.operands.size() == 2) return of_two(call, part_dtype(common));
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

// ---- the rules of other ops ---------------------------------------------------------------------

// The indices of an op that has one for each element, for each part.
Tensor for_each_part(const Tensor& indices, Source at) {
  Shape shape = indices.shape();
  shape.push_back(2);
  return broadcast(with_last_axis(indices, at), shape, at);
}

bool has_index_for_each(const OpCall& call) {
  if (&call.op == &def_of(&ops::take_along_axis)) return true;
  bool along = false;
  if (&call.op == &def_of(&ops::scatter_add)) {
    Attrs::Reader read = call.attrs.read();
    read.integer();
    along = read.boolean();
  }
  return along;
}

// A pad with a number other than 0 pads imaginary parts with 0.
Tensor padded(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const DimList low(read.sizes()), high(read.sizes());
  const AxisList inside(read.integers());
  const Parts z = halves_of(view_as_real(*call.operands[0]->tensor(), call.at), call.at);
  const Attrs with_zeros = Attrs().add(low).add(high).add(inside).add(0.0).add(int64_t{0});
  return joined({bind_one(ops::pad, z.re, call.attrs, call.at),
                 bind_one(ops::pad, z.im, with_zeros, call.at)},
                call.at);
}

bool pads_with_zeros(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  read.sizes();
  read.sizes();
  read.integers();
  return read.number() == 0;
}

Tensor by_parts(const OpCall& call) {
  if (&call.op == &def_of(&ops::pad) && !pads_with_zeros(call)) return padded(call);
  const Tensor& first = *call.operands[0]->tensor();
  std::vector<Tensor> operands;
  for (const Operand* const operand : call.operands) {
    const Tensor& each = *operand->tensor();
    const bool is_index = !tidemark::is_complex(each.dtype());
    operands.push_back(!is_index                  ? view_as_real(each, call.at)
                       : has_index_for_each(call) ? for_each_part(each, call.at)
                                                  : each);
  }
  const Attrs attrs = ops::pairs_attrs(call.op, call.attrs, first.rank());
  return view_as_complex(bind_op(call.op, operands, attrs, call.at), call.at);
}

// Of an op that is linear in each of two operands, which may be real.
Tensor bilinear(const OpCall& call) {
  const DType part = part_dtype(call.operands[0]->tensor()->dtype());
  const Parts a = parts_of(*call.operands[0], part, call.at);
  const Parts b = parts_of(*call.operands[1], part, call.at);
  const auto apply = [&](const Tensor& x, const Tensor& y) {
    const Tensor list[] = {x, y};
    return bind_op(call.op, list, call.attrs, call.at);
  };
  return joined(
      {subtract(apply(a.re, b.re), apply(a.im, b.im)), add(apply(a.re, b.im), apply(a.im, b.re))},
      call.at);
}

// Halves are multiplied until one element is left: the error grows with the logarithm of the size.
Tensor product_along(Tensor z, int64_t axis, Source at) {
  const int64_t count = z.shape()[axis];
  if (count == 0) {
    Shape shape = z.shape();
    shape.set(axis, 1);
    return broadcast(complex_cast(1.0, z.dtype(), at), shape, at);
  }
  for (int64_t size = count; size > 1; size -= size / 2) {
    const int64_t half = size / 2;
    const Tensor made = multiply(range_of(z, axis, 0, half, at), range_of(z, axis, half, half, at));
    const Tensor list[] = {made, range_of(z, axis, 2 * half, size % 2, at)};
    z = size % 2 == 0 ? made : concat(list, axis, at);
  }
  return z;
}

Tensor product_of_axes(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const AxisList axes(read.integers());
  Tensor z = *call.operands[0]->tensor();
  for (const int64_t axis : axes) z = product_along(z, axis, call.at);
  if (read.boolean()) return z;
  for (size_t i = axes.size(); i-- > 0;) z = without_axis(z, axes[i], call.at);
  return z;
}

// Of twice as many elements at each step.
Tensor running_product(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const int64_t axis = read.integer();
  const bool reverse = read.boolean();
  Tensor z = *call.operands[0]->tensor();
  const int64_t count = z.shape()[axis];
  for (int64_t reach = 1; reach < count; reach *= 2) {
    const Tensor made = multiply(range_of(z, axis, reach, count - reach, call.at),
                                 range_of(z, axis, 0, count - reach, call.at));
    const Tensor kept = range_of(z, axis, reverse ? count - reach : 0, reach, call.at);
    const Tensor list[] = {reverse ? made : kept, reverse ? kept : made};
    z = concat(list, axis, call.at);
  }
  return z;
}

// y[i] = a[i] y[i - 1] + b[i], where each step joins what reaches `reach` elements back with what
// those elements have reached.
Tensor recurrence(const OpCall& call) {
  Attrs::Reader read = call.attrs.read();
  const int64_t axis = read.integer();
  const bool reverse = read.boolean();
  const DType dtype = common_dtype(call);
  Tensor a = complex_cast(*call.operands[0], dtype, call.at);
  Tensor y = complex_cast(*call.operands[1], dtype, call.at);
  const int64_t count = y.shape()[axis];
  for (int64_t reach = 1; reach < count; reach *= 2) {
    const auto part = [&](const Tensor& x, bool later, int64_t size) {
      return range_of(x, axis, later ? count - size : 0, size, call.at);
    };
    const Tensor by = part(a, !reverse, count - reach);
    const auto with_first = [&](const Tensor& first, const Tensor& rest) {
      const Tensor list[] = {reverse ? rest : first, reverse ? first : rest};
      return concat(list, axis, call.at);
    };
    const Tensor reached = multiply(by, part(y, reverse, count - reach));
    const Tensor factors = multiply(by, part(a, reverse, count - reach));
    y = with_first(part(y, reverse, reach), add(part(y, !reverse, count - reach), reached));
    a = with_first(part(a, reverse, reach), factors);
  }
  return y;
}

Tensor truths(const OpCall& call) {
  const Tensor truth = cast_to(*call.operands[0], DType::boolean, call.at);
  return bind_op(call.op, {&truth, 1}, call.attrs, call.at);
}

struct CallRule {
  const void* op;
  Tensor (*run)(const OpCall& call);
};
constexpr CallRule kCallRules[] = {
    {&all, truths},
    {&any, truths},
    {&ops::conv2d, bilinear},
    {&ops::conv3d, bilinear},
    {&ops::matmul, bilinear},
    {&prod, product_of_axes},
    {&ops::cumprod, running_product},
    {&ops::linear_scan, recurrence},
};

}  // namespace

bool knows_complex(const OpDef& op) {
  return op.transfers || op.effect == Effect::print || &op == &def_of(&ops::view_as_real) ||
         &op == &def_of(&ops::view_as_complex);
}

Tensor complex_call(const OpCall& call) {
  const SourceScope scope(call.at);
  if (call.op.is_cast()) return complex_cast(*call.operands[0], call.attrs.read().dtype(), call.at);
  if (call.op.family == Family::pointwise) return pointwise(call);
  if (call.op.on_complex == OnComplex::parts) return by_parts(call);
  if (const auto* const rule = rule_of(kCallRules, call.op); rule != std::end(kCallRules))
    return rule->run(call);
  if (call.op.effect == Effect::check_numerics) {
    const Tensor pairs = view_as_real(*call.operands[0]->tensor(), call.at);
    return bind_op(call.op, {&pairs, 1}, call.attrs, call.at);
  }
  refuse_complex(call.op.on_complex, call.op.name, call.at);
}

Tensor complex_cast(const Operand& x, DType dtype, Source at) {
  const SourceScope scope(at);
  const bool is_tensor = is_complex(x) && x.tensor() != nullptr;
  const DType own = is_tensor ? x.tensor()->dtype() : DType::c128;
  if (dtype == DType::boolean) return any(not_equal(pairs_of(x, part_dtype(own), at), 0.0), -1);
  if (!tidemark::is_complex(dtype))
    throw UserError(cat("cast: complex numbers in ", dtype, " would lose their imaginary parts"),
                    at, "take one of their parts: td::real(z), td::imag(z), td::abs(z)");
  const DType part = part_dtype(dtype);
  if (is_tensor && own == dtype) return *x.tensor();
  if (is_tensor) return view_as_complex(pairs_of(x, part, at), at);
  Parts parts = parts_of(x, part, at);
  if (!parts.im.has_value()) parts.im = literal(part, 0, 0, at);
  return joined(parts, at);
}

}  // namespace tidemark::detail

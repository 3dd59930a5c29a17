// Calls of op objects on Terms, for gradient rules.
#include "tidemark/ops/term_ops.h"

#include <algorithm>

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/special.h"
#include "tidemark/ops/structure.h"
#include "tidemark/types/size.h"

namespace tidemark {

Term UnaryOp::operator()(Term x) const {
  return {x.builder, x.builder->apply(def_of(this), {{x.value}}, {})};
}
Term BinaryOp::operator()(Term a, Term b) const {
  return {a.builder, a.builder->apply(def_of(this), {{a.value, b.value}}, {})};
}
Term TernaryOp::operator()(Term a, Term b, Term c) const {
  return {a.builder, a.builder->apply(def_of(this), {{a.value, b.value, c.value}}, {})};
}
Term NamedOp::apply(std::initializer_list<Term> operands, const Attrs& attrs) const {
  std::vector<Value> values;
  for (const Term& operand : operands) values.push_back(operand.value);
  Builder* builder = operands.begin()->builder;
  return {builder, builder->apply(def_of(this), values, attrs)};
}

Term operator+(Term a, Term b) { return add(a, b); }
Term operator-(Term a, Term b) { return subtract(a, b); }
Term operator*(Term a, Term b) { return multiply(a, b); }
Term operator/(Term a, Term b) { return divide(a, b); }
Term operator-(Term a) { return negative(a); }

namespace term {
Term exp(Term x) { return tidemark::exp(x); }
Term log(Term x) { return tidemark::log(x); }
Term erfc(Term x) { return tidemark::erfc(x); }
Term sigmoid(Term x) { return tidemark::sigmoid(x); }
Term sin(Term x) { return tidemark::sin(x); }
Term cos(Term x) { return tidemark::cos(x); }
Term sign(Term x) { return tidemark::sign(x); }
Term rsqrt(Term x) { return tidemark::rsqrt(x); }
Term sinh(Term x) { return tidemark::sinh(x); }
Term copysign(Term a, Term b) { return tidemark::copysign(a, b); }
Term hypot(Term a, Term b) { return tidemark::hypot(a, b); }
Term polygamma(Term n, Term x) { return tidemark::polygamma(n, x); }
Term pow(Term a, Term b) { return tidemark::pow(a, b); }
Term floor_divide(Term a, Term b) { return tidemark::floor_divide(a, b); }
Term less(Term a, Term b) { return tidemark::less(a, b); }
Term equal(Term a, Term b) { return tidemark::equal(a, b); }
Term where(Term condition, Term a, Term b) { return tidemark::where(condition, a, b); }
Term cast(Term x, DType dtype) { return ops::cast.apply({x}, Attrs().add(dtype)); }
Term view_as_real(Term z) { return ops::view_as_real.apply({z}, {}); }
Term view_as_complex(Term pairs) { return ops::view_as_complex.apply({pairs}, {}); }

Term share(Term g, Term wins, Term a, Term b) {
  return where(wins, g, where(equal(a, b), g * 0.5, g.like(0)));
}

Term sum(Term x, const AxisList& axes, bool keep) {
  return {x.builder,
          x.builder->apply(def_of(&tidemark::sum), {{x.value}}, Attrs().add(axes).add(keep))};
}
Term prod(Term x, const AxisList& axes, bool keep) {
  return {x.builder,
          x.builder->apply(def_of(&tidemark::prod), {{x.value}}, Attrs().add(axes).add(keep))};
}
Term reshape(Term x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return ops::reshape.apply({x}, Attrs().add(shape));
}
Term transpose(Term x, const AxisList& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return ops::transpose.apply({x}, Attrs().add(order));
}
Term broadcast_to(Term x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return ops::broadcast_to.apply({x}, Attrs().add(shape));
}

Term slice(Term x, const DimList& begins, const DimList& ends, const AxisList& steps) {
  DimList sizes;
  for (size_t i = 0; i < begins.size(); ++i) {
    const Dim begin = begins[i], end = ends[i];
    const Dim reach = is_less(begin, end) ? end - begin : Dim(0);
    sizes.push_back(steps[i] == 1 ? reach : (reach + steps[i] - 1) / steps[i]);
  }
  return ops::slice.apply({x}, Attrs().add(begins).add(sizes).add(steps));
}

Term sum_to(Term g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const int64_t extra = g.shape().rank() - shape.rank();
  AxisList axes;
  for (int64_t axis = 0; axis < g.shape().rank(); ++axis) {
    if (axis < extra || (shape[axis - extra] == 1 && g.shape()[axis] != 1)) axes.push_back(axis);
  }
  return reshape(sum(g, axes, true), shape);
}

}  // namespace term
}  // namespace tidemark

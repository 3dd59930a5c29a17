#include "tidemark/ops/reduce.h"

#include <algorithm>
#include <cmath>

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/structure.h"
#include "tidemark/types/size.h"

namespace tidemark::rule {
namespace {

// The axis a row op works along, from its attributes.
AxisList row_axis(const GradContext& context) { return {context.attrs.read().integer()}; }

// Loads operand 0 and brings it to the dtype rows are computed in.
Scalar load_row(Recipe& recipe, DType dtype, int32_t buffer) {
  const Scalar x(recipe, append(recipe, {.op = ExprOp::load, .dtype = dtype, .ref = buffer}));
  return x.cast(is_low_precision(dtype) ? DType::f32 : dtype);
}

Scalar cell(Recipe& recipe, DType dtype, int32_t number) {
  return {recipe, append(recipe, {.op = ExprOp::cell, .dtype = dtype, .ref = number})};
}

// x with some axes moved to the end and merged into one, and g, whose merged axis has size 1.
struct MergedLast {
  MergedLast(const Shape& shape, const AxisList& axes) : whole(shape) {
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      order.push_back(axis);
      rows.push_back(shape[axis]);
    }
    Dim count = 1;
    for (const int64_t axis : axes) {
      order.push_back(axis);
      count = count * shape[axis];
    }
    rows.push_back(count);
  }
  Term apply(Term x) const {
    Shape shape = rows;
    if (x.shape() != whole) shape.set(shape.rank() - 1, 1);
    return term::reshape(term::transpose(x, order), shape);
  }
  Term undo(Term x) const {
    Shape moved;
    AxisList back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      moved.push_back(whole[order[i]]);
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    return term::transpose(term::reshape(x, moved), back);
  }

  Shape whole, rows;
  AxisList order;
};

// Half `i` of the last axis, or both halves swapped.
Term half_of(Term halves, int64_t i) {
  const auto axis = static_cast<size_t>(halves.shape().rank() - 2);
  DimList begin(axis + 2), size(std::span<const Dim>{halves.shape()});
  const AxisList step(axis + 2, 1);
  begin[axis] = i;
  size[axis] = 1;
  return ops::slice.apply({halves}, Attrs().add(begin).add(size).add(step));
}
Term swapped(Term halves) {
  const auto axis = static_cast<size_t>(halves.shape().rank() - 2);
  DimList begin(axis + 2);
  AxisList step(axis + 2, 1);
  begin[axis] = 1;
  step[axis] = -1;
  return ops::slice.apply({halves}, Attrs().add(begin).add(halves.shape()).add(step));
}

Term with_one_behind(Term x) {
  const DimList none(static_cast<size_t>(x.shape().rank()));
  const AxisList inside(none.size());
  DimList behind = none;
  behind.back() = 1;
  return ops::pad.apply({x}, Attrs().add(none).add(behind).add(inside).add(1.0).add(int64_t{1}));
}
Term without_last(Term x, int64_t count) {
  const DimList begin(static_cast<size_t>(x.shape().rank()));
  const AxisList step(begin.size(), 1);
  Shape size = x.shape();
  size.set(size.rank() - 1, count);
  return ops::slice.apply({x}, Attrs().add(begin).add(size).add(step));
}

// For each element of the last axis, g times the product of all other elements, by recursive
// halving: the partner's element times the result for the product of the pair. It only multiplies,
// so that zeros, infinities and overflow cause no NaN here or in higher derivatives.
Term times_others(Term g, Term x) {
  const int64_t last = x.shape().rank() - 1, count = x.shape()[last], half = (count + 1) / 2;
  if (count == 1) return g;
  const Term even = count % 2 == 0 ? x : with_one_behind(x);
  Shape shape = even.shape();
  shape.set(last, 2);
  shape.push_back(half);
  const Term halves = term::reshape(even, shape);
  shape.erase(last);
  const Term products = term::reshape(half_of(halves, 0) * half_of(halves, 1), shape);
  shape.insert(last, 1);
  const Term of_products = term::reshape(times_others(g, products), shape);
  const Term result = term::reshape(of_products * swapped(halves), even.shape());
  return count % 2 == 0 ? result : without_last(result, count);
}

Nest row_nest(DType dtype, Nest::Order order) {
  Nest nest;
  nest.order = order;
  nest.buffers = {{.dtype = dtype}, {.dtype = dtype, .written = true}};
  nest.cells = 2;
  return nest;
}

Term folded(const ReduceOp& op, Term x, int64_t axis) {
  const Attrs attrs = Attrs().add(AxisList{axis}).add(true);
  return {x.builder, x.builder->apply(def_of(&op), {{x.value}}, attrs)};
}

}  // namespace

Term expanded_softmax(Term x, int64_t axis) {
  const Term e = exp(x - folded(max, x, axis));
  return e * reciprocal(folded(sum, e, axis));
}

Term expanded_log_softmax(Term x, int64_t axis) {
  const Term moved = x - folded(max, x, axis);
  const Term total = folded(sum, exp(moved), axis);
  return moved - log(total);
}

// The gradient is shared evenly by all elements that attain the extremum.
Term grad_extremum(Term g, Term x, Term y, const AxisList& axes) {
  const Term hit = term::cast(term::equal(x, term::broadcast_to(y, x.shape())), g.dtype());
  return hit * (g / term::sum(hit, axes, true));
}

Term grad_prod(Term g, Term x, Term, const AxisList& axes) {
  const MergedLast merged(x.shape(), axes);
  if (merged.rows[-1] == 0) return term::broadcast_to(g, x.shape());
  return merged.undo(times_others(merged.apply(g), merged.apply(x)));
}

Term grad_softmax(const GradContext& context) {
  const Term y = context.result;
  return y * (context.g - term::sum(context.g * y, row_axis(context), true));
}

Term grad_log_softmax(const GradContext& context) {
  const Term total = term::sum(context.g, row_axis(context), true);
  return context.g - term::exp(context.result) * total;
}

// Three sweeps: the maximum; the exponentials, stored and summed; their quotients by the sum. For
// 16-bit floats the exponentials are computed twice rather than rounded to 16 bits in between.
Nest softmax_sweeps(DType dtype, Nest::Order order) {
  Nest nest = row_nest(dtype, order);
  Recipe recipe;
  const Scalar x = load_row(recipe, dtype, 0);
  const DType wide = x.dtype();
  const Scalar e = (x - cell(recipe, wide, 0)).exp();
  const Scalar share = x.like(1) / cell(recipe, wide, 1);
  const bool twice = wide != dtype;
  const Scalar again = twice ? e : load_row(recipe, dtype, 1);
  const Scalar y = (again * share).cast(dtype);
  nest.exprs = recipe.exprs;
  nest.sweeps.resize(3);
  nest.sweeps[0].folds = {{.cell = 0, .expr = x.id(), .monoid = Monoid::maximum}};
  if (!twice) nest.sweeps[1].stores = {{.buffer = 1, .expr = e.id()}};
  nest.sweeps[1].folds = {{.cell = 1, .expr = e.id(), .monoid = Monoid::sum}};
  nest.sweeps[2].stores = {{.buffer = 1, .expr = y.id()}};
  return nest;
}

Nest log_softmax_sweeps(DType dtype, Nest::Order order) {
  Nest nest = row_nest(dtype, order);
  Recipe recipe;
  const Scalar x = load_row(recipe, dtype, 0);
  const DType wide = x.dtype();
  const Scalar moved = x - cell(recipe, wide, 0);
  const Scalar e = moved.exp();
  const Scalar y = (moved - cell(recipe, wide, 1).log()).cast(dtype);
  nest.exprs = recipe.exprs;
  nest.sweeps.resize(3);
  nest.sweeps[0].folds = {{.cell = 0, .expr = x.id(), .monoid = Monoid::maximum}};
  nest.sweeps[1].folds = {{.cell = 1, .expr = e.id(), .monoid = Monoid::sum}};
  nest.sweeps[2].stores = {{.buffer = 1, .expr = y.id()}};
  return nest;
}

namespace {

double row_maximum(const double* x, int64_t count) {
  double largest = -INFINITY;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(x[i])) return NAN;
    largest = std::max(largest, x[i]);
  }
  return largest;
}

double row_sum_exp(const double* x, int64_t count, double largest) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += std::exp(x[i] - largest);
  return total;
}

}  // namespace

void softmax_row(const double* x, double* y, int64_t count) {
  const double largest = row_maximum(x, count);
  const double total = row_sum_exp(x, count, largest);
  for (int64_t i = 0; i < count; ++i) y[i] = std::exp(x[i] - largest) / total;
}

void log_softmax_row(const double* x, double* y, int64_t count) {
  const double largest = row_maximum(x, count);
  const double total = row_sum_exp(x, count, largest);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] - largest - std::log(total);
}

}  // namespace tidemark::rule

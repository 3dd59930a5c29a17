#include "tidemark/ops/reduce.h"

#include <algorithm>
#include <cmath>

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

Nest row_nest(DType dtype, Nest::Order order) {
  Nest nest;
  nest.order = order;
  nest.buffers = {{.dtype = dtype}, {.dtype = dtype, .written = true}};
  nest.cells = 2;
  return nest;
}

}  // namespace

// Ties share: the gradient is spread evenly over the elements that attain the extremum.
Term grad_extremum(Term g, Term x, Term y, const AxisList& axes) {
  const Term hit = term::cast(term::equal(x, term::broadcast_to(y, x.shape())), g.dtype());
  return hit * (g / term::sum(hit, axes, true));
}

// The product of the others: without zeros the whole over the element; of one zero, the product of
// all that are not; of more, none.
Term grad_prod(Term g, Term x, Term, const AxisList& axes) {
  const Term is_zero = term::equal(x, x.like(0));
  const Term others = term::prod(term::where(is_zero, x.like(1), x), axes, true);
  const Term zeros = term::sum(term::cast(is_zero, x.dtype()), axes, true);
  const Term none = g.like(0),
             at_zero = term::where(term::equal(zeros, zeros.like(1)), g * others, none);
  const Term elsewhere = term::where(term::equal(zeros, zeros.like(0)), g * others, none);
  return term::where(is_zero, at_zero, elsewhere / x);
}

Term grad_softmax(const GradContext& context) {
  const Term y = context.result;
  return y * (context.g - term::sum(context.g * y, row_axis(context), true));
}

Term grad_log_softmax(const GradContext& context) {
  const Term total = term::sum(context.g, row_axis(context), true);
  return context.g - term::exp(context.result) * total;
}

// The maximum; then the exponentials, stored and summed; then their share of the sum. Low precision
// computes the exponentials twice rather than round them to 16 bits in between.
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

// Every reduction, and the ops that work on whole rows, such as softmax.
#pragma once

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/term_ops.h"

namespace tidemark {

namespace rule {
Term grad_extremum(Term g, Term x, Term y, const AxisList& axes);
Term grad_softmax(const GradContext& context);
Term grad_log_softmax(const GradContext& context);
Term grad_prod(Term g, Term x, Term y, const AxisList& axes);
// softmax and log_softmax as elementwise ops and reductions; the reduction order is that of the
// sweeps.
Term expanded_softmax(Term x, int64_t axis);
Term expanded_log_softmax(Term x, int64_t axis);
Nest softmax_sweeps(DType dtype, Nest::Order order);
Nest log_softmax_sweeps(DType dtype, Nest::Order order);
void softmax_row(const double* x, double* y, int64_t count);
void log_softmax_row(const double* x, double* y, int64_t count);
}  // namespace rule

inline constexpr ReduceOp all = {
    .name = "all",
    .brief = "True if every element is true or not zero, or if there is none.",
    .accepts = TypeSet::booleans,
    .monoid = Monoid::minimum,
    .no_gradient = "the result is bool",
};
inline constexpr ReduceOp any = {
    .name = "any",
    .brief = "True if any element is true or not zero.",
    .accepts = TypeSet::booleans,
    .monoid = Monoid::maximum,
    .no_gradient = "the result is bool",
};
inline constexpr ReduceOp argmax = {
    .name = "argmax",
    .brief = "Position of the largest element, the first of equal ones; a NaN counts as largest.",
    .monoid = Monoid::maximum,
    .gives_index = true,
    .no_gradient = "positions are not differentiable",
    .on_complex = OnComplex::needs_order,
};
inline constexpr ReduceOp argmin = {
    .name = "argmin",
    .brief = "Position of the smallest element, the first of equal ones; a NaN counts as smallest.",
    .monoid = Monoid::minimum,
    .gives_index = true,
    .no_gradient = "positions are not differentiable",
    .on_complex = OnComplex::needs_order,
};
inline constexpr ReduceOp max = {
    .name = "max",
    .brief = "The largest element; NaN if there is one.",
    .monoid = Monoid::maximum,
    .grad = rule::grad_extremum,
    .on_complex = OnComplex::needs_order,
};
inline constexpr ReduceOp min = {
    .name = "min",
    .brief = "The smallest element; NaN if there is one.",
    .monoid = Monoid::minimum,
    .grad = rule::grad_extremum,
    .on_complex = OnComplex::needs_order,
};
inline constexpr ReduceOp prod = {
    .name = "prod",
    .brief = "The product of elements; integers multiply in 64 bits.",
    .monoid = Monoid::product,
    .widens = true,
    .grad = rule::grad_prod,
    .sample = {0.5, 1.5},
};
inline constexpr ReduceOp sum = {
    .name = "sum",
    .brief = "The sum of elements; integers add in 64 bits.",
    .monoid = Monoid::sum,
    .widens = true,
    .grad = [](Term g, Term x, Term, const AxisList&) { return term::broadcast_to(g, x.shape()); },
    .on_complex = OnComplex::parts,
};

inline constexpr RowOp softmax = {
    .name = "softmax",
    .brief = "exp(x - max) divided by its sum, along one axis.",
    .sweeps = rule::softmax_sweeps,
    .row = rule::softmax_row,
    .grad = rule::grad_softmax,
    .expanded = rule::expanded_softmax,
    .ulps = 16,
};
inline constexpr RowOp log_softmax = {
    .name = "log_softmax",
    .brief = "The logarithm of softmax, accurate also where softmax rounds to zero.",
    .sweeps = rule::log_softmax_sweeps,
    .row = rule::log_softmax_row,
    .grad = rule::grad_log_softmax,
    .expanded = rule::expanded_log_softmax,
    .ulps = 16,
};

inline constexpr const ReduceOp* kReduceOps[] = {&all, &any, &argmax, &argmin,
                                                 &max, &min, &prod,   &sum};
inline constexpr const RowOp* kRowOps[] = {&log_softmax, &softmax};

}  // namespace tidemark

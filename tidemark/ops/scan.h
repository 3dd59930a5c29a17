// Running products and extrema along an axis, linear recurrences, and searches in sorted rows.
// `cumsum` and `sort` are in indexing.h.
#pragma once

#include "tidemark/ops/indexing.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_extremum_scan(const InferContext& context);
TensorType infer_linear_scan(const InferContext& context);
TensorType infer_searchsorted(const InferContext& context);
Term grad_cumprod(const GradContext& context, int index);
Term grad_linear_scan(const GradContext& context, int index);
void reference_cumprod(const ReferenceContext& context);
void reference_extremum_scan(const ReferenceContext& context);
void reference_linear_scan(const ReferenceContext& context);
void reference_searchsorted(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kSearchAttrs[] = {{"right", AttrKind::boolean}};

inline constexpr CallDef kCummaxCalls[] = {
    {"cummax", "x: tensor, axis: int = 0, reverse: bool = false",
     "The largest element so far along an axis; NaN from the first NaN on."}};
// Results: the elements, and the position of each along the axis (i64), the first of equal ones.
inline constexpr NamedOp cummax = {
    .name = "cummax",
    .brief =
        "The largest element so far along an axis, and its position; NaN from the first NaN on.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .calls = kCummaxCalls,
    .infer = rule::infer_extremum_scan,
    .grad = rule::grad_sort,
    .reference = rule::reference_extremum_scan,
    .index_result = 1,
    .routine = Routine::cummax,
};
inline constexpr CallDef kCumminCalls[] = {
    {"cummin", "x: tensor, axis: int = 0, reverse: bool = false",
     "The least element so far along an axis; NaN from the first NaN on."}};
inline constexpr NamedOp cummin = {
    .name = "cummin",
    .brief = "The least element so far along an axis, and its position; NaN from the first NaN on.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .calls = kCumminCalls,
    .infer = rule::infer_extremum_scan,
    .grad = rule::grad_sort,
    .reference = rule::reference_extremum_scan,
    .index_result = 1,
    .routine = Routine::cummin,
};
inline constexpr CallDef kCumprodCalls[] = {
    {"cumprod", "x: tensor, axis: int = 0, exclusive: bool = false, reverse: bool = false"}};
inline constexpr NamedOp cumprod = {
    .name = "cumprod",
    .brief = "Running products along an axis, in order; integers multiply in i64.",
    .family = Family::scan,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .calls = kCumprodCalls,
    .infer = rule::infer_cumsum,
    .grad = rule::grad_cumprod,
    .reference = rule::reference_cumprod,
    .routine = Routine::cumprod,
};
inline constexpr CallDef kLinearScanCalls[] = {
    {"linear_scan", "a: tensor, b: tensor, axis: int = 0, reverse: bool = false"}};
inline constexpr NamedOp linear_scan = {
    .name = "linear_scan",
    .brief = "The linear recurrence y[i] = a[i] * y[i - 1] + b[i] along an axis, from y = 0.",
    .family = Family::scan,
    .arity = 2,
    .accepts = TypeSet::numbers,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .calls = kLinearScanCalls,
    .infer = rule::infer_linear_scan,
    .grad = rule::grad_linear_scan,
    .reference = rule::reference_linear_scan,
    .routine = Routine::linear_scan,
};
inline constexpr CallDef kSearchsortedCalls[] = {
    {"searchsorted", "sorted: tensor, values: tensor, right: bool = false"}};
// Rows and values have the same axes before the last.
inline constexpr NamedOp searchsorted = {
    .name = "searchsorted",
    .brief =
        "For each value, the number of elements of a sorted row that come before it; with "
        "`right`, equal ones too.",
    .family = Family::scan,
    .arity = 2,
    .batching = Batching::leading,
    .attrs = kSearchAttrs,
    .calls = kSearchsortedCalls,
    .infer = rule::infer_searchsorted,
    .no_gradient = "positions are not differentiable",
    .reference = rule::reference_searchsorted,
    .routine = Routine::searchsorted,
};

inline constexpr const NamedOp* kScanOps[] = {&cummax, &cummin, &cumprod, &linear_scan,
                                              &searchsorted};

}  // namespace tidemark::ops

// Ops that go where other elements point, running sums, and sorting. An index out of range is a
// UserError; negative ones count from the end.
#pragma once

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_gather(const InferContext& context);
TensorType infer_take_along_axis(const InferContext& context);
TensorType infer_put(const InferContext& context);
TensorType infer_scatter_add(const InferContext& context);
TensorType infer_cumsum(const InferContext& context);
TensorType infer_first_equal(const InferContext& context);
TensorType infer_sort(const InferContext& context);
TensorType infer_top_k(const InferContext& context);
Term grad_gather(const GradContext& context, int index);
Term grad_take_along_axis(const GradContext& context, int index);
Term grad_put(const GradContext& context, int index);
Term grad_scatter_add(const GradContext& context, int index);
Term grad_cumsum(const GradContext& context, int index);
Term grad_sort(const GradContext& context, int index);
void reference_gather(const ReferenceContext& context);
void reference_take_along_axis(const ReferenceContext& context);
void reference_put(const ReferenceContext& context);
void reference_scatter_add(const ReferenceContext& context);
void reference_cumsum(const ReferenceContext& context);
void reference_first_equal(const ReferenceContext& context);
void reference_sort(const ReferenceContext& context);
void reference_top_k(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kScatterAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                            {"along", AttrKind::boolean}};
// Whether a negative index counts from the end; else it is out of range, as a class number is.
inline constexpr AttrDef kTakeAlongAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                              {"from_end", AttrKind::boolean}};
inline constexpr AttrDef kCumsumAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                           {"reverse", AttrKind::boolean}};

inline constexpr AttrDef kSortAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                         {"descending", AttrKind::boolean}};
inline constexpr AttrDef kTopKAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                         {"k", AttrKind::size}};

inline constexpr NamedOp gather = {
    .name = "gather",
    .brief = "Slices of the first operand, picked along an axis by the second.",
    .family = Family::index,
    .arity = 2,
    .attrs = kAxisAttr,
    .infer = rule::infer_gather,
    .grad = rule::grad_gather,
    .reference = rule::reference_gather,
    .routine = Routine::gather,
    .looks_up = true,
};
inline constexpr NamedOp take_along_axis = {
    .name = "take_along_axis",
    .brief = "One element for each index, at the index's own place in the other axes.",
    .family = Family::index,
    .arity = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kTakeAlongAttrs,
    .infer = rule::infer_take_along_axis,
    .grad = rule::grad_take_along_axis,
    .reference = rule::reference_take_along_axis,
    .routine = Routine::take_along_axis,
};
// The result may take the bytes of the first operand.
inline constexpr NamedOp put = {
    .name = "put",
    .brief = "The first operand, with slices of its first axis replaced where the second points.",
    .family = Family::index,
    .arity = 3,
    .infer = rule::infer_put,
    .grad = rule::grad_put,
    .reference = rule::reference_put,
    .routine = Routine::put,
    .updates_first = true,
};
inline constexpr NamedOp scatter_add = {
    .name = "scatter_add",
    .brief =
        "The first operand, with updates added where indices point; in the order of the indices.",
    .family = Family::index,
    .arity = 3,
    .cutting = Cutting::alike,
    .attrs = kScatterAttrs,
    .infer = rule::infer_scatter_add,
    .grad = rule::grad_scatter_add,
    .reference = rule::reference_scatter_add,
    .routine = Routine::scatter_add,
    .updates_first = true,
};
inline constexpr NamedOp cumsum = {
    .name = "cumsum",
    .brief = "Running sums along an axis, in order.",
    .family = Family::scan,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .infer = rule::infer_cumsum,
    .grad = rule::grad_cumsum,
    .reference = rule::reference_cumsum,
    .routine = Routine::cumsum,
};
inline constexpr NamedOp first_equal = {
    .name = "first_equal",
    .brief = "For each element of a list of whole numbers, where the first that is equal stands.",
    .family = Family::scan,
    .infer = rule::infer_first_equal,
    .no_gradient = "places have no slope",
    .reference = rule::reference_first_equal,
    .routine = Routine::first_equal,
};

// Results: the elements, and where each stood along the axis (i64).
inline constexpr NamedOp sort = {
    .name = "sort",
    .brief = "The elements along an axis in order, and where each was; NaNs are the largest.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kSortAttrs,
    .infer = rule::infer_sort,
    .grad = rule::grad_sort,
    .reference = rule::reference_sort,
    .routine = Routine::sort,
};
inline constexpr NamedOp top_k = {
    .name = "top_k",
    .brief = "The k largest elements along an axis, the largest first, and where each was.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kTopKAttrs,
    .infer = rule::infer_top_k,
    .grad = rule::grad_sort,
    .reference = rule::reference_top_k,
    .routine = Routine::top_k,
};

inline constexpr const NamedOp* kIndexOps[] = {
    &cumsum, &first_equal, &gather, &put, &scatter_add, &sort, &take_along_axis, &top_k};

}  // namespace tidemark::ops

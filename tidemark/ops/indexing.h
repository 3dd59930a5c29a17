// Indexing, running sums and sorting. An index out of range is a UserError; negative indices count
// from the end.
#pragma once

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_gather(const InferContext& context);
TensorType infer_take_along_axis(const InferContext& context);
TensorType infer_put(const InferContext& context);
TensorType infer_scatter(const InferContext& context);
TensorType infer_cumsum(const InferContext& context);
TensorType infer_first_equal(const InferContext& context);
TensorType infer_sort(const InferContext& context);
TensorType infer_top_k(const InferContext& context);
Term grad_gather(const GradContext& context, int index);
Term grad_take_along_axis(const GradContext& context, int index);
Term grad_put(const GradContext& context, int index);
Term grad_scatter_add(const GradContext& context, int index);
Term grad_scatter_extremum(const GradContext& context, int index);
Term grad_scatter_mul(const GradContext& context, int index);
Term grad_cumsum(const GradContext& context, int index);
Term grad_sort(const GradContext& context, int index);
void reference_gather(const ReferenceContext& context);
void reference_take_along_axis(const ReferenceContext& context);
void reference_put(const ReferenceContext& context);
void reference_scatter(const ReferenceContext& context);
void reference_cumsum(const ReferenceContext& context);
void reference_first_equal(const ReferenceContext& context);
void reference_sort(const ReferenceContext& context);
void reference_top_k(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kScatterAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                            {"along", AttrKind::boolean}};
// `from_end`: a negative index counts from the end; otherwise it is out of range, as for class
// labels.
inline constexpr AttrDef kTakeAlongAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                              {"from_end", AttrKind::boolean}};
inline constexpr AttrDef kCumsumAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                           {"reverse", AttrKind::boolean}};

inline constexpr AttrDef kSortAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                         {"descending", AttrKind::boolean}};
inline constexpr AttrDef kTopKAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                         {"k", AttrKind::size}};

inline constexpr CallDef kGatherCalls[] = {{"gather", "x: tensor, indices: tensor, axis: int = 0"}};
inline constexpr NamedOp gather = {
    .name = "gather",
    .brief = "The slices of the first operand along an axis that the second one names.",
    .family = Family::index,
    .arity = 2,
    .attrs = kAxisAttr,
    .calls = kGatherCalls,
    .infer = rule::infer_gather,
    .grad = rule::grad_gather,
    .reference = rule::reference_gather,
    .routine = Routine::gather,
    .looks_up = true,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kTakeAlongAxisCalls[] = {
    {"take_along_axis", "x: tensor, indices: tensor, axis: int"}};
inline constexpr NamedOp take_along_axis = {
    .name = "take_along_axis",
    .brief =
        "One element for each index, taken along an axis; the other axes match those of the "
        "indices.",
    .family = Family::index,
    .arity = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kTakeAlongAttrs,
    .calls = kTakeAlongAxisCalls,
    .infer = rule::infer_take_along_axis,
    .grad = rule::grad_take_along_axis,
    .reference = rule::reference_take_along_axis,
    .routine = Routine::take_along_axis,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kPutCalls[] = {{"put", "array: tensor, index: tensor, element: tensor"}};
// The result may alias the first operand.
inline constexpr NamedOp put = {
    .name = "put",
    .brief =
        "The first operand, with the slices of its first axis that the second one names replaced.",
    .family = Family::index,
    .arity = 3,
    .calls = kPutCalls,
    .infer = rule::infer_put,
    .grad = rule::grad_put,
    .reference = rule::reference_put,
    .routine = Routine::put,
    .updates_first = true,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kScatterAddCalls[] = {
    {"scatter_add", "x: tensor, indices: tensor, updates: tensor, axis: int = 0"}};
inline constexpr NamedOp scatter_add = {
    .name = "scatter_add",
    .brief = "The first operand, with updates added at the indices; equal indices add up in order.",
    .family = Family::index,
    .arity = 3,
    .cutting = Cutting::alike,
    .attrs = kScatterAttrs,
    .calls = kScatterAddCalls,
    .infer = rule::infer_scatter,
    .grad = rule::grad_scatter_add,
    .reference = rule::reference_scatter,
    .routine = Routine::scatter_add,
    .updates_first = true,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kScatterMaxCalls[] = {
    {"scatter_max", "x: tensor, indices: tensor, updates: tensor, axis: int = 0"}};
inline constexpr NamedOp scatter_max = {
    .name = "scatter_max",
    .brief =
        "The first operand, with each element at the indices the largest of it and its updates.",
    .family = Family::index,
    .arity = 3,
    .cutting = Cutting::alike,
    .attrs = kScatterAttrs,
    .calls = kScatterMaxCalls,
    .infer = rule::infer_scatter,
    .grad = rule::grad_scatter_extremum,
    .reference = rule::reference_scatter,
    .routine = Routine::scatter_max,
    .updates_first = true,
    .on_complex = OnComplex::needs_order,
};
inline constexpr CallDef kScatterMinCalls[] = {
    {"scatter_min", "x: tensor, indices: tensor, updates: tensor, axis: int = 0"}};
inline constexpr NamedOp scatter_min = {
    .name = "scatter_min",
    .brief = "The first operand, with each element at the indices the least of it and its updates.",
    .family = Family::index,
    .arity = 3,
    .cutting = Cutting::alike,
    .attrs = kScatterAttrs,
    .calls = kScatterMinCalls,
    .infer = rule::infer_scatter,
    .grad = rule::grad_scatter_extremum,
    .reference = rule::reference_scatter,
    .routine = Routine::scatter_min,
    .updates_first = true,
    .on_complex = OnComplex::needs_order,
};
inline constexpr CallDef kScatterMulCalls[] = {
    {"scatter_mul", "x: tensor, indices: tensor, updates: tensor, axis: int = 0"}};
inline constexpr NamedOp scatter_mul = {
    .name = "scatter_mul",
    .brief = "The first operand, with the elements at the indices multiplied by updates, in order.",
    .family = Family::index,
    .arity = 3,
    .cutting = Cutting::alike,
    .attrs = kScatterAttrs,
    .calls = kScatterMulCalls,
    .infer = rule::infer_scatter,
    .grad = rule::grad_scatter_mul,
    .reference = rule::reference_scatter,
    .routine = Routine::scatter_mul,
    .updates_first = true,
};
inline constexpr CallDef kCumsumCalls[] = {
    {"cumsum", "x: tensor, axis: int = 0, exclusive: bool = false, reverse: bool = false"}};
inline constexpr NamedOp cumsum = {
    .name = "cumsum",
    .brief = "Running sums along an axis, in order.",
    .family = Family::scan,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kCumsumAttrs,
    .calls = kCumsumCalls,
    .infer = rule::infer_cumsum,
    .grad = rule::grad_cumsum,
    .reference = rule::reference_cumsum,
    .routine = Routine::cumsum,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kFirstEqualCalls[] = {{"first_equal", "x: tensor"}};
inline constexpr NamedOp first_equal = {
    .name = "first_equal",
    .brief =
        "For each element of a list of whole numbers, the position of the first equal element.",
    .family = Family::scan,
    .calls = kFirstEqualCalls,
    .infer = rule::infer_first_equal,
    .no_gradient = "positions are not differentiable",
    .reference = rule::reference_first_equal,
    .routine = Routine::first_equal,
};

inline constexpr CallDef kSortCalls[] = {
    {"sort", "x: tensor, axis: int = -1, descending: bool = false",
     "The elements along an axis, sorted; the sort is stable, NaNs are the largest."},
    {"argsort", "x: tensor, axis: int = -1, descending: bool = false",
     "The positions in x, along the axis, of the elements of sort(x)."}};
// Results: the elements, and the position of each along the axis (i64).
inline constexpr NamedOp sort = {
    .name = "sort",
    .brief = "The elements along an axis, sorted, and the position of each; NaNs are the largest.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kSortAttrs,
    .calls = kSortCalls,
    .infer = rule::infer_sort,
    .grad = rule::grad_sort,
    .reference = rule::reference_sort,
    .index_result = 1,
    .routine = Routine::sort,
    .on_complex = OnComplex::needs_order,
};
inline constexpr CallDef kTopKCalls[] = {
    {"top_k", "x: tensor, k: size, axis: int = -1", {}, "values: tensor, indices: tensor"}};
inline constexpr NamedOp top_k = {
    .name = "top_k",
    .brief = "The k largest elements along an axis, the largest first, and the position of each.",
    .family = Family::scan,
    .results = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kTopKAttrs,
    .calls = kTopKCalls,
    .infer = rule::infer_top_k,
    .grad = rule::grad_sort,
    .reference = rule::reference_top_k,
    .index_result = 1,
    .routine = Routine::top_k,
    .on_complex = OnComplex::needs_order,
};

inline constexpr const NamedOp* kIndexOps[] = {
    &cumsum,      &first_equal, &gather,          &put,  &scatter_add, &scatter_max, &scatter_min,
    &scatter_mul, &sort,        &take_along_axis, &top_k};

}  // namespace tidemark::ops

// Ops that go where other elements point, and running sums. An index out of range is a UserError;
// negative ones count from the end.
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
Term grad_gather(const GradContext& context, int index);
Term grad_take_along_axis(const GradContext& context, int index);
Term grad_put(const GradContext& context, int index);
Term grad_scatter_add(const GradContext& context, int index);
Term grad_cumsum(const GradContext& context, int index);
void reference_gather(const ReferenceContext& context);
void reference_take_along_axis(const ReferenceContext& context);
void reference_put(const ReferenceContext& context);
void reference_scatter_add(const ReferenceContext& context);
void reference_cumsum(const ReferenceContext& context);
void reference_first_equal(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kScatterAttrs[] = {{"axis", AttrKind::integer},
                                            {"along", AttrKind::boolean}};
// Whether a negative index counts from the end; else it is out of range, as a class number is.
inline constexpr AttrDef kTakeAlongAttrs[] = {{"axis", AttrKind::integer},
                                              {"from_end", AttrKind::boolean}};
inline constexpr AttrDef kCumsumAttrs[] = {{"axis", AttrKind::integer},
                                           {"reverse", AttrKind::boolean}};

inline constexpr NamedOp gather = {
    .name = "gather",
    .brief = "Slices of the first operand, picked along an axis by the second.",
    .family = Family::index,
    .arity = 2,
    .attrs = kAxisAttr,
    .infer = rule::infer_gather,
    .grad = rule::grad_gather,
    .reference = rule::reference_gather,
};
inline constexpr NamedOp take_along_axis = {
    .name = "take_along_axis",
    .brief = "One element for each index, at the index's own place in the other axes.",
    .family = Family::index,
    .arity = 2,
    .batching = Batching::leading,
    .attrs = kTakeAlongAttrs,
    .infer = rule::infer_take_along_axis,
    .grad = rule::grad_take_along_axis,
    .reference = rule::reference_take_along_axis,
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
};
inline constexpr NamedOp scatter_add = {
    .name = "scatter_add",
    .brief =
        "The first operand, with updates added where indices point; in the order of the indices.",
    .family = Family::index,
    .arity = 3,
    .attrs = kScatterAttrs,
    .infer = rule::infer_scatter_add,
    .grad = rule::grad_scatter_add,
    .reference = rule::reference_scatter_add,
};
inline constexpr NamedOp cumsum = {
    .name = "cumsum",
    .brief = "Running sums along an axis, in order.",
    .family = Family::scan,
    .batching = Batching::leading,
    .attrs = kCumsumAttrs,
    .infer = rule::infer_cumsum,
    .grad = rule::grad_cumsum,
    .reference = rule::reference_cumsum,
};
inline constexpr NamedOp first_equal = {
    .name = "first_equal",
    .brief = "For each element of a list of whole numbers, where the first that is equal stands.",
    .family = Family::scan,
    .infer = rule::infer_first_equal,
    .no_gradient = "places have no slope",
    .reference = rule::reference_first_equal,
};

inline constexpr const NamedOp* kIndexOps[] = {&cumsum, &first_equal, &gather,
                                               &put,    &scatter_add, &take_along_axis};

}  // namespace tidemark::ops

namespace tidemark {

// Whether an op gives its first operand with some elements changed, and so can work where that
// lies.
bool updates_first_operand(const OpDef& op);

}  // namespace tidemark

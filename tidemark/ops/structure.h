// Ops that move elements without computing: views, which reinterpret the operand's bytes and have
// no kernel, and pieces, which copy elements into a result.
#pragma once

#include "tidemark/ops/op_def.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_cast(const InferContext& context);
TensorType infer_reshape(const InferContext& context);
TensorType infer_stop_gradient(const InferContext& context);
TensorType infer_transpose(const InferContext& context);
TensorType infer_slice(const InferContext& context);
TensorType infer_broadcast(const InferContext& context);
TensorType infer_concat(const InferContext& context);
TensorType infer_pad(const InferContext& context);
bool view_reshape(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
bool view_stop_gradient(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
bool view_transpose(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
bool view_slice(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
bool view_broadcast(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
Term grad_cast(const GradContext& context, int index);
Term grad_reshape(const GradContext& context, int index);
Term grad_stop_gradient(const GradContext& context, int index);
Term grad_transpose(const GradContext& context, int index);
Term grad_slice(const GradContext& context, int index);
Term grad_broadcast(const GradContext& context, int index);
Term grad_concat(const GradContext& context, int index);
Term grad_pad(const GradContext& context, int index);
void reference_cast(const ReferenceContext& context);
void reference_view(const ReferenceContext& context);
void reference_concat(const ReferenceContext& context);
void reference_pad(const ReferenceContext& context);
TensorType infer_view_as_real(const InferContext& context);
TensorType infer_view_as_complex(const InferContext& context);
bool view_view_as_real(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
bool view_view_as_complex(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result);
Term grad_view_as_real(const GradContext& context, int index);
Term grad_view_as_complex(const GradContext& context, int index);
void reference_same_bytes(const ReferenceContext& context);
TensorType infer_update(const InferContext& context);
Term grad_update(const GradContext& context, int index);
void reference_update(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kDTypeAttr[] = {{"dtype", AttrKind::dtype}};
inline constexpr AttrDef kShapeAttr[] = {{"shape", AttrKind::sizes, AttrRole::shape}};
inline constexpr AttrDef kOrderAttr[] = {{"order", AttrKind::integers, AttrRole::permutation}};
inline constexpr AttrDef kAxisAttr[] = {{"axis", AttrKind::integer, AttrRole::axis}};
inline constexpr AttrDef kSliceAttrs[] = {{"begin", AttrKind::sizes, AttrRole::slice_begin},
                                          {"size", AttrKind::sizes, AttrRole::slice_size},
                                          {"step", AttrKind::integers, AttrRole::slice_step}};
inline constexpr AttrDef kPadAttrs[] = {{"low", AttrKind::sizes, AttrRole::padding},
                                        {"high", AttrKind::sizes, AttrRole::padding},
                                        {"inside", AttrKind::integers, AttrRole::padding},
                                        {"value", AttrKind::number},
                                        // The value of integers and bools.
                                        {"whole_value", AttrKind::integer}};

inline constexpr CallDef kCastCalls[] = {{"cast", "x: tensor, dtype: dtype"}};
inline constexpr NamedOp cast = {
    .name = "cast",
    .brief =
        "Each element in another dtype; floats truncate and saturate into integers, NaN gives 0.",
    .family = Family::pointwise,
    .batching = Batching::leading,
    .cutting = Cutting::broadcast,
    .attrs = kDTypeAttr,
    .calls = kCastCalls,
    .infer = rule::infer_cast,
    .grad = rule::grad_cast,
    .reference = rule::reference_cast,
};
inline constexpr CallDef kReshapeCalls[] = {{"reshape", "x: tensor, shape: shape"}};
inline constexpr NamedOp reshape = {
    .name = "reshape",
    .brief =
        "The same elements in row-major order with another shape; a view if the strides allow it.",
    .batching = Batching::leading,
    .cutting = Cutting::reshape,
    .attrs = kShapeAttr,
    .calls = kReshapeCalls,
    .infer = rule::infer_reshape,
    .grad = rule::grad_reshape,
    .reference = rule::reference_view,
    .view = rule::view_reshape,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kStopGradientCalls[] = {{"stop_gradient", "x: tensor"}};
inline constexpr NamedOp stop_gradient = {
    .name = "stop_gradient",
    .brief = "The operand unchanged; gradients treat it as a constant.",
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .calls = kStopGradientCalls,
    .infer = rule::infer_stop_gradient,
    .grad = rule::grad_stop_gradient,
    .reference = rule::reference_view,
    .view = rule::view_stop_gradient,
    .stops_gradient = true,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kTransposeCalls[] = {
    {"transpose", "x: tensor, order: ints = none",
     "The axes in another order; without one, reversed."}};
inline constexpr NamedOp transpose = {
    .name = "transpose",
    .brief = "The axes in another order.",
    .batching = Batching::leading,
    .cutting = Cutting::permute,
    .attrs = kOrderAttr,
    .calls = kTransposeCalls,
    .infer = rule::infer_transpose,
    .grad = rule::grad_transpose,
    .reference = rule::reference_view,
    .view = rule::view_transpose,
    .on_complex = OnComplex::parts,
};
inline constexpr NamedOp slice = {
    .name = "slice",
    .brief = "Every step-th element of a range of each axis; negative steps go backwards.",
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kSliceAttrs,
    .infer = rule::infer_slice,
    .grad = rule::grad_slice,
    .reference = rule::reference_view,
    .view = rule::view_slice,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kBroadcastToCalls[] = {{"broadcast_to", "x: tensor, shape: shape"}};
inline constexpr NamedOp broadcast_to = {
    .name = "broadcast_to",
    .brief = "Axes of size 1, and new axes in front, repeated to a shape.",
    .batching = Batching::broadcasts,
    .cutting = Cutting::broadcast,
    .attrs = kShapeAttr,
    .calls = kBroadcastToCalls,
    .infer = rule::infer_broadcast,
    .grad = rule::grad_broadcast,
    .reference = rule::reference_view,
    .view = rule::view_broadcast,
    .repeats = true,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kConcatCalls[] = {{"concat", "list: tensors, axis: int = 0"}};
inline constexpr NamedOp concat = {
    .name = "concat",
    .brief = "Tensors one after another along an axis.",
    .family = Family::piece,
    .arity = -1,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kAxisAttr,
    .calls = kConcatCalls,
    .infer = rule::infer_concat,
    .grad = rule::grad_concat,
    .reference = rule::reference_concat,
    .routine = Routine::concat,
    .on_complex = OnComplex::parts,
};
inline constexpr CallDef kPadCalls[] = {{"pad", "x: tensor, widths: pairs, value: tensor = 0",
                                         "The operand with a value before and after the elements "
                                         "of each axis; each pair gives the counts."}};
inline constexpr NamedOp pad = {
    .name = "pad",
    .brief =
        "The operand with a value inserted before, after and between the elements of each axis.",
    .family = Family::piece,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kPadAttrs,
    .calls = kPadCalls,
    .infer = rule::infer_pad,
    .grad = rule::grad_pad,
    .reference = rule::reference_pad,
    .routine = Routine::pad,
    .on_complex = OnComplex::parts,
};

inline constexpr NamedOp update = {
    .name = "update",
    .brief = "The first operand, with a slice of it replaced by the second.",
    .family = Family::piece,
    .arity = 2,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kSliceAttrs,
    .infer = rule::infer_update,
    .grad = rule::grad_update,
    .reference = rule::reference_update,
    .routine = Routine::update,
    .updates_first = true,
    .on_complex = OnComplex::parts,
};

// ---- complex numbers ----------------------------------------------------------------------------

// The only ops that know complex numbers: every other op computes on their parts.
inline constexpr NamedOp view_as_real = {
    .name = "view_as_real",
    .brief = "Complex numbers as pairs of reals, on a new last axis of size 2; a view.",
    .batching = Batching::leading,
    .infer = rule::infer_view_as_real,
    .grad = rule::grad_view_as_real,
    .reference = rule::reference_same_bytes,
    .view = rule::view_view_as_real,
};
inline constexpr NamedOp view_as_complex = {
    .name = "view_as_complex",
    .brief = "Pairs of reals on the last axis as complex numbers; a view if pairs are adjacent.",
    .batching = Batching::leading,
    .infer = rule::infer_view_as_complex,
    .grad = rule::grad_view_as_complex,
    .reference = rule::reference_same_bytes,
    .view = rule::view_view_as_complex,
};

// The type of the pairs of a complex tensor; of any other tensor, its own.
TensorType pairs_type(const TensorType& type);
// The attributes of an op on complex numbers (OnComplex::parts), for the op on their pairs: axes
// keep their numbers, and lists of an item for each axis get one that leaves that of the pairs
// alone.
Attrs pairs_attrs(const OpDef& op, const Attrs& attrs, int64_t rank);

inline constexpr const NamedOp* kStructureOps[] = {
    &broadcast_to, &cast, &concat, &pad, &reshape, &slice, &stop_gradient, &transpose, &update};

}  // namespace tidemark::ops

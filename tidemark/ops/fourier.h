// The discrete Fourier transform. A complex number is a pair of reals on the last axis, as in
// `view_as_real` of PyTorch; the bytes are those of NumPy's complex arrays.
#pragma once

#include "tidemark/ops/op_def.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_fourier(const InferContext& context);
Term grad_fourier(const GradContext& context, int index);
void reference_fourier(const ReferenceContext& context);
}  // namespace rule

// The transformed axis and that of the pairs.
inline constexpr AttrDef kFourierAttrs[] = {{"axes", AttrKind::integers, AttrRole::axes},
                                            {"inverse", AttrKind::boolean},
                                            {"scale", AttrKind::number}};
inline constexpr NamedOp fourier = {
    .name = "fourier",
    .brief =
        "Fourier sums of pairs (re, im) along an axis, times a scale: exp(-2 pi i j k / n), or its "
        "conjugate for the inverse.",
    .family = Family::scan,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kFourierAttrs,
    .infer = rule::infer_fourier,
    .grad = rule::grad_fourier,
    .reference = rule::reference_fourier,
    .routine = Routine::fft,
};

inline constexpr const NamedOp* kFourierOps[] = {&fourier};

}  // namespace tidemark::ops

// Running products and extrema along an axis, linear recurrences, searches in sorted rows, Fourier
// transforms, and resampling: every element of the result is a weighted sum of neighbours along an
// axis.
// `cumsum` and `sort` are in indexing.h.
#pragma once

#include "tidemark/loops/sampling.h"
#include "tidemark/ops/indexing.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_extremum_scan(const InferContext& context);
TensorType infer_fourier(const InferContext& context);
TensorType infer_real_fourier(const InferContext& context);
TensorType infer_linear_scan(const InferContext& context);
TensorType infer_resample(const InferContext& context);
TensorType infer_searchsorted(const InferContext& context);
Term grad_cumprod(const GradContext& context, int index);
Term grad_fourier(const GradContext& context, int index);
Term grad_real_fourier(const GradContext& context, int index);
Term grad_linear_scan(const GradContext& context, int index);
Term grad_resample(const GradContext& context, int index);
void reference_cumprod(const ReferenceContext& context);
void reference_extremum_scan(const ReferenceContext& context);
void reference_fourier(const ReferenceContext& context);
void reference_real_fourier(const ReferenceContext& context);
void reference_linear_scan(const ReferenceContext& context);
void reference_resample(const ReferenceContext& context);
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
    .on_complex = OnComplex::needs_order,
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
    .on_complex = OnComplex::needs_order,
};
inline constexpr CallDef kCumprodCalls[] = {
    {"cumprod", "x: tensor, axis: int = 0, exclusive: bool = false, reverse: bool = false"}};
inline constexpr NamedOp cumprod = {
    .name = "cumprod",
    .brief = "Running products along an axis, in order; integers multiply in 64 bits.",
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
    .on_complex = OnComplex::needs_order,
};

// The attributes by name.
struct ResampleSpec {
  int64_t axis = 0;
  Dim size = 0;  // Of the result.
  Sampling sampling = Sampling::linear;
  bool antialias = false;
  // The sums of the gradient: element i of the operand goes to the elements of the result that
  // would contribute to it.
  bool transposed = false;

  static ResampleSpec from(const Attrs& attrs);
  Attrs attrs() const;
};

inline constexpr AttrDef kResampleAttrs[] = {{"axis", AttrKind::integer, AttrRole::axis},
                                             {"size", AttrKind::size},
                                             {"sampling", AttrKind::integer},
                                             {"antialias", AttrKind::boolean},
                                             {"transposed", AttrKind::boolean}};

// y = w[0] x[0] + w[1] x[1] + ..., each product and each sum rounded, in increasing order of the
// operand's elements; weights are rounded to the dtype.
inline constexpr NamedOp resample = {
    .name = "resample",
    .brief = "Another number of samples along an axis, each a weighted sum of neighbours.",
    .family = Family::scan,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .cutting = Cutting::alike,
    .attrs = kResampleAttrs,
    .infer = rule::infer_resample,
    .grad = rule::grad_resample,
    .reference = rule::reference_resample,
    .routine = Routine::resample,
};

// ---- Fourier transforms: complex numbers are pairs of reals, as in NumPy's bytes ----------------

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

// Of reals on the last axis, `count` of them: the first count / 2 + 1 pairs of their transform, or
// for the inverse the reals from these; those that follow are conjugates. `adjoint`: the transposed
// sums of the other direction, in which the pairs that stand for two count otherwise.
struct RealFourierSpec {
  bool inverse = false;
  double scale = 1;
  int64_t count = 1;
  bool adjoint = false;

  static RealFourierSpec from(const Attrs& attrs);
  Attrs attrs() const;
};
inline constexpr AttrDef kRealFourierAttrs[] = {{"inverse", AttrKind::boolean},
                                                {"scale", AttrKind::number},
                                                {"count", AttrKind::integer},
                                                {"adjoint", AttrKind::boolean}};
inline constexpr NamedOp real_fourier = {
    .name = "real_fourier",
    .brief = "The first half of the Fourier transform of reals as pairs (re, im), or its inverse.",
    .family = Family::scan,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kRealFourierAttrs,
    .infer = rule::infer_real_fourier,
    .grad = rule::grad_real_fourier,
    .reference = rule::reference_real_fourier,
    .routine = Routine::fft,
};

inline constexpr const NamedOp* kScanOps[] = {
    &cummax, &cummin, &cumprod, &fourier, &linear_scan, &real_fourier, &resample, &searchsorted};

}  // namespace tidemark::ops

// Linear algebra on the matrices in the last two axes; the axes before them are a batch. All
// compute in f32 or f64: the functions in calls/linalg.h widen other dtypes.
#pragma once

#include "tidemark/ops/op_def.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_square(const InferContext& context);
TensorType infer_solve(const InferContext& context);
TensorType infer_lu(const InferContext& context);
TensorType infer_qr(const InferContext& context);
TensorType infer_eigh(const InferContext& context);
TensorType infer_svd(const InferContext& context);
TensorType infer_pinv(const InferContext& context);
Term grad_cholesky(const GradContext& context, int index);
Term grad_solve_triangular(const GradContext& context, int index);
Term grad_solve(const GradContext& context, int index);
Term grad_lu(const GradContext& context, int index);
Term grad_qr(const GradContext& context, int index);
Term grad_eigh(const GradContext& context, int index);
Term grad_svd(const GradContext& context, int index);
Term grad_pinv(const GradContext& context, int index);
Term grad_expm(const GradContext& context, int index);
void reference_cholesky(const ReferenceContext& context);
void reference_solve_triangular(const ReferenceContext& context);
void reference_solve(const ReferenceContext& context);
void reference_lu(const ReferenceContext& context);
void reference_qr(const ReferenceContext& context);
void reference_eigh(const ReferenceContext& context);
void reference_svd(const ReferenceContext& context);
void reference_pinv(const ReferenceContext& context);
void reference_expm(const ReferenceContext& context);
}  // namespace rule

// `transposed`: the system has the transpose of the matrix.
inline constexpr AttrDef kSolveAttrs[] = {{"transposed", AttrKind::boolean}};
inline constexpr AttrDef kTriangularAttrs[] = {{"lower", AttrKind::boolean},
                                               {"transposed", AttrKind::boolean},
                                               {"unit_diagonal", AttrKind::boolean}};
inline constexpr AttrDef kQrAttrs[] = {{"complete", AttrKind::boolean}};
// `rtol`: negative for the default.
inline constexpr AttrDef kPinvAttrs[] = {{"rtol", AttrKind::number}};
// Singular values up to so much of the largest one count as 0.
double pinv_cutoff(const Shape& shape, DType dtype, double rtol);

// Units in the last place of the largest element, for each row or column.
inline constexpr Ulps kLinalgUlps = 32;

inline constexpr CallDef kCholeskyCalls[] = {{"linalg::cholesky", "x: tensor"}};
inline constexpr NamedOp cholesky = {
    .name = "cholesky",
    .brief =
        "The lower triangular l with l l^T = (x + x^T) / 2; NaNs if that is not positive definite.",
    .family = Family::linalg,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .calls = kCholeskyCalls,
    .infer = rule::infer_square,
    .grad = rule::grad_cholesky,
    .reference = rule::reference_cholesky,
    .ulps = kLinalgUlps,
    .routine = Routine::cholesky,
};
// Results: the eigenvalues, and the eigenvectors as columns.
inline constexpr CallDef kEighCalls[] = {
    {"linalg::eigh", "x: tensor", {}, "values: tensor, vectors: tensor"},
    {"linalg::eigvalsh", "x: tensor",
     "The eigenvalues of the symmetric matrix (x + x^T) / 2, in increasing order."}};
inline constexpr NamedOp eigh = {
    .name = "eigh",
    .brief =
        "The eigenvalues of the symmetric matrix (x + x^T) / 2, in increasing order, and its "
        "eigenvectors as columns, whose largest element is positive.",
    .family = Family::linalg,
    .results = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .calls = kEighCalls,
    .infer = rule::infer_eigh,
    .grad = rule::grad_eigh,
    .reference = rule::reference_eigh,
    .ulps = kLinalgUlps,
    .routine = Routine::eigh,
};
inline constexpr CallDef kExpmCalls[] = {{"linalg::expm", "x: tensor"}};
inline constexpr NamedOp expm = {
    .name = "expm",
    .brief = "The exponential of a square matrix, 1 + x + x x / 2 + ...",
    .family = Family::linalg,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .calls = kExpmCalls,
    .infer = rule::infer_square,
    .grad = rule::grad_expm,
    .reference = rule::reference_expm,
    .ulps = kLinalgUlps,
    .routine = Routine::expm,
};
inline constexpr CallDef kLuCalls[] = {
    {"linalg::lu", "x: tensor", {}, "lu: tensor, permutation: tensor"}};
// Results: l below the diagonal and u above it, and for each of their rows the row of x.
inline constexpr NamedOp lu = {
    .name = "lu",
    .brief =
        "Rows of a square matrix in some order as l u: l, whose diagonal is 1, and u in one "
        "matrix, and the order.",
    .family = Family::linalg,
    .results = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .calls = kLuCalls,
    .infer = rule::infer_lu,
    .grad = rule::grad_lu,
    .reference = rule::reference_lu,
    .ulps = kLinalgUlps,
    .routine = Routine::lu,
};
inline constexpr CallDef kPinvCalls[] = {{"linalg::pinv", "x: tensor, rtol: float = none"}};
inline constexpr NamedOp pinv = {
    .name = "pinv",
    .brief =
        "The pseudoinverse; singular values up to rtol times the largest count as 0 (default: the "
        "longer side times the dtype's epsilon).",
    .family = Family::linalg,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kPinvAttrs,
    .calls = kPinvCalls,
    .infer = rule::infer_pinv,
    .grad = rule::grad_pinv,
    .reference = rule::reference_pinv,
    .ulps = 4 * kLinalgUlps,
    .routine = Routine::pinv,
};
inline constexpr CallDef kQrCalls[] = {
    {"linalg::qr", "x: tensor, complete: bool = false", {}, "q: tensor, r: tensor"}};
inline constexpr NamedOp qr = {
    .name = "qr",
    .brief =
        "q with orthonormal columns and an upper triangular r without negative diagonal elements, "
        "x = q r; `complete`: q is square.",
    .family = Family::linalg,
    .results = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kQrAttrs,
    .calls = kQrCalls,
    .infer = rule::infer_qr,
    .grad = rule::grad_qr,
    .reference = rule::reference_qr,
    .ulps = kLinalgUlps,
    .routine = Routine::qr,
};
inline constexpr CallDef kSolveCalls[] = {
    {"linalg::solve", "a: tensor, b: tensor, transposed: bool = false"}};
inline constexpr NamedOp solve = {
    .name = "solve",
    .brief =
        "The x with a x = b, or a^T x = b; a vector b is a single right side. A singular a gives "
        "infinities or NaNs.",
    .family = Family::linalg,
    .arity = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kSolveAttrs,
    .calls = kSolveCalls,
    .infer = rule::infer_solve,
    .grad = rule::grad_solve,
    .reference = rule::reference_solve,
    .ulps = 4 * kLinalgUlps,
    .routine = Routine::solve,
};
inline constexpr CallDef kSolveTriangularCalls[] = {
    {"linalg::solve_triangular",
     "a: tensor, b: tensor, lower: bool = true, transposed: bool = false, unit_diagonal: bool = "
     "false"}};
inline constexpr NamedOp solve_triangular = {
    .name = "solve_triangular",
    .brief =
        "The x with a x = b, or a^T x = b, where only one triangle of a is read; a vector b is a "
        "single right side.",
    .family = Family::linalg,
    .arity = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .attrs = kTriangularAttrs,
    .calls = kSolveTriangularCalls,
    .infer = rule::infer_solve,
    .grad = rule::grad_solve_triangular,
    .reference = rule::reference_solve_triangular,
    .ulps = 4 * kLinalgUlps,
    .routine = Routine::solve_triangular,
};
inline constexpr CallDef kSvdCalls[] = {
    {"linalg::svd", "x: tensor, full_matrices: bool = false",
     "x = u diag(s) vh: orthonormal columns, singular values in decreasing order, orthonormal "
     "rows, whose largest element is positive; `full_matrices`: u and vh are square.",
     "u: tensor, s: tensor, vh: tensor"},
    {"linalg::svdvals", "x: tensor", "The singular values, in decreasing order."}};
// Results: u, s and vh.
inline constexpr NamedOp svd = {
    .name = "svd",
    .brief =
        "x = u diag(s) vh: orthonormal columns, singular values in decreasing order, orthonormal "
        "rows, whose largest element is positive.",
    .family = Family::linalg,
    .results = 3,
    .accepts = TypeSet::floats,
    .batching = Batching::leading,
    .calls = kSvdCalls,
    .infer = rule::infer_svd,
    .grad = rule::grad_svd,
    .reference = rule::reference_svd,
    .ulps = kLinalgUlps,
    .routine = Routine::svd,
};

inline constexpr const NamedOp* kLinalgOps[] = {
    &cholesky, &eigh, &expm, &lu, &pinv, &qr, &solve, &solve_triangular, &svd};

}  // namespace tidemark::ops

// td::linalg: linear algebra on the matrices in the last two axes; the axes before them are a
// batch, and broadcast where there are two operands. Integers become f32; 16-bit floats are
// computed in f32 and rounded once.
//
// Nothing here throws for the values of a matrix: a factor that does not exist is NaN, a singular
// system gives infinities or NaNs, as in compiled functions nothing else could be known.
#pragma once

#include <limits>

#include "tidemark/calls/ops.h"

namespace tidemark::linalg {

// The lower triangular l with l l^T = (x + x^T) / 2. NaNs if that is not positive definite.
Tensor cholesky(const Operand& x, Source at = Source::here());

struct TriangularOptions {
  bool lower = true;           // Which triangle is read; the other one may hold anything.
  bool transposed = false;     // Solves a^T x = b.
  bool unit_diagonal = false;  // The diagonal counts as ones and is not read.
};
// The x with a x = b for a triangular a. A vector b is a single right side.
Tensor solve_triangular(const Operand& a, const Operand& b, TriangularOptions options = {},
                        Source at = Source::here());
// The x with l l^T x = b, where l is what cholesky gives.
Tensor cholesky_solve(const Operand& l, const Operand& b, Source at = Source::here());

struct SolveOptions {
  bool transposed = false;  // Solves a^T x = b.
};
// The x with a x = b for a square a. A vector b is a single right side.
Tensor solve(const Operand& a, const Operand& b, SolveOptions options = {},
             Source at = Source::here());
Tensor inv(const Operand& x, Source at = Source::here());

Tensor det(const Operand& x, Source at = Source::here());
struct Slogdet {
  Tensor sign, logdet;
};
// The sign of the determinant, and the logarithm of its magnitude; 0 and -inf if it is 0.
Slogdet slogdet(const Operand& x, Source at = Source::here());

struct Lu {
  Tensor lu, permutation;
};
// Rows of x in the order of the permutation (i64) = l u, where l is below the diagonal of `lu` and
// has ones on its own, and u is the rest.
Lu lu(const Operand& x, Source at = Source::here());

struct Qr {
  Tensor q, r;
};
struct QrOptions {
  bool complete = false;  // q is square; else it has as many columns as x has at most of rank.
};
// x = q r with orthonormal columns and an upper triangular r. No diagonal element of r is negative,
// so they are unique where x has full rank.
Qr qr(const Operand& x, QrOptions options = {}, Source at = Source::here());

struct Eigh {
  Tensor values, vectors;
};
// The eigenvalues of the symmetric matrix (x + x^T) / 2, in increasing order, and its eigenvectors
// as columns, each with a positive element of largest magnitude. The gradient by vectors of equal
// values counts as 0.
Eigh eigh(const Operand& x, Source at = Source::here());
// The values alone, which is faster.
Tensor eigvalsh(const Operand& x, Source at = Source::here());

struct Svd {
  Tensor u, s, vh;
};
struct SvdOptions {
  bool full_matrices = false;  // u and vh are square.
};
// x = u diag(s) vh: orthonormal columns, singular values in decreasing order, orthonormal rows,
// each of vh with a positive element of largest magnitude.
Svd svd(const Operand& x, SvdOptions options = {}, Source at = Source::here());
Tensor svdvals(const Operand& x, Source at = Source::here());

struct RankOptions {
  // Singular values up to so much of the largest one count as 0. Default: the longer side of the
  // matrix times the dtype's epsilon. The gradient takes them for 0, too.
  std::optional<double> rtol = {};
};
Tensor pinv(const Operand& x, RankOptions options = {}, Source at = Source::here());
// The shortest x with the least |a x - b|: the pseudoinverse of a times b. A vector b is a single
// right side.
Tensor lstsq(const Operand& a, const Operand& b, RankOptions options = {},
             Source at = Source::here());

// The exponential 1 + x + x x / 2 + ... of a square matrix.
Tensor expm(const Operand& x, Source at = Source::here());

struct VectorNormOptions {
  // (sum of |x|^ord)^(1 / ord); infinity: the largest magnitude, -infinity: the least; 0: how many
  // elements are not 0.
  double ord = 2;
  Axes axes = {};
  Keep keep = Keep::no;
};
Tensor vector_norm(const Operand& x, const VectorNormOptions& options = {},
                   Source at = Source::here());

// The root of the sum of squares; the sum of the singular values; the largest (least) sum of
// magnitudes of a column, of a row; the largest (least) singular value.
enum class MatrixNorm { fro, nuc, one, least_one, inf, least_inf, two, least_two };
struct MatrixNormOptions {
  MatrixNorm ord = MatrixNorm::fro;
  Keep keep = Keep::no;
};
Tensor matrix_norm(const Operand& x, MatrixNormOptions options = {}, Source at = Source::here());

}  // namespace tidemark::linalg

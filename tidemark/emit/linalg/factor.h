// Factorizations of one matrix in scratch, made of the inner loops and of matrix products.
#pragma once

#include "tidemark/emit/linalg/room.h"

namespace tidemark::factor {

// The solution of t x = b in place of b. `t` holds the diagonal as it is and the elements beside it
// negated, so that products only add.
template <class T>
void solve_triangle(Room& room, const Matrix<T>& t, bool lower, bool unit, const Matrix<T>& x);

// A triangle as solve_triangle takes it. With `unit`, the diagonal of `from` is not read.
template <class T>
void negate_triangle(const Matrix<T>& from, bool lower, bool unit, const Matrix<T>& to);

// The upper factor u of a = u^T u, in place of the upper triangle; false if `a` is not positive
// definite.
template <class T>
bool cholesky_upper(Room& room, const Matrix<T>& a);

// Rows of `a` in some order = l u, both in place of `a`; `order` is changed as the rows are.
template <class T>
void lu_in_place(Room& room, const Matrix<T>& a, int64_t* order);

// The solution of a x = b (of a^T x = b) in place of b, where rows of b are already in order (the
// result is in order).
template <class T>
void lu_solve(Room& room, const Matrix<T>& lu, bool transposed, const Matrix<T>& x);

// ---- reflectors: H = I - tau v v^T --------------------------------------------------------------

template <class T>
struct Reflector {
  T tau = 0, beta = 0;
};
// The reflector that turns x into beta e; v, which begins with 1, replaces x.
template <class T>
Reflector<T> reflect(T* x, int64_t count);

// c = H0 H1 ... c, or c = ... H1 H0 c if transposed; row i of `v` holds the vector of Hi.
template <class T>
void apply_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool transposed,
                      const Matrix<T>& c);
// The same for many reflectors, in blocks, where vector i begins with i zeros. With `fresh`, c is
// an identity, of which most stays zero.
template <class T>
void apply_all_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool fresh,
                          const Matrix<T>& c);

// a = H0 H1 ... r: r replaces the upper triangle of `a`; the rest of it is undefined. `v` has a row
// for each reflector.
template <class T>
void qr_reflectors(Room& room, const Matrix<T>& a, const Matrix<T>& v, T* tau);

// ---- spectra ------------------------------------------------------------------------------------

// The eigenvalues of a symmetric matrix, which is overwritten, in increasing order; rows of
// `vectors` become eigenvectors, unless it has none. NaNs if it does not converge.
template <class T>
void eigh_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& vectors);

// The singular values of a matrix with rows >= columns, which is overwritten, in decreasing order;
// rows of `u` and of `v` become singular vectors, unless they have none.
template <class T>
void svd_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& u, const Matrix<T>& v);

template <class T>
void expm(Room& room, const Matrix<T>& a, const Matrix<T>& result);

#define TIDEMARK_FOR_FLOATS(instantiate) \
  instantiate(float);                    \
  instantiate(double)

}  // namespace tidemark::factor

// The symmetric eigenproblem: reflectors make the matrix tridiagonal, then rotations make it
// diagonal (implicit QL). Rotations are found in f64 and applied a sweep at a time.
#include <cmath>
#include <limits>

#include "tidemark/emit/linalg/factor.h"
#include "tidemark/emit/linalg/rotations.h"

namespace tidemark::factor {
namespace {

constexpr int64_t kBlock = 32;

// One step of a block: `a` is not yet changed by the block's reflectors, which would subtract
// v w^T + w v^T for each pair of rows of v and w.
template <class T>
void reduce_column(Room& room, const Matrix<T>& a, int64_t j, int64_t before, const Matrix<T>& v,
                   const Matrix<T>& w, T* tau, double* diagonal, double* beside) {
  const int64_t n = a.rows, next = j + 1, rest = n - next;
  const Kernels<T>& with = kernels<T>();
  T* const row = a.line(j);
  T* const own = v.line(j) + next;  // Of length `rest`.
  T* const other = w.line(before) + next;
  if (!room.counts()) {
    for (int64_t i = 0; i < before; ++i) {
      const T* const vi = v.line(j - before + i);
      const T* const wi = w.line(i);
      with.add_scaled(-wi[j], vi + j, row + j, n - j);
      with.add_scaled(-vi[j], wi + j, row + j, n - j);
    }
    diagonal[j] = static_cast<double>(row[j]);
    for (int64_t i = 0; i < next; ++i) v(j, i) = 0;
    std::copy(row + next, row + n, own);
    const Reflector<T> made = reflect(own, rest);
    tau[j] = made.tau;
    beside[j] = static_cast<double>(made.beta);
  }
  room.multiply(a.part(next, next, rest, rest), Matrix<T>{own, rest, 1, 1}, {other, rest, 1, 1});
  if (room.counts()) return;
  for (int64_t i = 0; i < before; ++i) {
    const T* const vi = v.line(j - before + i) + next;
    const T* const wi = w.line(i) + next;
    const T along_w = with.dot(wi, own, rest), along_v = with.dot(vi, own, rest);
    with.add_scaled(-along_w, vi, other, rest);
    with.add_scaled(-along_v, wi, other, rest);
  }
  for (int64_t i = 0; i < rest; ++i) other[i] *= tau[j];
  with.add_scaled(-tau[j] / 2 * with.dot(other, own, rest), own, other, rest);
}

// a -= v w^T + w v^T, as one product.
template <class T>
void subtract_pairs(Room& room, const Matrix<T>& a, int64_t from, const Matrix<T>& v,
                    const Matrix<T>& w) {
  const int64_t n = a.rows - from, count = v.rows;
  const Room::Taken<T> left(room, n, 2 * count), right(room, 2 * count, n);
  const Matrix<T> minus = left.matrix(n, 2 * count), both = right.matrix(2 * count, n);
  if (!room.counts()) {
    const Kernels<T>& with = kernels<T>();
    with.transpose(v.data + from, v.row, count, n, true, minus.data, minus.row);
    with.transpose(w.data + from, w.row, count, n, true, minus.data + count, minus.row);
    copy(w.part(0, from, count, n), both.part(0, 0, count, n));
    copy(v.part(0, from, count, n), both.part(count, 0, count, n));
  }
  room.multiply(minus, both, a.part(from, from, n, n), true);
}

// q^T a q is tridiagonal, where q = H0 H1 ... and the vector of Hj is row j of v.
template <class T>
void tridiagonalize(Room& room, const Matrix<T>& a, const Matrix<T>& v, T* tau, double* diagonal,
                    double* beside) {
  const int64_t n = a.rows;
  const Room::Taken<T> pairs(room, kBlock, n);
  const Matrix<T> w = pairs.matrix(kBlock, n);
  for (int64_t at = 0; at < n - 1; at += kBlock) {
    const int64_t size = std::min(kBlock, n - 1 - at), end = at + size;
    for (int64_t j = at; j < end; ++j)
      reduce_column(room, a, j, j - at, v, w, tau, diagonal, beside);
    subtract_pairs(room, a, end, v.part(at, 0, size, n), w.part(0, 0, size, n));
  }
  if (!room.counts()) diagonal[n - 1] = static_cast<double>(a(n - 1, n - 1));
}

struct Tridiagonal {
  int64_t n;
  double *diagonal, *beside;

  bool splits_at(int64_t m) const {
    const double size = std::fabs(diagonal[m]) + std::fabs(diagonal[m + 1]);
    return std::fabs(beside[m]) <= std::numeric_limits<double>::epsilon() * size ||
           std::fabs(beside[m]) < std::numeric_limits<double>::min();
  }
};

// One implicit QL sweep from m down to l, shifted towards an eigenvalue at l. Rotation k is that of
// rows m - k and m - k - 1. Returns how many there are.
template <class T>
int64_t ql_sweep(const Tridiagonal& t, int64_t l, int64_t m, T* cosines, T* sines) {
  double *const d = t.diagonal, *const e = t.beside;
  const double slope = (d[l + 1] - d[l]) / (2 * e[l]), norm = std::hypot(slope, 1.0);
  double g = d[m] - d[l] + e[l] / (slope + (slope < 0 ? -norm : norm));
  double s = 1, c = 1, p = 0;
  for (int64_t i = m - 1; i >= l; --i) {
    const double f = s * e[i], b = c * e[i], r = std::sqrt(f * f + g * g);
    e[i + 1] = r;
    if (r == 0) {  // The matrix falls apart here.
      d[i + 1] -= p;
      e[m] = 0;
      return m - 1 - i;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const double h = (d[i] - g) * s + 2 * c * b;
    p = s * h;
    d[i + 1] = g + p;
    g = c * h - b;
    cosines[m - 1 - i] = static_cast<T>(c);
    sines[m - 1 - i] = static_cast<T>(s);
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
  return m - l;
}

// False if it does not converge.
template <class T>
bool diagonalize(const Tridiagonal& t, Sweeps<T>& sweeps) {
  for (int64_t l = 0; l < t.n; ++l) {
    for (int tries = 0;; ++tries) {
      int64_t m = l;
      while (m < t.n - 1 && !t.splits_at(m)) ++m;
      if (m < t.n - 1) t.beside[m] = 0;
      if (m == l) break;
      if (tries == 60) return false;
      sweeps.add(m, -1, ql_sweep(t, l, m, sweeps.cosines(), sweeps.sines()));
    }
  }
  sweeps.flush();
  return true;
}

}  // namespace

template <class T>
void eigh_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& vectors) {
  const int64_t n = a.rows;
  if (n == 0) return;
  const bool wants_vectors = vectors.rows > 0;
  const Room::Taken<T> reflectors(room, n, n), taus(room, n),
      turns(room, wants_vectors ? Sweeps<T>::elements(n) : 2 * n);
  const Room::Taken<double> bands(room, 2 * n);
  const Tridiagonal t{n, bands.data(), bands.data() + n};
  const Matrix<T> v = reflectors.matrix(n, n);
  const double scale = room.counts() ? 1 : power_of_two_near(largest(a));
  if (!room.counts()) {
    if (!std::isfinite(scale)) return fill_nan(values, vectors, n);
    divide(a, scale);
  }
  tridiagonalize(room, a, v, taus.data(), t.diagonal, t.beside);
  if (wants_vectors) {
    // Nothing reads the matrix any more: its memory takes the basis.
    if (!room.counts()) set_identity(a);
    apply_all_reflectors(room, v.part(0, 1, n - 1, n - 1), taus.data(), true,
                         a.part(1, 1, n - 1, n - 1));
  }
  if (room.counts()) return;
  if (wants_vectors) kernels<T>().transpose(a.data, a.row, n, n, false, vectors.data, vectors.row);
  Sweeps<T> sweeps(turns.data(), n, vectors);
  if (!diagonalize(t, sweeps)) return fill_nan(values, vectors, n);
  order_spectrum(t.diagonal, n, true, vectors, Matrix<T>{});
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(t.diagonal[i] * scale);
  for (int64_t i = 0; i < vectors.rows; ++i)
    if (sign_of_largest(vectors.line(i), n) < 0) negate(vectors.line(i), n);
}

#define TIDEMARK_INSTANTIATE(T) \
  template void eigh_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& vectors)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

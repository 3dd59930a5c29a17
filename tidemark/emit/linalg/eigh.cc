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
  // The matrix is symmetric, and its rows are what products read fastest.
  room.multiply(Matrix<T>{own, 1, rest, rest}, a.part(next, next, rest, rest),
                {other, 1, rest, rest});
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

// What is left of a matrix when it is so small is read and written anew for each reflector:
// products of few columns with pairs of vectors would cost more. Of larger matrices, products are
// split over threads.
constexpr int64_t kWhole = 512;

// q^T a q is tridiagonal, where q = H0 H1 ... and the vector of Hj is row j of v.
template <class T>
void tridiagonalize(Room& room, const Matrix<T>& a, const Matrix<T>& v, T* tau, double* diagonal,
                    double* beside) {
  const int64_t n = a.rows;
  const Room::Taken<T> pairs(room, kBlock, n);
  const Matrix<T> w = pairs.matrix(kBlock, n);
  int64_t at = 0;
  for (; n - at > kWhole; at += kBlock) {
    for (int64_t j = at; j < at + kBlock; ++j)
      reduce_column(room, a, j, j - at, v, w, tau, diagonal, beside);
    subtract_pairs(room, a, at + kBlock, v.part(at, 0, kBlock, n), w);
  }
  if (room.counts()) return;
  const Matrix<T> rest = a.part(at, at, n - at, n - at), vectors = v.part(at, at, n - at, n - at);
  for (int64_t i = at; i < n; ++i) std::fill_n(a.line(i) + n, a.row - n, T{0});
  fill(v.part(at, 0, n - at, at), T{0});
  kernels<T>().tridiagonalize({rest.data, rest.row, n - at, vectors.data, vectors.row, tau + at,
                               w.data, diagonal + at, beside + at});
}

// Squares of the elements beside the diagonal: the rotations that follow are found without roots.
struct Tridiagonal {
  int64_t n;
  double *diagonal, *beside;
  double tolerance;

  bool splits_at(int64_t m) const {
    const double size = tolerance * (std::fabs(diagonal[m]) + std::fabs(diagonal[m + 1]));
    return beside[m] <= size * size || beside[m] < std::numeric_limits<double>::min();
  }
};

// Rotations of one sweep: squares, with the signs of cosines and sines.
struct Squares {
  double *cosines, *sines;
};

// Pivots squared: products of several below this would lose digits.
constexpr double kLeast = 1e-90;

// One implicit QL sweep from m down to l, shifted towards an eigenvalue at l, in the squares of
// cosines and sines (Pal, Walker and Kahan). Rotation k is that of rows m - k and m - k - 1. All
// elements beside the diagonal are positive but the one at l, of which `negative` is the sign.
template <bool keeps>
void ql_sweep(const Tridiagonal& t, int64_t l, int64_t m, bool& negative, const Squares& made) {
  double *const d = t.diagonal, *const e = t.beside;
  const double root = std::sqrt(e[l]), slope = (d[l + 1] - d[l]) / (2 * root);
  const double shift = d[l] - root / (slope + std::copysign(std::sqrt(slope * slope + 1), slope));
  double c = 1, s = 0, gamma = d[m] - shift, p = gamma * gamma;
  bool sign = gamma < 0, last = false;  // Of this pivot, and of the cosine before.
  for (int64_t i = m - 1; i >= l; --i) {
    const double r = p + e[i], before = gamma, ahead = d[i] - shift, c_before = c;
    e[i + 1] = s * r;
    c = p / r;
    s = e[i] / r;
    if constexpr (keeps) {
      made.cosines[m - 1 - i] = sign ? -c : c;
      made.sines[m - 1 - i] = s;
    }
    // The next pivot is gamma / cosine. Its square waits neither for gamma nor for the cosine.
    bool following;
    if (p > kLeast) [[likely]] {
      const double product = p * ahead - e[i] * before;
      gamma = product / r;
      p = product * product / (r * p);
      following = (gamma < 0) != sign;
    } else {
      gamma = c * ahead - s * before;
      p = c > 0 ? gamma * gamma / c : c_before * e[i];
      following = c > 0 ? (gamma < 0) != sign : !last;
    }
    d[i + 1] = before + (d[i] - gamma);
    last = sign;
    sign = following;
  }
  e[l] = s * p;
  d[l] = shift + gamma;
  if (keeps && negative) made.sines[m - 1 - l] *= -1;
  negative = negative != sign;
}

// False if it does not converge.
template <class T>
bool diagonalize(const Tridiagonal& t, const Squares& made, Sweeps<T>& sweeps) {
  for (int64_t l = 0; l < t.n; ++l) {
    bool negative = false;
    for (int tries = 0;; ++tries) {
      int64_t m = l;
      while (m < t.n - 1 && !t.splits_at(m)) ++m;
      if (m < t.n - 1) t.beside[m] = 0;
      if (m == l) break;
      if (tries == 60) return false;
      if (!sweeps.turns()) {
        ql_sweep<false>(t, l, m, negative, made);
        continue;
      }
      ql_sweep<true>(t, l, m, negative, made);
      kernels<T>().roots(made.cosines, made.sines, m - l, sweeps.cosines(), sweeps.sines());
      sweeps.add(m, -1, m - l);
    }
  }
  sweeps.flush();
  return true;
}

// Squares what is beside the diagonal, whose signs go to the rows.
template <class T>
void make_positive(const Tridiagonal& t, const Matrix<T>& vectors) {
  bool negative = false;
  for (int64_t i = 0; i + 1 < t.n; ++i) {
    negative = negative != (t.beside[i] < 0);
    t.beside[i] *= t.beside[i];
    if (negative && vectors.rows > 0) negate(vectors.line(i + 1), t.n);
  }
}

}  // namespace

template <class T>
void eigh_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& vectors) {
  const int64_t n = a.rows;
  if (n == 0) return;
  const bool wants_vectors = vectors.rows > 0;
  const Room::Taken<T> reflectors(room, n, n), taus(room, n),
      turns(room, wants_vectors ? Sweeps<T>::elements(n) : 0);
  const Room::Taken<double> bands(room, 4 * n);
  const Tridiagonal t{n, bands.data(), bands.data() + n, kDropped<T>};
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
  make_positive(t, vectors);
  if (!diagonalize(t, {bands.data() + 2 * n, bands.data() + 3 * n}, sweeps))
    return fill_nan(values, vectors, n);
  order_spectrum(t.diagonal, n, true, vectors, Matrix<T>{});
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(t.diagonal[i] * scale);
  for (int64_t i = 0; i < vectors.rows; ++i)
    if (sign_of_largest(vectors.line(i), n) < 0) negate(vectors.line(i), n);
}

#define TIDEMARK_INSTANTIATE(T) \
  template void eigh_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& vectors)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

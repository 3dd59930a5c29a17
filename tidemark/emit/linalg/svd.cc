// Singular values: reflectors from both sides make the matrix bidiagonal, then rotations make it
// diagonal (implicit QR, without a shift where one would cost small values their digits). Rotations
// are found in f64 and applied a sweep at a time.
#include <cmath>
#include <limits>

#include "tidemark/emit/linalg/factor.h"
#include "tidemark/emit/linalg/rotations.h"

namespace tidemark::factor {
namespace {

constexpr int64_t kBlock = 32;

// The upper bidiagonal b = (H0 H1 ...)^T a (G0 G1 ...): vectors of H are rows of `left`, those of G
// rows of `right`.
template <class T>
struct Bidiagonal {
  Matrix<T> left, right;
  T *left_tau, *right_tau;
  double *diagonal, *beside;
};

// The rows of one block, by which `a` is too large: a - v y^T - x u^T is what it should be, where v
// and u are rows of `left` and `right`.
template <class T>
struct Pending {
  Matrix<T> y, x;
};

// row -= the columns of pairs (p, q), at place `at` of p; q from there on.
template <class T>
void subtract_rows(const Matrix<T>& p, const Matrix<T>& q, int64_t count, int64_t at, int64_t from,
                   T* row, int64_t length) {
  for (int64_t i = 0; i < count; ++i)
    kernels<T>().add_scaled(-p(i, at), q.line(i) + from, row, length);
}

// to -= q (p . own), for rows of p and q from `p_from` and `q_from` on.
template <class T>
void subtract_projections(const Matrix<T>& p, int64_t p_from, const T* own, int64_t p_length,
                          const Matrix<T>& q, int64_t q_from, T* to, int64_t q_length,
                          int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    kernels<T>().add_scaled(-kernels<T>().dot(p.line(i) + p_from, own, p_length),
                            q.line(i) + q_from, to, q_length);
}

template <class T>
void reduce_column(Room& room, const Matrix<T>& a, int64_t j, int64_t before,
                   const Bidiagonal<T>& b, const Pending<T>& pending) {
  const int64_t m = a.rows, rows = m - j, next = j + 1, rest = a.columns - next;
  const Matrix<T> v = b.left.part(j - before, 0, before + 1, m);
  const Matrix<T> u = b.right.part(j - before, 0, before + 1, a.columns);
  T* const own = v.line(before) + j;
  T* const y = pending.y.line(before) + next;
  if (!room.counts()) {
    for (int64_t i = 0; i < j; ++i) v(before, i) = 0;
    for (int64_t i = 0; i < rows; ++i) own[i] = a(j + i, j);
    subtract_rows(pending.y, v, before, j, j, own, rows);
    subtract_rows(u, pending.x, before, j, j, own, rows);
    const Reflector<T> made = reflect(own, rows);
    b.left_tau[j] = made.tau;
    b.diagonal[j] = static_cast<double>(made.beta);
  }
  room.multiply(Matrix<T>{own, 1, rows, rows}, a.part(j, next, rows, rest), {y, 1, rest, rest});
  if (room.counts()) return;
  subtract_projections(v, j, own, rows, pending.y, next, y, rest, before);
  subtract_projections(pending.x, j, own, rows, u, next, y, rest, before);
  for (int64_t i = 0; i < rest; ++i) y[i] *= b.left_tau[j];
}

template <class T>
void reduce_row(Room& room, const Matrix<T>& a, int64_t j, int64_t before, const Bidiagonal<T>& b,
                const Pending<T>& pending) {
  const int64_t m = a.rows, n = a.columns, next = j + 1, rest = n - next, rows = m - next;
  if (rest == 0) return;
  const Matrix<T> v = b.left.part(j - before, 0, before + 1, m);
  const Matrix<T> u = b.right.part(j - before, 0, before + 1, n);
  T* const own = u.line(before) + next;
  T* const x = pending.x.line(before) + next;
  if (!room.counts()) {
    for (int64_t i = 0; i < next; ++i) u(before, i) = 0;
    std::copy(a.line(j) + next, a.line(j) + n, own);
    subtract_rows(v, pending.y, before + 1, j, next, own, rest);
    subtract_rows(pending.x, u, before, j, next, own, rest);
    const Reflector<T> made = reflect(own, rest);
    b.right_tau[j] = made.tau;
    b.beside[j] = static_cast<double>(made.beta);
  }
  room.multiply(a.part(next, next, rows, rest), Matrix<T>{own, rest, 1, 1}, {x, rows, 1, 1});
  if (room.counts()) return;
  subtract_projections(pending.y, next, own, rest, v, next, x, rows, before + 1);
  subtract_projections(u, next, own, rest, pending.x, next, x, rows, before);
  for (int64_t i = 0; i < rows; ++i) x[i] *= b.right_tau[j];
}

// a -= v y^T + x u^T from row and column `from` on.
template <class T>
void subtract_pending(Room& room, const Matrix<T>& a, int64_t from, const Matrix<T>& v,
                      const Matrix<T>& u, const Pending<T>& pending) {
  const int64_t m = a.rows - from, n = a.columns - from, count = v.rows;
  if (n == 0) return;
  const Room::Taken<T> left(room, m, 2 * count), right(room, 2 * count, n);
  const Matrix<T> minus = left.matrix(m, 2 * count), both = right.matrix(2 * count, n);
  if (!room.counts()) {
    const Kernels<T>& with = kernels<T>();
    with.transpose(v.data + from, v.row, count, m, true, minus.data, minus.row);
    with.transpose(pending.x.data + from, pending.x.row, count, m, true, minus.data + count,
                   minus.row);
    copy(pending.y.part(0, from, count, n), both.part(0, 0, count, n));
    copy(u.part(0, from, count, n), both.part(count, 0, count, n));
  }
  room.multiply(minus, both, a.part(from, from, m, n), true);
}

template <class T>
void bidiagonalize(Room& room, const Matrix<T>& a, const Bidiagonal<T>& b) {
  const int64_t m = a.rows, n = a.columns;
  const Room::Taken<T> y(room, kBlock, n), x(room, kBlock, m);
  const Pending<T> pending{y.matrix(kBlock, n), x.matrix(kBlock, m)};
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at), end = at + size;
    for (int64_t j = at; j < end; ++j) {
      reduce_column(room, a, j, j - at, b, pending);
      reduce_row(room, a, j, j - at, b, pending);
    }
    subtract_pending(room, a, end, b.left.part(at, 0, size, m), b.right.part(at, 0, size, n),
                     pending);
  }
}

// ---- rotations ----------------------------------------------------------------------------------

struct Rotation {
  double c, s, r;
  // c f + s g = r, c g - s f = 0.
  Rotation(double f, double g) {
    r = std::sqrt(f * f + g * g);
    c = r == 0 ? 1 : f / r;
    s = r == 0 ? 0 : g / r;
  }
};

// The rotations of one sweep, of neighbouring columns and of neighbouring rows: they turn vectors
// on the right and on the left.
template <class T>
struct Turns {
  Sweeps<T> columns, rows;
  void set(int64_t k, const Rotation& column, const Rotation& row) {
    columns.cosines()[k] = static_cast<T>(column.c);
    columns.sines()[k] = static_cast<T>(column.s);
    rows.cosines()[k] = static_cast<T>(row.c);
    rows.sines()[k] = static_cast<T>(row.s);
  }
};

// The smaller singular value of [[f, g], [0, h]].
double smaller_value(double f, double g, double h) {
  const double fa = std::fabs(f), ha = std::fabs(h), ga = std::fabs(g);
  const double least = std::min(fa, ha), most = std::max(fa, ha);
  if (least == 0) return 0;
  if (ga < most) {
    const double as = 1 + least / most, at = (most - least) / most, au = (ga / most) * (ga / most);
    return least * (2 / (std::sqrt(as * as + au) + std::sqrt(at * at + au)));
  }
  const double au = most / ga;
  if (au == 0) return least * most / ga;
  const double as = 1 + least / most, at = (most - least) / most;
  return 2 *
         (least / (std::sqrt(1 + (as * au) * (as * au)) + std::sqrt(1 + (at * au) * (at * au)))) *
         au;
}

template <class T>
void sweep_unshifted(double* d, double* e, int64_t l, int64_t q, Turns<T>& turns) {
  Rotation column(1, 0), row(1, 0);
  for (int64_t i = l; i < q; ++i) {
    column = Rotation(d[i] * column.c, e[i]);
    if (i > l) e[i - 1] = row.s * column.r;
    row = Rotation(row.c * column.r, d[i + 1] * column.s);
    d[i] = row.r;
    turns.set(i - l, column, row);
  }
  const double h = d[q] * column.c;
  d[q] = h * row.c;
  e[q - 1] = h * row.s;
}

template <class T>
void sweep_shifted(double* d, double* e, int64_t l, int64_t q, double shift, Turns<T>& turns) {
  double f = (std::fabs(d[l]) - shift) * (std::copysign(1.0, d[l]) + shift / d[l]), g = e[l];
  for (int64_t i = l; i < q; ++i) {
    const Rotation column(f, g);
    if (i > l) e[i - 1] = column.r;
    f = column.c * d[i] + column.s * e[i];
    e[i] = column.c * e[i] - column.s * d[i];
    g = column.s * d[i + 1];
    d[i + 1] *= column.c;
    const Rotation row(f, g);
    d[i] = row.r;
    f = row.c * e[i] + row.s * d[i + 1];
    d[i + 1] = row.c * d[i + 1] - row.s * e[i];
    if (i + 1 < q) {
      g = row.s * e[i + 1];
      e[i + 1] *= row.c;
    }
    turns.set(i - l, column, row);
  }
  e[q - 1] = f;
}

// False if it does not converge.
template <class T>
bool diagonalize(double* d, double* e, int64_t n, Turns<T>& turns) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  double norm = 0;
  for (int64_t i = 0; i < n; ++i)
    norm = std::max(norm, std::fabs(d[i]) + (i + 1 < n ? std::fabs(e[i]) : 0));
  int64_t sweeps = 0;
  for (int64_t q = n - 1; q > 0;) {
    for (int64_t i = 0; i < q; ++i)
      if (std::fabs(e[i]) <= eps * (std::fabs(d[i]) + std::fabs(d[i + 1])) ||
          std::fabs(e[i]) <= eps / 4 * norm)
        e[i] = 0;
    if (e[q - 1] == 0) {
      --q;
      continue;
    }
    if (++sweeps > 60 * n) return false;
    int64_t l = q - 1;
    while (l > 0 && e[l - 1] != 0) --l;
    const double shift = smaller_value(d[q - 1], e[q - 1], d[q]);
    bool has_zero = false;
    for (int64_t i = l; i <= q; ++i) has_zero = has_zero || d[i] == 0;
    const double share = has_zero ? 0 : shift / std::fabs(d[l]);
    if (has_zero || share * share < eps)
      sweep_unshifted(d, e, l, q, turns);
    else
      sweep_shifted(d, e, l, q, shift, turns);
    turns.columns.add(l, 1, q - l);
    turns.rows.add(l, 1, q - l);
  }
  turns.columns.flush();
  turns.rows.flush();
  return true;
}

// A matrix of more rows than that is made square first.
bool is_tall(int64_t m, int64_t n) { return n > 0 && 2 * m > 3 * n; }

template <class T>
void svd_of_bidiagonal(Room& room, const Matrix<T>& a, double* values, const Matrix<T>& u,
                       const Matrix<T>& v, bool& converged) {
  const int64_t m = a.rows, n = a.columns;
  const Room::Taken<T> lefts(room, n, m), rights(room, n, n), taus(room, 2 * n),
      turns(room, 2 * Sweeps<T>::elements(n));
  const Room::Taken<double> bands(room, n);
  const Bidiagonal<T> b{
      lefts.matrix(n, m), rights.matrix(n, n), taus.data(), taus.data() + n, values, bands.data()};
  bidiagonalize(room, a, b);
  const auto basis = [&](const Matrix<T>& vectors, const Matrix<T>& reflectors, const T* tau,
                         int64_t from) {
    if (vectors.rows == 0) return;
    const int64_t size = vectors.columns, count = reflectors.rows - from;
    const Room::Taken<T> columns(room, size, vectors.rows);
    const Matrix<T> q = columns.matrix(size, vectors.rows);
    if (!room.counts()) set_identity(q);
    apply_all_reflectors(room, reflectors.part(0, from, count, size - from), tau, true,
                         q.part(from, from, size - from, vectors.rows - from));
    if (!room.counts())
      kernels<T>().transpose(q.data, q.row, size, vectors.rows, false, vectors.data, vectors.row);
  };
  basis(u, b.left, b.left_tau, 0);
  basis(v, b.right, b.right_tau, 1);
  if (room.counts()) return;
  Turns<T> pairs{{turns.data(), n, v}, {turns.data() + Sweeps<T>::elements(n), n, u}};
  converged = diagonalize(values, bands.data(), n, pairs);
}

template <class T>
void svd_in_f64(Room& room, const Matrix<T>& a, double* values, const Matrix<T>& u,
                const Matrix<T>& v, bool& converged) {
  const int64_t m = a.rows, n = a.columns;
  if (!is_tall(m, n)) return svd_of_bidiagonal(room, a, values, u, v, converged);
  const bool wants_u = u.rows > 0;
  const Room::Taken<T> reflectors(room, n, m), taus(room, n), squares(room, n, n),
      vectors(room, n, n), columns(room, wants_u ? m : 0, n);
  const Matrix<T> square = squares.matrix(n, n), rows = vectors.matrix(wants_u ? n : 0, n);
  qr_reflectors(room, a, reflectors.matrix(n, m), taus.data());
  if (!room.counts()) {
    fill(square, T{0});
    for (int64_t i = 0; i < n; ++i) std::copy(a.line(i) + i, a.line(i) + n, square.line(i) + i);
  }
  svd_of_bidiagonal(room, square, values, rows, v, converged);
  if (!wants_u) return;
  const Matrix<T> q = columns.matrix(m, n);
  if (!room.counts()) {
    fill(q, T{0});
    kernels<T>().transpose(rows.data, rows.row, n, n, false, q.data, q.row);
  }
  apply_all_reflectors(room, reflectors.matrix(n, m), taus.data(), false, q);
  if (!room.counts()) kernels<T>().transpose(q.data, q.row, m, n, false, u.data, u.row);
}

}  // namespace

template <class T>
void svd_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& u, const Matrix<T>& v) {
  const int64_t n = a.columns;
  const Room::Taken<double> wide(room, n);
  const auto give_up = [&] {
    fill_nan(values, u, n);
    fill_nan(values, v, n);
  };
  const double scale = room.counts() ? 1 : power_of_two_near(largest(a));
  if (!room.counts()) {
    if (!std::isfinite(scale)) return give_up();
    divide(a, scale);
  }
  bool converged = true;
  if (n > 0) svd_in_f64(room, a, wide.data(), u, v, converged);
  if (room.counts()) return;
  if (n == 0) return;
  if (!converged) return give_up();
  for (int64_t i = 0; i < n; ++i) {
    if (wide.data()[i] < 0 && v.rows > 0) negate(v.line(i), n);
    wide.data()[i] = std::fabs(wide.data()[i]);  // Also of -0, of which 1 / x is -inf.
  }
  order_spectrum(wide.data(), n, false, u, v);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(wide.data()[i] * scale);
}

#define TIDEMARK_INSTANTIATE(T)                                                         \
  template void svd_rows(Room& room, const Matrix<T>& a, T* values, const Matrix<T>& u, \
                         const Matrix<T>& v)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

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
struct Reduced {
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
void reduce_column(Room& room, const Matrix<T>& a, int64_t j, int64_t before, const Reduced<T>& b,
                   const Pending<T>& pending) {
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
void reduce_row(Room& room, const Matrix<T>& a, int64_t j, int64_t before, const Reduced<T>& b,
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

// What is left of a matrix with so few columns is read and written anew for each pair of
// reflectors.
constexpr int64_t kWhole = 512;

template <class T>
void bidiagonalize(Room& room, const Matrix<T>& a, const Reduced<T>& b) {
  const int64_t m = a.rows, n = a.columns;
  const Room::Taken<T> y(room, kBlock, n), x(room, kBlock, m), spare(room, 3, m);
  const Pending<T> pending{y.matrix(kBlock, n), x.matrix(kBlock, m)};
  int64_t at = 0;
  for (; n - at > kWhole; at += kBlock) {
    const int64_t end = at + kBlock;
    for (int64_t j = at; j < end; ++j) {
      reduce_column(room, a, j, j - at, b, pending);
      reduce_row(room, a, j, j - at, b, pending);
    }
    subtract_pending(room, a, end, b.left.part(at, 0, kBlock, m), b.right.part(at, 0, kBlock, n),
                     pending);
  }
  if (room.counts()) return;
  for (int64_t i = at; i < m; ++i) std::fill(a.line(i) + n, a.line(i) + a.row, T{0});
  fill(b.left.part(at, 0, n - at, at), T{0});
  fill(b.right.part(at, 0, n - at, at), T{0});
  kernels<T>().bidiagonalize({a.line(at) + at, a.row, m - at, n - at, b.left.line(at) + at,
                              b.left.row, b.right.line(at) + at, b.right.row, b.left_tau + at,
                              b.right_tau + at, spare.data(), b.diagonal + at, b.beside + at});
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

// Rotations are found from quotients f / g: that of a rotation of columns follows from the one
// before in one root and one quotient, and what else a step computes does not wait for it. Beyond
// kMost a rotation changes nothing.
constexpr double kMost = 1e60;
double limited(double x) { return std::fabs(x) <= kMost ? x : std::copysign(kMost, x); }

template <class T>
void sweep_shifted(double* d, double* e, int64_t l, int64_t q, double shift, Turns<T>& turns) {
  double f = (std::fabs(d[l]) - shift) * (std::copysign(1.0, d[l]) + shift / d[l]), g = e[l];
  double quotient = limited(f / g);
  for (int64_t i = l; i < q; ++i) {
    const double here = d[i], beside = e[i], next = d[i + 1], after = i + 1 < q ? e[i + 1] : 1;
    const double r = std::sqrt(1 + quotient * quotient), s = 1 / r, c = quotient / r;
    const double row_quotient = limited((quotient * here + beside) / next);
    const double along = row_quotient * (quotient * beside - here) + quotient * next;
    quotient = limited(along / after * s);
    const double row_r = std::sqrt(1 + row_quotient * row_quotient), row_s = 1 / row_r;
    const double row_c = row_quotient / row_r;
    if (i > l) e[i - 1] = c * f + s * g;
    d[i] = row_c * (c * here + s * beside) + row_s * (s * next);
    const double turned = c * beside - s * here, ahead = c * next;
    f = row_c * turned + row_s * ahead;
    d[i + 1] = row_c * ahead - row_s * turned;
    g = row_s * after;
    if (i + 1 < q) e[i + 1] = row_c * after;
    turns.columns.cosines()[i - l] = static_cast<T>(c);
    turns.columns.sines()[i - l] = static_cast<T>(s);
    turns.rows.cosines()[i - l] = static_cast<T>(row_c);
    turns.rows.sines()[i - l] = static_cast<T>(row_s);
  }
  e[q - 1] = f;
}

// False if it does not converge.
template <class T>
bool diagonalize(double* d, double* e, int64_t n, Turns<T>& turns) {
  constexpr double eps = std::numeric_limits<double>::epsilon(), tolerance = kDropped<T>;
  double norm = 0;
  for (int64_t i = 0; i < n; ++i)
    norm = std::max(norm, std::fabs(d[i]) + (i + 1 < n ? std::fabs(e[i]) : 0));
  int64_t sweeps = 0;
  for (int64_t q = n - 1; q > 0;) {
    for (int64_t i = 0; i < q; ++i)
      if (std::fabs(e[i]) <= tolerance * (std::fabs(d[i]) + std::fabs(d[i + 1])) ||
          std::fabs(e[i]) <= tolerance / 4 * norm)
        e[i] = 0;
    if (e[q - 1] == 0) {
      --q;
      continue;
    }
    if (++sweeps > 60 * n) return false;
    int64_t l = q - 1;
    while (l > 0 && e[l - 1] != 0) --l;
    const double shift = smaller_value(d[q - 1], e[q - 1], d[q]);
    // Nothing may be divided by these.
    bool has_tiny = false;
    for (int64_t i = l; i <= q; ++i) has_tiny = has_tiny || std::fabs(d[i]) < 1 / kMost;
    const double share = has_tiny ? 0 : shift / std::fabs(d[l]);
    if (has_tiny || share * share < eps)
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

// Singular values alone, in place of the diagonal; `squares` has room for 2 n of them.
template <class T>
void find_values(double* d, const double* e, int64_t n, double* squares) {
  double most = 0;  // The sum of a row or of a column, which no value exceeds.
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::fabs(d[i]), before = i > 0 ? std::fabs(e[i - 1]) : 0;
    const double after = i + 1 < n ? std::fabs(e[i]) : 0;
    most = std::max(most, size + std::max(before, after));
    squares[i] = size * size;
    squares[n + i] = after * after;
  }
  if (most == 0) return;
  kernels<T>().halve({squares, squares + n, n}, most * (1 + 0x1p-40), d);
}

// A matrix of more rows than that is made square first.
bool is_tall(int64_t m, int64_t n) { return n > 0 && 2 * m > 3 * n; }

template <class T>
void svd_of_bidiagonal(Room& room, const Matrix<T>& a, double* values, const Matrix<T>& u,
                       const Matrix<T>& v, bool& converged) {
  const int64_t m = a.rows, n = a.columns;
  const Room::Taken<T> lefts(room, n, m), rights(room, n, n), taus(room, 2 * n),
      turns(room, 2 * Sweeps<T>::elements(n));
  const Room::Taken<double> bands(room, 3 * n);
  const Reduced<T> b{lefts.matrix(n, m), rights.matrix(n, n), taus.data(), taus.data() + n, values,
                     bands.data()};
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
  if (u.rows == 0 && v.rows == 0) {
    converged = true;
    return find_values<T>(values, bands.data(), n, bands.data() + n);
  }
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

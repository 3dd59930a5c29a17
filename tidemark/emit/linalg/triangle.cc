#include "tidemark/emit/linalg/factor.h"

namespace tidemark::factor {

template <class T>
void negate_triangle(const Matrix<T>& from, bool lower, bool unit, const Matrix<T>& to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const int64_t begin = lower ? 0 : i + 1, end = lower ? i : from.rows;
    for (int64_t j = begin; j < end; ++j) to(i, j) = -from(i, j);
    to(i, i) = unit ? T{1} : from(i, i);
  }
}

// Halves, until the rows are few: what the first half contributes to the second is a product.
template <class T>
void solve_triangle(Room& room, const Matrix<T>& t, bool lower, bool unit, const Matrix<T>& x) {
  const int64_t n = t.rows;
  if (n <= kSolveRows) {
    if (room.counts() || n == 0) return;
    const auto solve = lower ? kernels<T>().solve_lower : kernels<T>().solve_upper;
    return solve(t.data, t.row, n, unit, x.data, x.row, x.columns);
  }
  const int64_t half = (n / 2 + kSolveRows - 1) / kSolveRows * kSolveRows, rest = n - half;
  const Matrix<T> top = x.part(0, 0, half, x.columns), bottom = x.part(half, 0, rest, x.columns);
  const Matrix<T> first = t.part(0, 0, half, half), last = t.part(half, half, rest, rest);
  if (lower) {
    solve_triangle(room, first, lower, unit, top);
    room.multiply(t.part(half, 0, rest, half), top, bottom, true);
    solve_triangle(room, last, lower, unit, bottom);
  } else {
    solve_triangle(room, last, lower, unit, bottom);
    room.multiply(t.part(0, half, half, rest), bottom, top, true);
    solve_triangle(room, first, lower, unit, top);
  }
}

// Blocks of rows: each takes what the rows above contribute as one product, is factored on the
// diagonal, and solves for the rest of its rows.
template <class T>
bool cholesky_upper(Room& room, const Matrix<T>& a) {
  constexpr int64_t block = 64;
  const int64_t n = a.rows;
  for (int64_t at = 0; at < n; at += block) {
    const int64_t size = std::min(block, n - at), end = at + size;
    {
      const Room::Taken<T> minus(room, size, at);
      const Matrix<T> left = minus.matrix(size, at);
      if (!room.counts())
        kernels<T>().transpose(a.data + at, a.row, at, size, true, left.data, left.row);
      room.multiply(left, a.part(0, at, at, n - at), a.part(at, at, size, n - at), true);
    }
    const Matrix<T> corner = a.part(at, at, size, size);
    if (!room.counts() && !kernels<T>().cholesky(corner.data, a.row, size)) return false;
    const Room::Taken<T> minus(room, size, size);
    const Matrix<T> triangle = minus.matrix(size, size);
    if (!room.counts()) negate_triangle(corner.turned(), true, false, triangle);
    solve_triangle(room, triangle, true, false, a.part(at, end, size, n - end));
  }
  return true;
}

namespace {

template <class T>
void eliminate_columns(Room& room, const Matrix<T>& a, int64_t begin, int64_t end, int64_t* order) {
  const int64_t n = a.rows, width = end - begin;
  if (width <= kPanel) {
    if (!room.counts())
      kernels<T>().eliminate(a.line(begin), a.row, n - begin, begin, width, n, order + begin);
    return;
  }
  const int64_t half = (width / 2 + kPanel - 1) / kPanel * kPanel, middle = begin + half;
  eliminate_columns(room, a, begin, middle, order);
  const Matrix<T> upper = a.part(begin, middle, half, end - middle);
  {
    const Room::Taken<T> minus(room, half, half);
    const Matrix<T> triangle = minus.matrix(half, half);
    if (!room.counts()) negate_triangle(a.part(begin, begin, half, half), true, true, triangle);
    solve_triangle(room, triangle, true, true, upper);
  }
  {
    const Room::Taken<T> minus(room, half, upper.columns);
    const Matrix<T> negated = minus.matrix(half, upper.columns);
    if (!room.counts())
      for (int64_t i = 0; i < half; ++i)
        for (int64_t j = 0; j < upper.columns; ++j) negated(i, j) = -upper(i, j);
    room.multiply(a.part(middle, begin, n - middle, half), negated,
                  a.part(middle, middle, n - middle, upper.columns), true);
  }
  eliminate_columns(room, a, middle, end, order);
}

}  // namespace

template <class T>
void lu_in_place(Room& room, const Matrix<T>& a, int64_t* order) {
  eliminate_columns(room, a, 0, a.rows, order);
}

template <class T>
void lu_solve(Room& room, const Matrix<T>& lu, bool transposed, const Matrix<T>& x) {
  const int64_t n = lu.rows;
  const Room::Taken<T> minus(room, n, n);
  const Matrix<T> triangle = minus.matrix(n, n);
  const Matrix<T> from = transposed ? lu.turned() : lu;
  for (const bool lower : {true, false}) {
    // The unit triangle is l, which the transpose turns into an upper one.
    const bool unit = lower != transposed;
    if (!room.counts()) negate_triangle(from, lower, unit, triangle);
    solve_triangle(room, triangle, lower, unit, x);
  }
}

#define TIDEMARK_INSTANTIATE(T)                                                       \
  template void negate_triangle(const Matrix<T>& from, bool lower, bool unit,         \
                                const Matrix<T>& to);                                 \
  template void solve_triangle(Room& room, const Matrix<T>& t, bool lower, bool unit, \
                               const Matrix<T>& x);                                   \
  template bool cholesky_upper(Room& room, const Matrix<T>& a);                       \
  template void lu_in_place(Room& room, const Matrix<T>& a, int64_t* order);          \
  template void lu_solve(Room& room, const Matrix<T>& lu, bool transposed, const Matrix<T>& x)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

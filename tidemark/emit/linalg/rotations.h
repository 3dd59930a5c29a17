// What eigenvalues and singular values have in common: scales, orders and signs.
#pragma once

#include <cmath>
#include <limits>

#include "tidemark/emit/linalg/room.h"

namespace tidemark::factor {

// The largest magnitude; infinite if an element is not finite.
template <class T>
double largest(const Matrix<T>& a) {
  double most = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      const double size = std::fabs(static_cast<double>(a(i, j)));
      if (!(size <= std::numeric_limits<T>::max())) return std::numeric_limits<double>::infinity();
      most = std::max(most, size);
    }
  }
  return most;
}

// An element beside the diagonal is dropped when it is so small beside those on it: a last digit of
// f64, or a few hundred times less than what rounding to f32 changes.
template <class T>
constexpr double kDropped = sizeof(T) == 4 ? 0x1p-32 : 0x1p-52;

// 1 for sizes whose squares neither overflow nor vanish.
inline double power_of_two_near(double size) {
  if (size == 0 || !std::isfinite(size)) return size == 0 ? 1 : size;
  if (size > 1e-10 && size < 1e10) return 1;
  return std::ldexp(1.0, std::ilogb(size));
}

template <class T>
void divide(const Matrix<T>& a, double scale) {
  if (scale == 1) return;
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j)
      a(i, j) = static_cast<T>(static_cast<double>(a(i, j)) / scale);
}

template <class T>
void fill_nan(T* values, const Matrix<T>& vectors, int64_t count) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < count; ++i) values[i] = nan;
  fill(vectors, nan);
}

// The sign of the element of largest magnitude, the first of several.
template <class T>
T sign_of_largest(const T* x, int64_t count) {
  T most = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  return most < 0 ? T{-1} : T{1};
}

template <class T>
void negate(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = -x[i];
}

template <class T>
void exchange_rows(const Matrix<T>& rows, int64_t a, int64_t b) {
  if (rows.rows > 0) std::swap_ranges(rows.line(a), rows.line(a) + rows.columns, rows.line(b));
}

// Puts values in order, and the rows of two matrices, which may have none, with them.
template <class T>
void order_spectrum(double* values, int64_t count, bool increasing, const Matrix<T>& first,
                    const Matrix<T>& second) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t next = i;
    for (int64_t j = i + 1; j < count; ++j)
      if (increasing ? values[j] < values[next] : values[j] > values[next]) next = j;
    if (next == i) continue;
    std::swap(values[i], values[next]);
    exchange_rows(first, i, next);
    exchange_rows(second, i, next);
  }
}

// Sweeps of rotations of neighbouring rows. Many are collected before they are applied, to a few
// columns at a time, which stay in the cache meanwhile.
template <class T>
class Sweeps {
 public:
  static int64_t elements(int64_t n) { return 2 * kMost * n; }
  // `turns` has elements(n), or, if there are no rows to turn, those of one sweep.
  // Rows reach to the end of a cache line.
  Sweeps(T* turns, int64_t n, const Matrix<T>& rows) : turns_(turns), n_(n), rows_(rows) {
    for (int64_t i = 0; i < rows.rows; ++i)
      std::fill(rows.line(i) + rows.columns, rows.line(i) + rows.row, T{0});
  }

  bool turns() const { return rows_.rows > 0; }
  // Of the sweep that is added next.
  T* cosines() const { return turns_ + 2 * count_ * n_; }
  T* sines() const { return cosines() + n_; }
  // The rotations of row `first` with the next one in this direction, of that with the next, ...
  void add(int64_t first, int64_t direction, int64_t rotations) {
    if (rows_.rows == 0) return;
    list_[count_++] = {first, direction, rotations};
    if (count_ == kMost) flush();
  }
  void flush() {
    constexpr int64_t columns = 32;
    for (int64_t at = 0; at < rows_.columns && count_ > 0; at += columns) {
      for (int64_t i = 0; i < count_; ++i) {
        const Sweep& sweep = list_[i];
        const T* const cosine = turns_ + 2 * i * n_;
        kernels<T>().rotate(rows_.line(sweep.first) + at, sweep.direction * rows_.row,
                            sweep.rotations, cosine, cosine + n_,
                            std::min(columns, rows_.columns - at));
      }
    }
    count_ = 0;
  }

 private:
  static constexpr int64_t kMost = 32;
  struct Sweep {
    int64_t first, direction, rotations;
  };
  T* turns_;
  int64_t n_;
  Matrix<T> rows_;
  Sweep list_[kMost];
  int64_t count_ = 0;
};

}  // namespace tidemark::factor

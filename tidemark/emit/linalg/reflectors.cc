#include <cmath>

#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/linalg/factor.h"

namespace tidemark::factor {

template <>
const Kernels<float>& kernels() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return avx512::kernels_f32;
    case device::Isa::avx2:
      return avx2::kernels_f32;
    case device::Isa::baseline:
      break;
  }
  return baseline::kernels_f32;
}

template <>
const Kernels<double>& kernels() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return avx512::kernels_f64;
    case device::Isa::avx2:
      return avx2::kernels_f64;
    case device::Isa::baseline:
      break;
  }
  return baseline::kernels_f64;
}

namespace {

// The Euclidean norm, without overflow; NaN if there is one.
template <class T>
double length(const T* x, int64_t count) {
  const double squares = kernels<T>().squares(x, count);
  if (squares == 0 ? sizeof(T) == 4 : squares > 1e-280 && squares < 1e300)
    return std::sqrt(squares);
  double most = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double size = std::fabs(static_cast<double>(x[i]));
    if (!(size <= most)) most = size;
  }
  if (most == 0 || !std::isfinite(most)) return most;
  for (int64_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(x[i]) / most;
    sum += part * part;
  }
  return most * std::sqrt(sum);
}

// Denormals have few digits: a vector of some would not fit its length. Elements below this are
// scaled first.
template <class T>
constexpr double kSmall = sizeof(T) == 4 ? 0x1p-96 : 0x1p-960;

}  // namespace

template <class T>
Reflector<T> reflect(T* x, int64_t count) {
  const double alpha = static_cast<double>(x[0]), rest = length(x + 1, count - 1);
  const double norm = std::hypot(alpha, rest);
  if (rest != 0 && norm < kSmall<T>) {
    kernels<T>().scale(static_cast<T>(1 / kSmall<T>), x, count);
    const Reflector<T> made = reflect(x, count);
    return {made.tau, made.beta * static_cast<T>(kSmall<T>)};
  }
  x[0] = 1;
  if (rest == 0) return {0, static_cast<T>(alpha)};
  const double beta = alpha >= 0 ? -norm : norm;
  kernels<T>().scale(static_cast<T>(1 / (alpha - beta)), x + 1, count - 1);
  return {static_cast<T>((beta - alpha) / beta), static_cast<T>(beta)};
}

// H0 H1 ... = I - V^T t V with an upper triangular t, the inverse of which is known: beside its
// diagonal it has the products of the vectors with one another, and on it 1 / tau. So t times
// something is a solution, and t itself is not needed.
template <class T>
void apply_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool transposed,
                      const Matrix<T>& c) {
  const int64_t count = v.rows;
  if (count == 0 || c.columns == 0) return;
  const Room::Taken<T> products(room, count, count), projections(room, count, c.columns);
  const Matrix<T> inverse = products.matrix(count, count);
  const Matrix<T> w = projections.matrix(count, c.columns);
  room.multiply(v, v.turned(), inverse);
  room.multiply(v, c, w);
  if (!room.counts()) {
    for (int64_t j = 0; j < count; ++j) {
      if (tau[j] == 0) {  // No reflection: nothing is taken off along this vector.
        fill(inverse.part(j, 0, 1, count), T{0});
        fill(w.part(j, 0, 1, c.columns), T{0});
      }
      inverse(j, j) = tau[j] == 0 ? 1 : -1 / tau[j];
    }
  }
  // Columns to the end of a cache line cost nothing.
  constexpr int64_t line = 64 / sizeof(T);
  const Matrix<T> whole{w.data, count, (c.columns + line - 1) / line * line, w.row};
  if (!room.counts()) fill(whole.part(0, c.columns, count, whole.columns - c.columns), T{0});
  solve_triangle(room, inverse, transposed, false, whole);
  room.multiply(v.turned(), w, c, true);
}

template <class T>
void apply_all_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool fresh,
                          const Matrix<T>& c) {
  constexpr int64_t block = 64;
  for (int64_t at = (v.rows - 1) / block * block; at >= 0 && v.rows > 0; at -= block) {
    const int64_t size = std::min(block, v.rows - at), from = fresh ? at : 0;
    apply_reflectors(room, v.part(at, at, size, v.columns - at), tau + at, false,
                     c.part(at, from, c.rows - at, c.columns - from));
  }
}

namespace {

// A few columns: as rows of v, in which they lie together. The first is that of a whole number of
// cache lines.
template <class T>
void reflect_panel(const Matrix<T>& a, int64_t begin, int64_t end, const Matrix<T>& v, T* tau) {
  constexpr int64_t line = 64 / sizeof(T);
  const int64_t rows = a.rows - begin;
  kernels<T>().transpose(a.line(begin) + begin, a.row, rows, end - begin, false,
                         v.line(begin) + begin, v.row);
  for (int64_t j = begin; j < end; ++j) std::fill(v.line(j) + a.rows, v.line(j) + v.row, T{0});
  for (int64_t j = begin; j < end; ++j) {
    T* const own = v.line(j);
    const Reflector<T> made = reflect(own + j, a.rows - j);
    tau[j] = made.tau;
    for (int64_t i = begin; i < j; ++i) a(i, j) = own[i];
    a(j, j) = made.beta;
    for (int64_t i = 0; i < j; ++i) own[i] = 0;
    const int64_t from = j / line * line;
    kernels<T>().reflect_rows(own + from, made.tau, v.line(j + 1) + from, v.row, end - j - 1,
                              a.rows - from);
  }
}

template <class T>
void reflect_columns(Room& room, const Matrix<T>& a, int64_t begin, int64_t end, const Matrix<T>& v,
                     T* tau) {
  constexpr int64_t panel = 16;
  if (end - begin <= panel) {
    if (!room.counts()) reflect_panel(a, begin, end, v, tau);
    return;
  }
  const int64_t middle = begin + ((end - begin) / 2 + panel - 1) / panel * panel;
  reflect_columns(room, a, begin, middle, v, tau);
  apply_reflectors(room, v.part(begin, begin, middle - begin, a.rows - begin), tau + begin, true,
                   a.part(begin, middle, a.rows - begin, end - middle));
  reflect_columns(room, a, middle, end, v, tau);
}

}  // namespace

template <class T>
void qr_reflectors(Room& room, const Matrix<T>& a, const Matrix<T>& v, T* tau) {
  constexpr int64_t block = 64;
  const int64_t count = std::min(a.rows, a.columns);
  for (int64_t at = 0; at < count; at += block) {
    const int64_t end = std::min(at + block, count);
    reflect_columns(room, a, at, end, v, tau);
    apply_reflectors(room, v.part(at, at, end - at, a.rows - at), tau + at, true,
                     a.part(at, end, a.rows - at, a.columns - end));
  }
}

#define TIDEMARK_INSTANTIATE(T)                                                                 \
  template Reflector<T> reflect(T* x, int64_t count);                                           \
  template void apply_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool transposed, \
                                 const Matrix<T>& c);                                           \
  template void apply_all_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool fresh,  \
                                     const Matrix<T>& c);                                       \
  template void qr_reflectors(Room& room, const Matrix<T>& a, const Matrix<T>& v, T* tau)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

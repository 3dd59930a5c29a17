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
  double most = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double size = std::fabs(static_cast<double>(x[i]));
    if (!(size <= most)) most = size;
    sum += size * size;
  }
  if (sizeof(T) == 4 || most == 0 || (most > 1e-140 && most < 1e140)) return std::sqrt(sum);
  if (!std::isfinite(most)) return most;
  sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(x[i]) / most;
    sum += part * part;
  }
  return most * std::sqrt(sum);
}

}  // namespace

template <class T>
Reflector<T> reflect(T* x, int64_t count) {
  const T alpha = x[0];
  const double rest = length(x + 1, count - 1);
  x[0] = 1;
  if (rest == 0) return {0, alpha};
  const double norm = std::hypot(static_cast<double>(alpha), rest);
  const double beta = alpha >= 0 ? -norm : norm;
  const T scale = static_cast<T>(static_cast<double>(alpha) - beta);
  for (int64_t i = 1; i < count; ++i) x[i] /= scale;
  return {static_cast<T>((beta - static_cast<double>(alpha)) / beta), static_cast<T>(beta)};
}

// H0 H1 ... = I - V t V^T with an upper triangular t, whose columns follow from the products of the
// vectors with one another.
template <class T>
void apply_reflectors(Room& room, const Matrix<T>& v, const T* tau, bool transposed,
                      const Matrix<T>& c) {
  const int64_t count = v.rows;
  if (count == 0 || c.columns == 0) return;
  const Room::Taken<T> products(room, count, count), triangle(room, count, count),
      first(room, count, c.columns), second(room, count, c.columns);
  const Matrix<T> g = products.matrix(count, count), t = triangle.matrix(count, count);
  const Matrix<T> w = first.matrix(count, c.columns), tw = second.matrix(count, c.columns);
  room.multiply(v, v.turned(), g);
  if (!room.counts()) {
    fill(t, T{0});
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i < j; ++i) {
        T sum = 0;
        for (int64_t k = i; k < j; ++k) sum += t(i, k) * g(k, j);
        t(i, j) = -tau[j] * sum;
      }
      t(j, j) = -tau[j];
    }
  }
  room.multiply(v, c, w);
  room.multiply(transposed ? t.turned() : t, w, tw);
  room.multiply(v.turned(), tw, c, true);
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

// A few columns: as rows of v, in which they lie together.
template <class T>
void reflect_panel(const Matrix<T>& a, int64_t begin, int64_t end, const Matrix<T>& v, T* tau) {
  const int64_t rows = a.rows - begin;
  kernels<T>().transpose(a.line(begin) + begin, a.row, rows, end - begin, false,
                         v.line(begin) + begin, v.row);
  for (int64_t j = begin; j < end; ++j) {
    T* const own = v.line(j);
    const Reflector<T> made = reflect(own + j, a.rows - j);
    tau[j] = made.tau;
    for (int64_t i = begin; i < j; ++i) a(i, j) = own[i];
    a(j, j) = made.beta;
    for (int64_t i = 0; i < j; ++i) own[i] = 0;
    for (int64_t other = j + 1; other < end; ++other) {
      T* const column = v.line(other) + j;
      const T product = kernels<T>().dot(own + j, column, a.rows - j);
      kernels<T>().add_scaled(-tau[j] * product, own + j, column, a.rows - j);
    }
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

// The exponential of a matrix: a quotient of polynomials of the matrix divided by a power of two,
// squared as often (Higham, The scaling and squaring method for the matrix exponential revisited,
// 2005). The bounds say up to which norm a degree is exact.
#include <cmath>
#include <limits>

#include "tidemark/emit/linalg/factor.h"

namespace tidemark::factor {
namespace {

struct Degree {
  int degree;
  double bound;
};
constexpr Degree kDegreesF32[] = {
    {3, 4.258730016922831e-1}, {5, 1.880152677804762}, {7, 3.925724783138660}};
constexpr Degree kDegreesF64[] = {{3, 1.495585217958292e-2},
                                  {5, 2.539398330063230e-1},
                                  {7, 9.504178996162932e-1},
                                  {9, 2.097847961257068},
                                  {13, 5.371920351148152}};

// The coefficient of x^k of the numerator, relative to that of the highest power.
double coefficient(int degree, int k) {
  double value = 1;
  for (int i = degree; i > k; --i)
    value *= static_cast<double>(2 * degree - i + 1) * i / static_cast<double>(degree - i + 1);
  return value;
}

template <class T>
double column_norm(const Matrix<T>& a) {
  double most = 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < a.rows; ++i) sum += std::fabs(static_cast<double>(a(i, j)));
    if (!(sum <= most)) most = sum;
  }
  return most;
}

template <class T>
void add_multiple(double factor, const Matrix<T>& x, const Matrix<T>& y) {
  for (int64_t i = 0; i < x.rows; ++i)
    kernels<T>().add_scaled(static_cast<T>(factor), x.line(i), y.line(i), x.columns);
}

template <class T>
void add_identity(double factor, const Matrix<T>& y) {
  for (int64_t i = 0; i < y.rows; ++i) y(i, i) += static_cast<T>(factor);
}

template <class T>
struct Workings {
  Matrix<T> scaled, second, fourth, sixth, odd, even, spare;
};

// The odd and the even powers of the numerator; the denominator has the former negated.
template <class T>
void numerator(Room& room, int degree, const Workings<T>& w) {
  const auto c = [&](int k) { return coefficient(degree, k); };
  const bool runs = !room.counts();
  room.multiply(w.scaled, w.scaled, w.second);
  room.multiply(w.second, w.second, w.fourth);
  room.multiply(w.second, w.fourth, w.sixth);
  if (runs) {
    fill(w.even, T{0});
    fill(w.spare, T{0});
  }
  if (degree == 13 || !runs) {
    if (runs) {
      add_multiple(c(8), w.second, w.spare);
      add_multiple(c(10), w.fourth, w.spare);
      add_multiple(c(12), w.sixth, w.spare);
    }
    room.multiply(w.sixth, w.spare, w.even);
    if (runs) {
      fill(w.odd, T{0});
      add_multiple(c(9), w.second, w.odd);
      add_multiple(c(11), w.fourth, w.odd);
      add_multiple(c(13), w.sixth, w.odd);
    }
    room.multiply(w.sixth, w.odd, w.spare);
  }
  if (degree == 9 || !runs) {
    room.multiply(w.fourth, w.fourth, w.odd);
    if (runs) {
      add_multiple(c(8), w.odd, w.even);
      add_multiple(c(9), w.odd, w.spare);
    }
  }
  if (runs) {
    const Matrix<T> powers[] = {w.second, w.fourth, w.sixth};
    for (int k = 1; k <= 3 && 2 * k < degree; ++k) {
      add_multiple(c(2 * k), powers[k - 1], w.even);
      add_multiple(c(2 * k + 1), powers[k - 1], w.spare);
    }
    add_identity(c(0), w.even);
    add_identity(c(1), w.spare);
  }
  room.multiply(w.scaled, w.spare, w.odd);
}

}  // namespace

template <class T>
void expm(Room& room, const Matrix<T>& a, const Matrix<T>& result) {
  const int64_t n = a.rows;
  if (n == 0) return;
  constexpr bool narrow = sizeof(T) == 4;
  const Degree* const degrees = narrow ? kDegreesF32 : kDegreesF64;
  const int count = narrow ? 3 : 5;
  const Room::Taken<T> all(room, 7 * n, n);
  const Room::Taken<int64_t> orders(room, n);
  const auto matrix = [&](int64_t i) { return all.matrix(7 * n, n).part(i * n, 0, n, n); };
  const Workings<T> w{matrix(0), matrix(1), matrix(2), matrix(3), matrix(4), matrix(5), matrix(6)};
  int chosen = 0, squarings = 0;
  if (!room.counts()) {
    const double norm = column_norm(a);
    if (!std::isfinite(norm)) return fill(result, std::numeric_limits<T>::quiet_NaN());
    while (chosen + 1 < count && norm > degrees[chosen].bound) ++chosen;
    if (norm > degrees[chosen].bound)
      squarings = static_cast<int>(std::ceil(std::log2(norm / degrees[chosen].bound)));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        w.scaled(i, j) = static_cast<T>(std::ldexp(static_cast<double>(a(i, j)), -squarings));
  }
  numerator(room, degrees[chosen].degree, w);
  if (!room.counts()) {
    // The denominator takes the memory of the powers.
    copy(w.even, w.second);
    add_multiple(-1, w.odd, w.second);
    add_multiple(1, w.odd, w.even);
    for (int64_t i = 0; i < n; ++i) orders.data()[i] = i;
  }
  lu_in_place(room, w.second, orders.data());
  Matrix<T> now = w.fourth, next = w.sixth;
  if (!room.counts())
    for (int64_t i = 0; i < n; ++i)
      std::copy(w.even.line(orders.data()[i]), w.even.line(orders.data()[i]) + n, now.line(i));
  lu_solve(room, w.second, false, now);
  for (int i = 0; i < squarings; ++i, std::swap(now, next)) room.multiply(now, now, next);
  if (!room.counts()) copy(now, result);
}

#define TIDEMARK_INSTANTIATE(T) \
  template void expm(Room& room, const Matrix<T>& a, const Matrix<T>& result)
TIDEMARK_FOR_FLOATS(TIDEMARK_INSTANTIATE);

}  // namespace tidemark::factor

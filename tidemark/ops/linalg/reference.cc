// The reference of linear algebra: textbook loops in long double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "tidemark/ops/linalg.h"
#include "tidemark/ops/reference.h"

namespace tidemark::ops::rule {
namespace {

using Real = long double;

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Real> elements;
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  Real& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(i * columns + j)]; }
  Real operator()(int64_t i, int64_t j) const {
    return elements[static_cast<size_t>(i * columns + j)];
  }
};

Matrix identity(int64_t n) {
  Matrix made(n, n);
  for (int64_t i = 0; i < n; ++i) made(i, i) = 1;
  return made;
}

Matrix turned(const Matrix& x) {
  Matrix made(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j) made(j, i) = x(i, j);
  return made;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix made(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) made(i, j) += a(i, k) * b(k, j);
  return made;
}

Matrix symmetric(const Matrix& x) {
  Matrix made(x.rows, x.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.rows; ++j) made(i, j) = (x(i, j) + x(j, i)) / 2;
  return made;
}

Matrix read(const ArrayRef& array, int64_t entry) {
  Matrix made(array.shape[-2], array.shape[-1]);
  const auto count = static_cast<int64_t>(made.elements.size());
  for (int64_t i = 0; i < count; ++i)
    made.elements[static_cast<size_t>(i)] = reference::read_float(array, entry * count + i);
  return made;
}

void write(const ArrayRef& array, int64_t entry, const std::vector<Real>& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  for (int64_t i = 0; i < count; ++i)
    reference::write(array, entry * count + i, elements[static_cast<size_t>(i)]);
}

void for_each_entry(const ReferenceContext& context,
                    const std::function<void(int64_t entry, const Matrix& a)>& f) {
  const ArrayRef& a = context.operands[0];
  int64_t count = 1;
  for (int64_t i = 0; i + 2 < a.rank(); ++i) count *= a.shape[i];
  for (int64_t entry = 0; entry < count; ++entry) f(entry, read(a, entry));
}

// Rows in the order that elimination chooses, which `order` takes part in.
void eliminate(Matrix& a, std::vector<int64_t>& order) {
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < a.rows; ++i)
      if (std::fabs(a(i, k)) > std::fabs(a(best, k))) best = i;
    for (int64_t j = 0; j < a.rows; ++j) std::swap(a(k, j), a(best, j));
    std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(best)]);
    for (int64_t i = k + 1; i < a.rows && a(k, k) != 0; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.rows; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
}

void substitute(const Matrix& a, bool lower, bool unit, Matrix& x) {
  for (int64_t step = 0; step < a.rows; ++step) {
    const int64_t i = lower ? step : a.rows - 1 - step;
    for (int64_t c = 0; c < x.columns; ++c) {
      for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : a.rows); ++j)
        x(i, c) -= a(i, j) * x(j, c);
      if (!unit) x(i, c) /= a(i, i);
    }
  }
}

Matrix solved(Matrix a, const Matrix& b) {
  std::vector<int64_t> order(static_cast<size_t>(a.rows));
  std::iota(order.begin(), order.end(), 0);
  eliminate(a, order);
  Matrix x(b.rows, b.columns);
  for (int64_t i = 0; i < b.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j) x(i, j) = b(order[static_cast<size_t>(i)], j);
  substitute(a, true, true, x);
  substitute(a, false, false, x);
  return x;
}

// Columns i and j turned by an angle.
void rotate(Matrix& x, int64_t i, int64_t j, Real c, Real s) {
  for (int64_t k = 0; k < x.rows; ++k) {
    const Real a = x(k, i), b = x(k, j);
    x(k, i) = c * a - s * b;
    x(k, j) = s * a + c * b;
  }
}

// The columns of x in the order of values, and of y with them.
void order_columns(std::vector<Real>& values, bool increasing, Matrix& x, Matrix& y) {
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t next = i;
    const auto at = [&](int64_t k) { return values[static_cast<size_t>(k)]; };
    for (int64_t j = i + 1; j < count; ++j)
      if (increasing ? at(j) < at(next) : at(j) > at(next)) next = j;
    std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(next)]);
    for (int64_t k = 0; k < x.rows; ++k) std::swap(x(k, i), x(k, next));
    for (int64_t k = 0; k < y.rows; ++k) std::swap(y(k, i), y(k, next));
  }
}

bool largest_is_negative(const Matrix& x, int64_t column) {
  Real most = 0;
  for (int64_t k = 0; k < x.rows; ++k)
    if (std::fabs(x(k, column)) > std::fabs(most)) most = x(k, column);
  return most < 0;
}

void negate(Matrix& x, int64_t column) {
  for (int64_t k = 0; k < x.rows; ++k) x(k, column) = -x(k, column);
}

bool is_finite(const Matrix& x) {
  return std::all_of(x.elements.begin(), x.elements.end(),
                     [](Real each) { return std::isfinite(each); });
}

struct Svd {
  Matrix u, v;
  std::vector<Real> values;
};

// Rotations that make the columns of a matrix orthogonal to each other (Jacobi).
Svd svd_of(const Matrix& x) {
  const bool wide = x.rows < x.columns;
  Matrix u = wide ? turned(x) : x;
  Matrix v = identity(u.columns);
  std::vector<Real> values(static_cast<size_t>(u.columns));
  if (!is_finite(x)) {
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    for (auto* list : {&u.elements, &v.elements, &values})
      std::fill(list->begin(), list->end(), nan);
    return {u, v, values};
  }
  for (bool turns = true; turns;) {
    turns = false;
    for (int64_t i = 0; i < u.columns; ++i) {
      for (int64_t j = i + 1; j < u.columns; ++j) {
        Real aa = 0, bb = 0, ab = 0;
        for (int64_t k = 0; k < u.rows; ++k) {
          aa += u(k, i) * u(k, i);
          bb += u(k, j) * u(k, j);
          ab += u(k, i) * u(k, j);
        }
        if (std::fabs(ab) <= 1e-18L * std::sqrt(aa * bb)) continue;
        turns = true;
        const Real zeta = (bb - aa) / (2 * ab);
        const Real t = (zeta < 0 ? -1 : 1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
        const Real c = 1 / std::sqrt(1 + t * t);
        rotate(u, i, j, c, c * t);
        rotate(v, i, j, c, c * t);
      }
    }
  }
  for (int64_t i = 0; i < u.columns; ++i) {
    Real length = 0;
    for (int64_t k = 0; k < u.rows; ++k) length += u(k, i) * u(k, i);
    values[static_cast<size_t>(i)] = std::sqrt(length);
    for (int64_t k = 0; k < u.rows; ++k) u(k, i) /= std::sqrt(length);
  }
  order_columns(values, false, u, v);
  for (int64_t i = 0; i < u.columns; ++i) {
    if (!largest_is_negative(wide ? u : v, i)) continue;
    negate(u, i);
    negate(v, i);
  }
  return wide ? Svd{v, u, values} : Svd{u, v, values};
}

}  // namespace

void reference_cholesky(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, const Matrix& given) {
    const Matrix a = symmetric(given);
    Matrix l(a.rows, a.rows);
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        Real rest = a(i, j);
        for (int64_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
        l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
      }
    }
    const Real last = a.rows == 0 ? 0 : l(a.rows - 1, a.rows - 1);
    const bool is_positive = a.rows == 0 || last > 0;  // NaN once a pivot was not.
    for (int64_t i = 0; i < a.rows && !is_positive; ++i)
      for (int64_t j = 0; j <= i; ++j) l(i, j) = std::numeric_limits<Real>::quiet_NaN();
    write(context.result, entry, l.elements);
  });
}

void reference_solve_triangular(const ReferenceContext& context) {
  Attrs::Reader attrs = context.attrs.read();
  const bool lower = attrs.boolean(), transposed = attrs.boolean(), unit = attrs.boolean();
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    Matrix x = read(context.operands[1], entry);
    substitute(transposed ? turned(a) : a, lower != transposed, unit, x);
    write(context.result, entry, x.elements);
  });
}

void reference_solve(const ReferenceContext& context) {
  const bool transposed = context.attrs.read().boolean();
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    const Matrix b = read(context.operands[1], entry);
    write(context.result, entry, solved(transposed ? turned(a) : a, b).elements);
  });
}

void reference_lu(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, Matrix a) {
    std::vector<int64_t> order(static_cast<size_t>(a.rows));
    std::iota(order.begin(), order.end(), 0);
    eliminate(a, order);
    write(context.results[0], entry, a.elements);
    for (int64_t i = 0; i < a.rows; ++i)
      reference::write(context.results[1], entry * a.rows + i, order[static_cast<size_t>(i)]);
  });
}

// One reflector after another, each applied to all that there is.
void reference_qr(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    Matrix r = a, q = identity(a.rows);
    for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
      std::vector<Real> v(static_cast<size_t>(a.rows));
      Real below = 0;
      for (int64_t i = k; i < a.rows; ++i) v[static_cast<size_t>(i)] = r(i, k);
      for (int64_t i = k + 1; i < a.rows; ++i) below += r(i, k) * r(i, k);
      const Real norm = std::sqrt(r(k, k) * r(k, k) + below);
      if (below != 0) {
        v[static_cast<size_t>(k)] += r(k, k) < 0 ? -norm : norm;
        Real length = 0;
        for (const Real each : v) length += each * each;
        Matrix h = identity(a.rows);
        for (int64_t i = 0; i < a.rows; ++i)
          for (int64_t j = 0; j < a.rows; ++j)
            h(i, j) -= 2 * v[static_cast<size_t>(i)] * v[static_cast<size_t>(j)] / length;
        r = product(h, r);
        q = product(q, h);
      }
      if (r(k, k) >= 0) continue;
      for (int64_t j = 0; j < a.columns; ++j) r(k, j) = -r(k, j);
      negate(q, k);
    }
    const int64_t kept = context.results[0].shape[-1];
    Matrix first(a.rows, kept), upper(kept, a.columns);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < kept; ++j) first(i, j) = q(i, j);
    for (int64_t i = 0; i < kept; ++i)
      for (int64_t j = i; j < a.columns; ++j) upper(i, j) = r(i, j);
    write(context.results[0], entry, first.elements);
    write(context.results[1], entry, upper.elements);
  });
}

// Rotations, each of which makes one pair of elements zero (Jacobi).
void reference_eigh(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, const Matrix& given) {
    Matrix a = symmetric(given), v = identity(a.rows);
    Real size = 0;
    for (const Real each : a.elements) size += std::fabs(each);
    for (bool turns = is_finite(a); turns;) {
      turns = false;
      for (int64_t i = 0; i < a.rows; ++i) {
        for (int64_t j = i + 1; j < a.rows; ++j) {
          if (std::fabs(a(i, j)) <= 1e-20L * size) continue;
          turns = true;
          const Real theta = (a(j, j) - a(i, i)) / (2 * a(i, j));
          const Real t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(1 + theta * theta));
          const Real c = 1 / std::sqrt(1 + t * t);
          rotate(a, i, j, c, c * t);
          a = turned(a);
          rotate(a, i, j, c, c * t);
          a(i, j) = a(j, i) = 0;
          rotate(v, i, j, c, c * t);
        }
      }
    }
    std::vector<Real> values;
    for (int64_t i = 0; i < a.rows; ++i) values.push_back(a(i, i));
    if (!is_finite(a)) {
      std::fill(values.begin(), values.end(), std::numeric_limits<Real>::quiet_NaN());
      std::fill(v.elements.begin(), v.elements.end(), std::numeric_limits<Real>::quiet_NaN());
    }
    Matrix none(0, a.rows);
    order_columns(values, true, v, none);
    for (int64_t i = 0; i < a.rows; ++i)
      if (largest_is_negative(v, i)) negate(v, i);
    write(context.results[0], entry, values);
    write(context.results[1], entry, v.elements);
  });
}

void reference_svd(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    const Svd made = svd_of(a);
    write(context.results[0], entry, made.u.elements);
    write(context.results[1], entry, made.values);
    write(context.results[2], entry, turned(made.v).elements);
  });
}

void reference_pinv(const ReferenceContext& context) {
  const Real rtol = pinv_cutoff(context.operands[0].shape, context.operands[0].dtype,
                                context.attrs.read().number());
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    const Svd made = svd_of(a);
    Matrix scaled = made.v;
    for (size_t i = 0; i < made.values.size(); ++i)
      for (int64_t k = 0; k < scaled.rows; ++k) {
        Real& element = scaled(k, static_cast<int64_t>(i));
        element = made.values[i] <= rtol * made.values[0] ? 0 : element / made.values[i];
      }
    write(context.result, entry, product(scaled, turned(made.u)).elements);
  });
}

// The series of a matrix halved until it is small, squared as often.
void reference_expm(const ReferenceContext& context) {
  for_each_entry(context, [&](int64_t entry, const Matrix& a) {
    Real size = 0;
    for (const Real each : a.elements) size += std::fabs(each);
    if (!std::isfinite(size)) {
      write(context.result, entry,
            std::vector<Real>(a.elements.size(), std::numeric_limits<Real>::quiet_NaN()));
      return;
    }
    int halvings = 0;
    for (; size > 0.5L; size /= 2) ++halvings;
    Matrix x = a, power = identity(a.rows), sum = identity(a.rows);
    for (Real& each : x.elements) each = std::ldexp(each, -halvings);
    for (int k = 1; k < 30; ++k) {
      power = product(power, x);
      for (size_t i = 0; i < sum.elements.size(); ++i) {
        power.elements[i] /= k;
        sum.elements[i] += power.elements[i];
      }
    }
    for (int k = 0; k < halvings; ++k) sum = product(sum, sum);
    write(context.result, entry, sum.elements);
  });
}

}  // namespace tidemark::ops::rule

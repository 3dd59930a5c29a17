#include "tidemark/nn/initializers.h"

#include <cmath>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark::nn::initializers {
namespace {

struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const Shape& shape) {
  if (shape.rank() == 0) return {};
  const double last = static_cast<double>(int64_t{shape[-1]});
  if (shape.rank() == 1) return {last, last};
  double window = 1;
  for (int64_t axis = 0; axis < shape.rank() - 2; ++axis)
    window *= static_cast<double>(int64_t{shape[axis]});
  return {window * static_cast<double>(int64_t{shape[-2]}), window * last};
}

// A layer without inputs has no elements, and the limit would divide by 0.
double ratio(double above, double below) { return std::sqrt(above / std::max(below, 1.0)); }

Tensor drawn_within(const Shape& shape, DType dtype, double limit) {
  return random::uniform(shape, {.low = -limit, .high = limit, .dtype = dtype});
}
Tensor drawn_normal(const Shape& shape, DType dtype, double stddev) {
  return random::normal(shape, {.stddev = stddev, .dtype = dtype});
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Orthonormalises the vectors in `all` by Gram-Schmidt, with a second pass for each to remove
// rounding errors.
void make_orthonormal(std::vector<double>& all, int64_t vectors, int64_t length) {
  for (int64_t i = 0; i < vectors; ++i) {
    double* const mine = all.data() + i * length;
    for (int64_t pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* const other = all.data() + j * length;
        const double shared = dot(mine, other, length);
        for (int64_t k = 0; k < length; ++k) mine[k] -= shared * other[k];
      }
    }
    const double norm = std::sqrt(dot(mine, mine, length));
    for (int64_t k = 0; k < length; ++k) mine[k] /= norm;
  }
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype) { return tidemark::zeros(shape, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return tidemark::ones(shape, dtype); }

Initializer constant(double value) {
  return [value](const Shape& shape, DType dtype) { return full(shape, value, dtype); };
}
Initializer normal(double stddev) {
  return [stddev](const Shape& shape, DType dtype) { return drawn_normal(shape, dtype, stddev); };
}
Initializer uniform(double low, double high) {
  return [low, high](const Shape& shape, DType dtype) {
    return random::uniform(shape, {.low = low, .high = high, .dtype = dtype});
  };
}

Tensor glorot_uniform(const Shape& shape, DType dtype) {
  const Fans fans = fans_of(shape);
  return drawn_within(shape, dtype, ratio(6, fans.in + fans.out));
}
Tensor glorot_normal(const Shape& shape, DType dtype) {
  const Fans fans = fans_of(shape);
  return drawn_normal(shape, dtype, ratio(2, fans.in + fans.out));
}
Tensor he_uniform(const Shape& shape, DType dtype) {
  return drawn_within(shape, dtype, ratio(6, fans_of(shape).in));
}
Tensor he_normal(const Shape& shape, DType dtype) {
  return drawn_normal(shape, dtype, ratio(2, fans_of(shape).in));
}

Tensor orthogonal(const Shape& shape, DType dtype) {
  const int64_t columns = shape.rank() == 0 ? 1 : int64_t{shape[-1]};
  const int64_t rows = columns == 0 ? 0 : shape.size() / columns;
  const bool wide = columns > rows;
  const int64_t vectors = wide ? rows : columns, length = wide ? columns : rows;
  std::vector<double> all =
      random::normal({vectors, length}, {.dtype = DType::f64}).to_vector<double>();
  make_orthonormal(all, vectors, length);
  const Tensor basis = tidemark::constant(all, {vectors, length});
  return cast(reshape(wide ? basis : transpose(basis), shape), dtype);
}

}  // namespace tidemark::nn::initializers

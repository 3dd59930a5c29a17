#include "tidemark/ops/fourier.h"

#include <cmath>
#include <numbers>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/types/size.h"

namespace tidemark::ops::rule {

TensorType infer_fourier(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::span<const int64_t> axes = context.attrs.read().integers();
  const int64_t last = x.shape.rank() - 1;
  const bool is_complex = axes.size() == 2 && axes[1] == last && x.shape[last] == 2;
  if (!is_complex || (x.dtype != DType::f32 && x.dtype != DType::f64))
    throw UserError(cat("fourier: takes pairs of f32 or f64 on the last axis, got ", x), context.at,
                    "stack real and imaginary parts: td::stack({re, im}, -1)");
  if (!is_less(0, x.shape[axes[0]]))
    throw UserError(cat("fourier: ", x, " has no elements along axis ", axes[0]), context.at,
                    "a transform has at least one element");
  return x;
}

// The matrix is symmetric, so that its adjoint is its conjugate: the transform in the other
// direction.
Term grad_fourier(const GradContext& context, int) {
  Attrs::Reader read = context.attrs.read();
  const AxisList axes(read.integers());
  const bool inverse = read.boolean();
  return fourier.apply({context.g}, Attrs().add(axes).add(!inverse).add(read.number()));
}

void reference_fourier(const ReferenceContext& context) {
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integers()[0];
  const long double turn = (read.boolean() ? 2 : -2) * std::numbers::pi_v<long double>;
  const double scale = read.number();
  const ArrayRef& x = context.operands[0];
  const int64_t count = x.shape[axis];
  const int64_t stride = contiguous_strides(x.shape)[static_cast<size_t>(axis)];
  reference::for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    if (index.back() != 0) return;
    const int64_t k = index[static_cast<size_t>(axis)];
    long double re = 0, im = 0;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = i + (j - k) * stride;
      const long double angle = turn * static_cast<long double>(j * k % count) / count;
      const long double a = reference::read_float(x, at), b = reference::read_float(x, at + 1);
      re += a * std::cos(angle) - b * std::sin(angle);
      im += a * std::sin(angle) + b * std::cos(angle);
    }
    reference::write(context.result, i, re * scale);
    reference::write(context.result, i + 1, im * scale);
  });
}

}  // namespace tidemark::ops::rule

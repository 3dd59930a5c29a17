#include "tidemark/calls/complex_matrices.h"

#include <vector>

#include "tidemark/calls/complex.h"
#include "tidemark/calls/create.h"

namespace tidemark::detail {
namespace {

Tensor last_two_swapped(const Tensor& x) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

// The last sizes of `x` replaced by others.
Shape with_last(const Tensor& x, int64_t count, std::initializer_list<Dim> sizes) {
  Shape shape;
  for (int64_t i = 0; i < x.rank() - count; ++i) shape.push_back(x.shape()[i]);
  for (const Dim size : sizes) shape.push_back(size);
  return shape;
}

}  // namespace

Tensor as_reals(const Tensor& z) {
  const Tensor pairs = view_as_real(z);
  const Tensor upper = pairs * constant({1, -1}, pairs.dtype()), lower = flip(pairs, -1);
  const Dim rows = z.shape()[-2], columns = z.shape()[-1];
  return reshape(stack({upper, lower}, -3), with_last(z, 2, {rows * 2, columns * 2}));
}

Tensor as_real_columns(const Tensor& z) {
  const Dim rows = z.shape()[-2], columns = z.shape()[-1];
  return reshape(last_two_swapped(view_as_real(z)), with_last(z, 2, {rows * 2, columns}));
}

Tensor from_real_columns(const Tensor& x) {
  const Dim rows = x.shape()[-2], columns = x.shape()[-1];
  return view_as_complex(last_two_swapped(reshape(x, with_last(x, 2, {rows / 2, 2, columns}))));
}

Tensor from_reals(const Tensor& x) {
  const Tensor blocks = reshape(x, with_last(x, 1, {x.shape()[-1] / 2, 2}));
  return from_real_columns(blocks[{ellipsis, 0}]);
}

}  // namespace tidemark::detail

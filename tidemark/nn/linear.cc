#include "tidemark/nn/linear.h"

#include "tidemark/api/ops.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::detail {

Dim build_kernel(const Variable& kernel, const Tensor& x, int64_t units, LayerTitle layer,
                 Source at) {
  if (x.rank() == 0)
    refuse(layer.kind, layer.name, "the input is a scalar, without an axis of features",
           "give it [..., features]: td::reshape(x, {1, 1})", at);
  const Dim features = x.shape()[-1];
  if (!kernel.has_shape()) kernel.set_shape({features, units}, at);
  const Shape& shape = kernel.shape(at);
  if (shape.rank() != 2 || shape[1] != units)
    refuse(layer.kind, layer.name,
           cat("its kernel is ", shape, ", expected [features, ", units, "]"),
           "it holds the value of another layer: assign or load one of this shape", at);
  const Dim built = shape[0];
  if (built != features)
    refuse(layer.kind, layer.name, cat("built for ", built, " features, got ", features),
           "a layer keeps the size of its first input: make another for inputs of this size", at);
  return features;
}

void build_vector(const std::optional<Variable>& vector, const Dim& size, Source at) {
  if (vector && !vector->has_shape()) vector->set_shape({size}, at);
}

// The axes before the last are merged until the end, so that bias and activation work in place and
// the gradient by the kernel is one product instead of one for each outer index.
Tensor linear(const Tensor& x, const Variable& kernel, const std::optional<Variable>& bias,
              const nn::Activation& activation, Source at) {
  const bool is_flat = x.rank() <= 2;
  Dim rows = 1;
  for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) rows = rows * x.shape()[axis];
  Tensor y = matmul(is_flat ? x : reshape(x, {rows, x.shape()[-1]}), kernel);
  if (bias) y = std::move(y) + *bias;
  if (activation.is_by_row()) y = activation(y, at);
  if (!is_flat) {
    Shape shape = x.shape();
    shape.set(shape.rank() - 1, kernel.shape()[1]);
    y = reshape(y, shape);
  }
  return activation.is_by_row() ? y : activation(y, at);
}

}  // namespace tidemark::detail

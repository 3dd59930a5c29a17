#include "tidemark/nn/linear.h"

#include "tidemark/api/ops.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::detail {

Dim build_kernel(const Variable& kernel, const Tensor& x, int64_t units, LayerTitle layer,
                 Source at) {
  if (x.rank() == 0)
    refuse(layer.kind, layer.name, "the input is one number, without an axis of features",
           "give it [..., features]: td::reshape(x, {1, 1})", at);
  const Dim features = x.shape()[-1];
  if (!kernel.has_shape()) kernel.set_shape({features, units}, at);
  const Dim built = kernel.shape(at)[0];
  if (built != features)
    refuse(layer.kind, layer.name, cat("built for ", built, " features, got ", features),
           "a layer keeps the size of its first input: make another for inputs of this size", at);
  return features;
}

void build_vector(const std::optional<Variable>& vector, const Dim& size, Source at) {
  if (vector && !vector->has_shape()) vector->set_shape({size}, at);
}

Tensor linear(const Tensor& x, const Variable& kernel, const std::optional<Variable>& bias) {
  Tensor y = x.rank() == 1 ? matmul(x, kernel) : tensordot(x, kernel, 1);
  return bias ? std::move(y) + *bias : y;
}

}  // namespace tidemark::detail

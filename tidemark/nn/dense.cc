#include "tidemark/nn/dense.h"

#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

std::optional<Variable> bias_of(const DenseOptions& options, Source at) {
  if (!options.use_bias) return {};
  return Variable::unshaped(
      options.bias_initializer,
      {.name = detail::parameter_name(options.name, "bias"), .dtype = options.dtype.variable}, at);
}

}  // namespace

Dense::Dense(int64_t units, DenseOptions options, Source at)
    : kernel(Variable::unshaped(
          options.kernel_initializer,
          {.name = detail::parameter_name(options.name, "kernel"), .dtype = options.dtype.variable},
          at)),
      bias(bias_of(options, at)),
      units_(units),
      activation_(std::move(options.activation)),
      policy_(options.dtype),
      name_(std::move(options.name)) {
  if (units <= 0)
    detail::refuse(kKind, name_, cat("cannot have ", units, " units"), "give it one or more", at);
}

Tensor Dense::call(const Tensor& x, Source at) const {
  detail::build_kernel(kernel, x, units_, {kKind, name_}, at);
  detail::build_vector(bias, units_, at);
  return detail::linear(x, kernel, bias, activation_, at);
}

Tensor Dense::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

}  // namespace tidemark::nn

// y = activation(x kernel + bias), over the last axis.
#pragma once

#include <optional>
#include <string>

#include "tidemark/nn/activation.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/policy.h"

namespace tidemark::nn {

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer bias_initializer = initializers::zeros;
  Policy dtype = global_policy();
  std::string name = {};
};

// A copy is the same layer: it has the same Variables. They get their shapes from the first input.
class Dense : public detail::SharedIdentity {
 public:
  explicit Dense(int64_t units, DenseOptions options = {}, Source at = Source::here());

  Tensor operator()(const Tensor& x, Source at = Source::here()) const;

  int64_t units() const { return units_; }
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  Variable kernel;               // [features, units]
  std::optional<Variable> bias;  // [units]
  TIDEMARK_FIELDS(kernel, bias, activation_)

  static constexpr const char* kKind = "nn::Dense";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  int64_t units_;
  Activation activation_;
  Policy policy_;
  std::string name_;
};

}  // namespace tidemark::nn

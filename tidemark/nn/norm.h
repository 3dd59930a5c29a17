// Normalisation layers.
#pragma once

#include <optional>
#include <string>

#include "tidemark/nn/initializers.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/policy.h"

namespace tidemark::nn {

struct LayerNormOptions {
  double epsilon = 1e-5;
  bool use_scale = true, use_bias = true;
  Policy dtype = global_policy();
  std::string name = {};
};

// Normalises the last axis to mean 0 and standard deviation 1, then applies scale and bias by
// feature.
class LayerNorm : public detail::SharedIdentity {
 public:
  explicit LayerNorm(LayerNormOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  std::optional<Variable> scale, bias;  // [features]
  TIDEMARK_FIELDS(scale, bias)

  static constexpr const char* kKind = "nn::LayerNorm";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  double epsilon_;
  Policy policy_;
  std::string name_;
};

struct RMSNormOptions {
  double epsilon = 1e-5;
  Policy dtype = global_policy();
  std::string name = {};
};

// Over the last axis: divided by the root of the mean of squares, then scaled by feature.
class RMSNorm : public detail::SharedIdentity {
 public:
  explicit RMSNorm(RMSNormOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  Variable scale;  // [features]
  TIDEMARK_FIELDS(scale)

  static constexpr const char* kKind = "nn::RMSNorm";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  double epsilon_;
  Policy policy_;
  std::string name_;
};

struct BatchNormOptions {
  double epsilon = 1e-3;
  double momentum = 0.99;  // The weight of the old running statistics in each training step.
  bool use_scale = true, use_bias = true;
  Policy dtype = global_policy();
  std::string name = {};
};

// Normalises each feature (of the last axis) over all other axes. In training mode it uses the
// statistics of the batch and updates the running ones; otherwise, or if the batch is empty, it
// uses the running ones.
class BatchNorm : public detail::SharedIdentity {
 public:
  explicit BatchNorm(BatchNormOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  std::optional<Variable> scale, bias;      // [features]
  Variable running_mean, running_variance;  // [features], not trained; f32 or f64.
  TIDEMARK_FIELDS(scale, bias, running_mean, running_variance)

  static constexpr const char* kKind = "nn::BatchNorm";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  double epsilon_, momentum_;
  Policy policy_;
  std::string name_;
};

struct GroupNormOptions {
  double epsilon = 1e-5;
  bool use_scale = true, use_bias = true;
  Policy dtype = global_policy();
  std::string name = {};
};

// On [n, ..., features]: features are cut into groups, and each group of each example is normalised
// over all axes but the first; then scale and bias by feature. It does the same in training and
// evaluation, for batches of any size.
class GroupNorm : public detail::SharedIdentity {
 public:
  explicit GroupNorm(int64_t groups, GroupNormOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  std::optional<Variable> scale, bias;  // [features]
  TIDEMARK_FIELDS(scale, bias)

  static constexpr const char* kKind = "nn::GroupNorm";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  int64_t groups_;
  double epsilon_;
  Policy policy_;
  std::string name_;
};

// On [n, ..., features]: each feature of each example is normalised over the axes between, then
// scaled and shifted.
class InstanceNorm : public detail::SharedIdentity {
 public:
  explicit InstanceNorm(GroupNormOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  const Policy& policy() const { return policy_; }

  std::optional<Variable> scale, bias;  // [features]
  TIDEMARK_FIELDS(scale, bias)

  static constexpr const char* kKind = "nn::InstanceNorm";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  double epsilon_;
  Policy policy_;
  std::string name_;
};

}  // namespace tidemark::nn

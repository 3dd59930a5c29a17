#include "tidemark/nn/norm.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::nn {
namespace {

template <class Options>
Variable by_feature(const char* name, Initializer initializer, const Options& options, Source at) {
  return Variable::unshaped(
      std::move(initializer),
      {.name = detail::parameter_name(options.name, name), .dtype = options.dtype.variable}, at);
}
template <class Options>
std::optional<Variable> by_feature_if(bool wanted, const char* name, Initializer initializer,
                                      const Options& options, Source at) {
  if (!wanted) return {};
  return by_feature(name, std::move(initializer), options, at);
}

// The dtype of statistics of 16-bit floats: a variance may exceed their range, and small updates of
// a running mean would be lost.
DType figures_in(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

Variable running(const char* name, Initializer initializer, const BatchNormOptions& options,
                 Source at) {
  return Variable::unshaped(std::move(initializer),
                            {.name = detail::parameter_name(options.name, name),
                             .trainable = false,
                             .dtype = figures_in(options.dtype.variable)},
                            at);
}

// Sets or checks the shape of a per-feature vector.
void build(const Variable& vector, const Tensor& x, const char* kind, const std::string& name,
           Source at) {
  if (x.rank() == 0)
    detail::refuse(kind, name, "the input is a scalar, without an axis of features",
                   "give it [..., features]", at);
  const Dim features = x.shape()[-1];
  if (!vector.has_shape()) vector.set_shape({features}, at);
  const Dim built = vector.shape(at)[0];
  if (built != features)
    detail::refuse(
        kind, name, cat("built for ", built, " features, got ", features),
        "a layer keeps the size of its first input: make another for inputs of this size", at);
}

// Tested size by size, so that open sizes stay open.
bool is_empty(const Tensor& x) {
  return std::any_of(x.shape().begin(), x.shape().end(), [](Dim size) { return size == 0; });
}

std::optional<Tensor> value_of(const std::optional<Variable>& variable, Source at) {
  if (!variable) return {};
  return variable->value(at);
}

}  // namespace

LayerNorm::LayerNorm(LayerNormOptions options, Source at)
    : scale(by_feature_if(options.use_scale, "scale", initializers::ones, options, at)),
      bias(by_feature_if(options.use_bias, "bias", initializers::zeros, options, at)),
      epsilon_(options.epsilon),
      policy_(options.dtype),
      name_(std::move(options.name)) {}

Tensor LayerNorm::call(const Tensor& x, Source at) const {
  for (const auto* vector : {&scale, &bias})
    if (*vector) build(**vector, x, kKind, name_, at);
  return layer_norm(
      x, {.scale = value_of(scale, at), .bias = value_of(bias, at), .epsilon = epsilon_}, at);
}

Tensor LayerNorm::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

RMSNorm::RMSNorm(RMSNormOptions options, Source at)
    : scale(by_feature("scale", initializers::ones, options, at)),
      epsilon_(options.epsilon),
      policy_(options.dtype),
      name_(std::move(options.name)) {}

Tensor RMSNorm::call(const Tensor& x, Source at) const {
  build(scale, x, kKind, name_, at);
  return rms_norm(x, {.scale = scale.value(at), .epsilon = epsilon_}, at);
}

Tensor RMSNorm::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

BatchNorm::BatchNorm(BatchNormOptions options, Source at)
    : scale(by_feature_if(options.use_scale, "scale", initializers::ones, options, at)),
      bias(by_feature_if(options.use_bias, "bias", initializers::zeros, options, at)),
      running_mean(running("running_mean", initializers::zeros, options, at)),
      running_variance(running("running_variance", initializers::ones, options, at)),
      epsilon_(options.epsilon),
      momentum_(options.momentum),
      policy_(options.dtype),
      name_(std::move(options.name)) {}

Tensor BatchNorm::call(const Tensor& x, Source at) const {
  if (x.rank() < 2)
    detail::refuse(kKind, name_, cat("the input ", x.shape(), " has no batch"),
                   "give it [n, ..., features]", at);
  for (const auto* vector : {&scale, &bias})
    if (*vector) build(**vector, x, kKind, name_, at);
  for (const Variable* figure : {&running_mean, &running_variance})
    build(*figure, x, kKind, name_, at);
  const Tensor wide = cast(x, figures_in(x.dtype()));
  Tensor centre, spread;
  if (is_training() && !is_empty(x)) {  // An empty batch has no statistics.
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < x.rank() - 1; ++axis) axes.push_back(axis);
    centre = mean(wide, axes);
    spread = var(wide, axes);
    const auto move = [this](const Variable& figure, const Tensor& now) {
      figure.assign_add((1 - momentum_) * (cast(stop_gradient(now), figure.dtype()) - figure));
    };
    move(running_mean, centre);
    move(running_variance, spread);
  } else {
    centre = running_mean.value(at);
    spread = running_variance.value(at);
  }
  Tensor factor = rsqrt(spread + epsilon_);
  if (scale) factor = std::move(factor) * *scale;
  Tensor result = (wide - centre) * factor;
  if (bias) result = std::move(result) + *bias;
  return is_low_precision(x.dtype()) ? cast(result, x.dtype()) : result;
}

Tensor BatchNorm::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

// ---- groups of features -------------------------------------------------------------------------

namespace {

struct Affine {
  const std::optional<Variable>&scale, &bias;
};

// x normalised over `axes`, in the shape `apart`, then scaled and shifted in its own.
Tensor normalised(const Tensor& x, const Shape& apart, const std::vector<int64_t>& axes,
                  double epsilon, Affine by_feature) {
  const Tensor wide = reshape(cast(x, figures_in(x.dtype())), apart);
  const Tensor centred = wide - mean(wide, axes, keepdims);
  const Tensor factor = rsqrt(mean(square(centred), axes, keepdims) + epsilon);
  Tensor result = reshape(centred * factor, x.shape());
  if (by_feature.scale) result = std::move(result) * *by_feature.scale;
  if (by_feature.bias) result = std::move(result) + *by_feature.bias;
  return is_low_precision(x.dtype()) ? cast(result, x.dtype()) : result;
}

void check_batch(const char* kind, const std::string& name, const Tensor& x, int64_t least,
                 const char* remedy, Source at) {
  if (x.rank() < least)
    detail::refuse(kind, name, cat("the input ", x.dtype(), x.shape(), " has too few axes"), remedy,
                   at);
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, GroupNormOptions options, Source at)
    : scale(by_feature_if(options.use_scale, "scale", initializers::ones, options, at)),
      bias(by_feature_if(options.use_bias, "bias", initializers::zeros, options, at)),
      groups_(groups),
      epsilon_(options.epsilon),
      policy_(options.dtype),
      name_(std::move(options.name)) {
  if (groups <= 0)
    detail::refuse(kKind, name_, cat("cannot have ", groups, " groups"), "give it one or more", at);
}

Tensor GroupNorm::call(const Tensor& x, Source at) const {
  check_batch(kKind, name_, x, 2, "give it [n, ..., features]", at);
  for (const auto* vector : {&scale, &bias})
    if (*vector) build(**vector, x, kKind, name_, at);
  const Dim features = x.shape()[-1];
  if (features % groups_ != 0)
    detail::refuse(kKind, name_, cat(features, " features are not ", groups_, " equal groups"),
                   "the number of groups must divide that of features", at);
  Shape apart = x.shape();
  apart.set(apart.rank() - 1, groups_);
  apart.push_back(features / groups_);
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < x.rank() - 1; ++axis) axes.push_back(axis);
  axes.push_back(x.rank());
  return normalised(x, apart, axes, epsilon_, {scale, bias});
}

Tensor GroupNorm::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

InstanceNorm::InstanceNorm(GroupNormOptions options, Source at)
    : scale(by_feature_if(options.use_scale, "scale", initializers::ones, options, at)),
      bias(by_feature_if(options.use_bias, "bias", initializers::zeros, options, at)),
      epsilon_(options.epsilon),
      policy_(options.dtype),
      name_(std::move(options.name)) {}

Tensor InstanceNorm::call(const Tensor& x, Source at) const {
  check_batch(kKind, name_, x, 3, "give it [n, ..., features] with an axis to normalise between",
              at);
  for (const auto* vector : {&scale, &bias})
    if (*vector) build(**vector, x, kKind, name_, at);
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < x.rank() - 1; ++axis) axes.push_back(axis);
  return normalised(x, x.shape(), axes, epsilon_, {scale, bias});
}

Tensor InstanceNorm::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

}  // namespace tidemark::nn

// Convolutions of images, [n, height, width, channels], of rows, [n, width, channels], and of
// volumes, [n, depth, height, width, channels].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/api/ops.h"
#include "tidemark/nn/activation.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/policy.h"
#include "tidemark/nn/window_size.h"

namespace tidemark::nn {

template <size_t axes>
struct ConvLayerOptions {
  WindowSize<axes> strides = 1;
  WindowPadding padding = Padding::valid;
  WindowSize<axes> dilations = 1;
  int64_t groups = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer bias_initializer = initializers::zeros;
  Policy dtype = global_policy();
  std::string name = {};
};
using Conv1DOptions = ConvLayerOptions<1>;
using Conv2DOptions = ConvLayerOptions<2>;
using Conv3DOptions = ConvLayerOptions<3>;

namespace kinds {
// The kinds of layers by their number of axes, for messages and summaries.
inline constexpr const char* kConvKinds[] = {"nn::Conv1D", "nn::Conv2D", "nn::Conv3D"};
inline constexpr const char* kConvTransposeKinds[] = {"nn::Conv1DTranspose", "nn::Conv2DTranspose",
                                                      "nn::Conv3DTranspose"};
inline constexpr const char* kDepthwiseKinds[] = {"nn::DepthwiseConv1D", "nn::DepthwiseConv2D"};
inline constexpr const char* kSeparableKinds[] = {"nn::SeparableConv1D", "nn::SeparableConv2D"};
}  // namespace kinds

// activation(convolution + bias). The transposed one computes the gradient by the image of a
// convolution, and so makes images larger: by the strides, if the padding is `same`.
template <size_t axes, bool transposed>
class ConvLayer : public detail::SharedIdentity {
 public:
  ConvLayer(int64_t filters, WindowSize<axes> window, ConvLayerOptions<axes> options = {},
            Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }

  // [height, width, channels / groups, filters]; of a transposed convolution [height, width,
  // filters / groups, channels].
  Variable kernel;
  std::optional<Variable> bias;  // [filters]
  TIDEMARK_FIELDS(kernel, bias, activation_)

  static constexpr const char* kKind =
      transposed ? kinds::kConvTransposeKinds[axes - 1] : kinds::kConvKinds[axes - 1];
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  void build(const Tensor& x, Source at) const;

  int64_t filters_;
  WindowSize<axes> window_;
  ConvLayerOptions<axes> options_;
  Activation activation_;
};
using Conv1D = ConvLayer<1, false>;
using Conv2D = ConvLayer<2, false>;
using Conv3D = ConvLayer<3, false>;
using Conv1DTranspose = ConvLayer<1, true>;
using Conv2DTranspose = ConvLayer<2, true>;
using Conv3DTranspose = ConvLayer<3, true>;

template <size_t axes>
struct DepthwiseConvOptions {
  WindowSize<axes> strides = 1;
  WindowPadding padding = Padding::valid;
  WindowSize<axes> dilations = 1;
  int64_t times = 1;  // Results of each channel.
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer bias_initializer = initializers::zeros;
  Policy dtype = global_policy();
  std::string name = {};
};

// Each channel by windows of its own.
template <size_t axes>
class DepthwiseConvLayer : public detail::SharedIdentity {
 public:
  explicit DepthwiseConvLayer(WindowSize<axes> window, DepthwiseConvOptions<axes> options = {},
                              Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }

  Variable kernel;               // [height, width, channels, times]
  std::optional<Variable> bias;  // [channels * times]
  TIDEMARK_FIELDS(kernel, bias, activation_)

  static constexpr const char* kKind = kinds::kDepthwiseKinds[axes - 1];
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  WindowSize<axes> window_;
  DepthwiseConvOptions<axes> options_;
  Activation activation_;
};
using DepthwiseConv1D = DepthwiseConvLayer<1>;
using DepthwiseConv2D = DepthwiseConvLayer<2>;

// Each channel by windows of its own, then all channels of each pixel.
template <size_t axes>
class SeparableConvLayer : public detail::SharedIdentity {
 public:
  SeparableConvLayer(int64_t filters, WindowSize<axes> window,
                     DepthwiseConvOptions<axes> options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }

  Variable depthwise_kernel;     // [height, width, channels, times]
  Variable pointwise_kernel;     // [1, 1, channels * times, filters]
  std::optional<Variable> bias;  // [filters]
  TIDEMARK_FIELDS(depthwise_kernel, pointwise_kernel, bias, activation_)

  static constexpr const char* kKind = kinds::kSeparableKinds[axes - 1];
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  int64_t filters_;
  WindowSize<axes> window_;
  DepthwiseConvOptions<axes> options_;
  Activation activation_;
};
using SeparableConv1D = SeparableConvLayer<1>;
using SeparableConv2D = SeparableConvLayer<2>;

extern template class ConvLayer<1, false>;
extern template class ConvLayer<2, false>;
extern template class ConvLayer<3, false>;
extern template class ConvLayer<1, true>;
extern template class ConvLayer<2, true>;
extern template class ConvLayer<3, true>;
extern template class DepthwiseConvLayer<1>;
extern template class DepthwiseConvLayer<2>;
extern template class SeparableConvLayer<1>;
extern template class SeparableConvLayer<2>;

}  // namespace tidemark::nn

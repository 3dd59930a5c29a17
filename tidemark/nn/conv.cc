#include "tidemark/nn/conv.h"

#include "tidemark/nn/images.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

using detail::build_vector;
using detail::need_image;
using detail::numbers;
using detail::refuse;

template <class Options>
Variable declared(const char* name, const Initializer& initializer, const Options& options,
                  Source at) {
  return Variable::unshaped(
      initializer,
      {.name = detail::parameter_name(options.name, name), .dtype = options.dtype.variable}, at);
}

// The bias, if the layer has one.
template <class Options>
std::optional<Variable> declared_bias(Options& options, Source at) {
  if (!options.use_bias) return {};
  return declared("bias", detail::taken(options.bias_initializer), options, at);
}

// "3 x 5".
template <size_t axes>
std::string text_of(const WindowSize<axes>& window) {
  std::string text = cat(window.items[0]);
  for (size_t i = 1; i < axes; ++i) text += cat(" x ", window.items[i]);
  return text;
}
template <size_t axes>
bool is_positive(const WindowSize<axes>& window) {
  for (const int64_t item : window.items)
    if (item <= 0) return false;
  return true;
}

// Sizes of a kernel: the window, then the last two axes.
template <size_t axes>
Shape kernel_shape(const WindowSize<axes>& window, const Dim& in, const Dim& out) {
  Shape shape;
  for (const int64_t item : window.items) shape.push_back(item);
  shape.push_back(in);
  shape.push_back(out);
  return shape;
}

void need_channels(const char* kind, const std::string& name, const Dim& built, const Dim& channels,
                   Source at) {
  if (built == channels) return;
  refuse(kind, name, cat("built for ", built, " channels, got ", channels),
         "a layer keeps the size of its first input: make another for inputs of this size", at);
}

template <class Call, size_t axes, class Options>
Call with_windows(const Options& options) {
  Call call;
  call.strides = numbers<decltype(call.strides)>(options.strides);
  call.padding = options.padding;
  call.dilations = numbers<decltype(call.dilations)>(options.dilations);
  return call;
}

template <size_t axes, bool transposed>
Tensor convolved(const Tensor& x, const Variable& kernel, const ConvLayerOptions<axes>& options,
                 Source at) {
  const auto run = [&]<class Call>(auto function, Call) {
    Call call = with_windows<Call, axes>(options);
    call.groups = options.groups;
    return function(x, kernel, call, at);
  };
  if constexpr (transposed) {
    if constexpr (axes == 1) return run(conv_transpose1d, ConvTranspose1dOptions{});
    if constexpr (axes == 2) return run(conv_transpose2d, ConvTranspose2dOptions{});
    if constexpr (axes == 3) return run(conv_transpose3d, ConvTranspose3dOptions{});
  } else {
    if constexpr (axes == 1) return run(conv1d, Conv1dOptions{});
    if constexpr (axes == 2) return run(conv2d, ConvOptions{});
    if constexpr (axes == 3) return run(conv3d, Conv3dOptions{});
  }
}

Tensor finished(Tensor y, const std::optional<Variable>& bias, const Activation& activation,
                Source at) {
  if (bias) y = std::move(y) + *bias;
  return activation(y, at);
}

}  // namespace

// ---- convolutions -------------------------------------------------------------------------------

template <size_t axes, bool transposed>
ConvLayer<axes, transposed>::ConvLayer(int64_t filters, WindowSize<axes> window,
                                       ConvLayerOptions<axes> options, Source at)
    : kernel(declared("kernel", detail::taken(options.kernel_initializer), options, at)),
      bias(declared_bias(options, at)),
      filters_(filters),
      window_(window),
      options_(std::move(options)),
      activation_(std::move(options_.activation)) {
  if (filters <= 0 || !is_positive(window) || options_.groups <= 0)
    refuse(kKind, options_.name,
           cat("cannot have ", filters, " filters of ", text_of(window), " in ", options_.groups,
               " groups"),
           "all of them must be positive", at);
  if (transposed && filters % options_.groups != 0)
    refuse(kKind, options_.name,
           cat(filters, " filters do not divide into ", options_.groups, " groups"),
           "the filters must be a multiple of the groups", at);
}

template <size_t axes, bool transposed>
void ConvLayer<axes, transposed>::build(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, options_.name, at);
  const Dim channels = x.shape()[-1];
  if (!kernel.has_shape()) {
    if (int64_t{channels} % options_.groups != 0)
      refuse(kKind, options_.name,
             cat(channels, " channels do not divide into ", options_.groups, " groups"),
             "the channels must be a multiple of the groups", at);
    kernel.set_shape(transposed ? kernel_shape(window_, filters_ / options_.groups, channels)
                                : kernel_shape(window_, channels / options_.groups, filters_),
                     at);
  }
  const Shape built = kernel.shape(at);
  need_channels(kKind, options_.name, transposed ? built[-1] : built[-2] * options_.groups,
                channels, at);
  build_vector(bias, filters_, at);
}

template <size_t axes, bool transposed>
Tensor ConvLayer<axes, transposed>::call(const Tensor& x, Source at) const {
  build(x, at);
  return finished(convolved<axes, transposed>(x, kernel, options_, at), bias, activation_, at);
}

template <size_t axes, bool transposed>
Tensor ConvLayer<axes, transposed>::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

// ---- depthwise ----------------------------------------------------------------------------------

template <size_t axes>
DepthwiseConvLayer<axes>::DepthwiseConvLayer(WindowSize<axes> window,
                                             DepthwiseConvOptions<axes> options, Source at)
    : kernel(declared("kernel", detail::taken(options.kernel_initializer), options, at)),
      bias(declared_bias(options, at)),
      window_(window),
      options_(std::move(options)),
      activation_(std::move(options_.activation)) {
  if (!is_positive(window) || options_.times <= 0)
    refuse(kKind, options_.name,
           cat("cannot have windows of ", text_of(window), " ", options_.times, " times"),
           "all of them must be positive", at);
}

template <size_t axes>
Tensor DepthwiseConvLayer<axes>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, options_.name, at);
  const Dim channels = x.shape()[-1];
  if (!kernel.has_shape()) kernel.set_shape(kernel_shape(window_, channels, options_.times), at);
  need_channels(kKind, options_.name, kernel.shape(at)[-2], channels, at);
  build_vector(bias, channels * options_.times, at);
  Tensor y;
  if constexpr (axes == 1)
    y = depthwise_conv1d(x, kernel, with_windows<Depthwise1dOptions, 1>(options_), at);
  else
    y = depthwise_conv2d(x, kernel, with_windows<DepthwiseOptions, 2>(options_), at);
  return finished(std::move(y), bias, activation_, at);
}

template <size_t axes>
Tensor DepthwiseConvLayer<axes>::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

template <size_t axes>
SeparableConvLayer<axes>::SeparableConvLayer(int64_t filters, WindowSize<axes> window,
                                             DepthwiseConvOptions<axes> options, Source at)
    : depthwise_kernel(declared("depthwise_kernel", options.kernel_initializer, options, at)),
      pointwise_kernel(
          declared("pointwise_kernel", detail::taken(options.kernel_initializer), options, at)),
      bias(declared_bias(options, at)),
      filters_(filters),
      window_(window),
      options_(std::move(options)),
      activation_(std::move(options_.activation)) {
  if (filters <= 0 || !is_positive(window) || options_.times <= 0)
    refuse(kKind, options_.name,
           cat("cannot have ", filters, " filters of ", text_of(window), " ", options_.times,
               " times"),
           "all of them must be positive", at);
}

template <size_t axes>
Tensor SeparableConvLayer<axes>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, options_.name, at);
  const Dim channels = x.shape()[-1];
  if (!depthwise_kernel.has_shape())
    depthwise_kernel.set_shape(kernel_shape(window_, channels, options_.times), at);
  if (!pointwise_kernel.has_shape())
    pointwise_kernel.set_shape(
        kernel_shape(WindowSize<axes>(1), channels * options_.times, filters_), at);
  need_channels(kKind, options_.name, depthwise_kernel.shape(at)[-2], channels, at);
  build_vector(bias, filters_, at);
  Tensor y;
  if constexpr (axes == 1)
    y = separable_conv1d(x, depthwise_kernel, pointwise_kernel,
                         with_windows<Depthwise1dOptions, 1>(options_), at);
  else
    y = separable_conv2d(x, depthwise_kernel, pointwise_kernel,
                         with_windows<DepthwiseOptions, 2>(options_), at);
  return finished(std::move(y), bias, activation_, at);
}

template <size_t axes>
Tensor SeparableConvLayer<axes>::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

template class ConvLayer<1, false>;
template class ConvLayer<2, false>;
template class ConvLayer<3, false>;
template class ConvLayer<1, true>;
template class ConvLayer<2, true>;
template class ConvLayer<3, true>;
template class DepthwiseConvLayer<1>;
template class DepthwiseConvLayer<2>;
template class SeparableConvLayer<1>;
template class SeparableConvLayer<2>;

}  // namespace tidemark::nn

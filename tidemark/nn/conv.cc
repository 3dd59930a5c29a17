#include "tidemark/nn/conv.h"

#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

void need_image(const Tensor& x, const char* kind, const std::string& name, Source at) {
  if (x.rank() == 4) return;
  detail::refuse(kind, name, cat("the input ", x.dtype(), x.shape(), " is not a batch of images"),
                 "give it [n, height, width, channels]: td::expand_dims adds an axis", at);
}

Variable declared(const char* name, const Initializer& initializer, const Conv2DOptions& options,
                  Source at) {
  return Variable::unshaped(
      initializer,
      {.name = detail::parameter_name(options.name, name), .dtype = options.dtype.variable}, at);
}

PoolOptions pooled(Size2 window, const Pool2DOptions& options) {
  PoolOptions all{.size = window, .padding = options.padding};
  if (options.strides) all.strides = *options.strides;
  return all;
}

}  // namespace

Conv2D::Conv2D(int64_t filters, Size2 window, Conv2DOptions options, Source at)
    : kernel(declared("kernel", detail::taken(options.kernel_initializer), options, at)),
      filters_(filters),
      window_(window),
      options_(std::move(options)),
      activation_(std::move(options_.activation)) {
  if (options_.use_bias)
    bias = declared("bias", detail::taken(options_.bias_initializer), options_, at);
  if (filters <= 0 || window.height <= 0 || window.width <= 0 || options_.groups <= 0)
    detail::refuse(kKind, options_.name,
                   cat("cannot have ", filters, " filters of ", window.height, " x ", window.width,
                       " in ", options_.groups, " groups"),
                   "all of them must be positive", at);
}

void Conv2D::build(const Tensor& x, Source at) const {
  need_image(x, kKind, options_.name, at);
  const Dim channels = x.shape()[-1];
  if (!kernel.has_shape()) {
    if (int64_t{channels} % options_.groups != 0)
      detail::refuse(kKind, options_.name,
                     cat(channels, " channels do not divide into ", options_.groups, " groups"),
                     "the channels must be a multiple of the groups", at);
    kernel.set_shape({window_.height, window_.width, channels / options_.groups, filters_}, at);
  }
  const Dim built = kernel.shape(at)[2] * options_.groups;
  if (built != channels)
    detail::refuse(
        kKind, options_.name, cat("built for ", built, " channels, got ", channels),
        "a layer keeps the size of its first input: make another for inputs of this size", at);
  detail::build_vector(bias, filters_, at);
}

Tensor Conv2D::call(const Tensor& x, Source at) const {
  build(x, at);
  Tensor y = conv2d(x, kernel,
                    {.strides = options_.strides,
                     .padding = options_.padding,
                     .dilations = options_.dilations,
                     .groups = options_.groups},
                    at);
  if (bias) y = std::move(y) + *bias;
  return activation_(y, at);
}

Tensor Conv2D::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Tensor MaxPool2D::call(const Tensor& x, Source at) const {
  need_image(x, kKind, name_, at);
  return max_pool(x, pooled(window_, options_), at);
}

Tensor MaxPool2D::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Tensor AveragePool2D::call(const Tensor& x, Source at) const {
  need_image(x, kKind, name_, at);
  return avg_pool(x, pooled(window_, options_), at);
}

Tensor AveragePool2D::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Tensor GlobalAveragePool2D::call(const Tensor& x, Source at) const {
  need_image(x, kKind, name_, at);
  return mean(x, {1, 2}, Keep::no, at);
}

Tensor GlobalAveragePool2D::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

}  // namespace tidemark::nn

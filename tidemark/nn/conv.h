// Convolution and pooling of images, [n, height, width, channels].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/api/ops.h"
#include "tidemark/nn/activation.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/policy.h"

namespace tidemark::nn {

// Height and width: 3 or {3, 5}.
struct Size2 {
  constexpr Size2(int64_t both) : height(both), width(both) {}
  constexpr Size2(int64_t height, int64_t width) : height(height), width(width) {}
  constexpr operator std::array<int64_t, 2>() const { return {height, width}; }
  int64_t height, width;
};

struct Conv2DOptions {
  Size2 strides = 1;
  Padding padding = Padding::valid;
  Size2 dilations = 1;
  int64_t groups = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer bias_initializer = initializers::zeros;
  Policy dtype = global_policy();
  std::string name = {};
};

class Conv2D : public detail::SharedIdentity {
 public:
  Conv2D(int64_t filters, Size2 window, Conv2DOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }

  Variable kernel;               // [height, width, channels / groups, filters]
  std::optional<Variable> bias;  // [filters]
  TIDEMARK_FIELDS(kernel, bias, activation_)

  static constexpr const char* kKind = "nn::Conv2D";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  void build(const Tensor& x, Source at) const;

  int64_t filters_;
  Size2 window_;
  Conv2DOptions options_;
  Activation activation_;
};

struct Pool2DOptions {
  std::optional<Size2> strides = {};  // Default: the window's size.
  Padding padding = Padding::valid;
};

// The largest element of each window.
class MaxPool2D : public detail::SharedIdentity {
 public:
  explicit MaxPool2D(Size2 window = 2, Pool2DOptions options = {})
      : window_(window), options_(options) {}
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = "nn::MaxPool2D";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  Size2 window_;
  Pool2DOptions options_;
  std::string name_;
};

// The mean of each window; padding does not count.
class AveragePool2D : public detail::SharedIdentity {
 public:
  explicit AveragePool2D(Size2 window = 2, Pool2DOptions options = {})
      : window_(window), options_(options) {}
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = "nn::AveragePool2D";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  Size2 window_;
  Pool2DOptions options_;
  std::string name_;
};

// The mean of each channel: [n, height, width, channels] becomes [n, channels].
class GlobalAveragePool2D : public detail::SharedIdentity {
 public:
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = "nn::GlobalAveragePool2D";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  std::string name_;
};

}  // namespace tidemark::nn

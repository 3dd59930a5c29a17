// Pools of images, rows and volumes, and layers that resize them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/ops.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/window_size.h"

namespace tidemark::nn {

enum class PoolKind { max, average };

namespace kinds {
// By kind, then by the number of axes.
inline constexpr const char* kPoolKinds[][3] = {
    {"nn::MaxPool1D", "nn::MaxPool2D", "nn::MaxPool3D"},
    {"nn::AveragePool1D", "nn::AveragePool2D", "nn::AveragePool3D"}};
inline constexpr const char* kGlobalKinds[][3] = {
    {"nn::GlobalMaxPool1D", "nn::GlobalMaxPool2D", "nn::GlobalMaxPool3D"},
    {"nn::GlobalAveragePool1D", "nn::GlobalAveragePool2D", "nn::GlobalAveragePool3D"}};
inline constexpr const char* kAdaptiveKinds[][3] = {
    {"nn::AdaptiveMaxPool1D", "nn::AdaptiveMaxPool2D", "nn::AdaptiveMaxPool3D"},
    {"nn::AdaptiveAveragePool1D", "nn::AdaptiveAveragePool2D", "nn::AdaptiveAveragePool3D"}};
inline constexpr const char* kUpSamplingKinds[] = {"nn::UpSampling1D", "nn::UpSampling2D",
                                                   "nn::UpSampling3D"};
constexpr const char* name_of(const char* const (&kinds)[2][3], PoolKind kind, size_t axes) {
  return kinds[kind == PoolKind::max ? 0 : 1][axes - 1];
}
}  // namespace kinds

template <size_t axes>
struct PoolLayerOptions {
  std::optional<WindowSize<axes>> strides = {};  // Default: the window's size.
  WindowPadding padding = Padding::valid;
};
using Pool2DOptions = PoolLayerOptions<2>;

// The largest element of each window, or the mean; padding does not count.
template <size_t axes, PoolKind kind>
class PoolLayer : public detail::SharedIdentity {
 public:
  explicit PoolLayer(WindowSize<axes> window = 2, PoolLayerOptions<axes> options = {})
      : window_(window), options_(std::move(options)) {}
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = kinds::name_of(kinds::kPoolKinds, kind, axes);
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  WindowSize<axes> window_;
  PoolLayerOptions<axes> options_;
  std::string name_;
};
using MaxPool1D = PoolLayer<1, PoolKind::max>;
using MaxPool2D = PoolLayer<2, PoolKind::max>;
using MaxPool3D = PoolLayer<3, PoolKind::max>;
using AveragePool1D = PoolLayer<1, PoolKind::average>;
using AveragePool2D = PoolLayer<2, PoolKind::average>;
using AveragePool3D = PoolLayer<3, PoolKind::average>;

// The largest element or the mean of each channel: [n, height, width, channels] becomes [n,
// channels].
template <size_t axes, PoolKind kind>
class GlobalPoolLayer : public detail::SharedIdentity {
 public:
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = kinds::name_of(kinds::kGlobalKinds, kind, axes);
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  std::string name_;
};
using GlobalMaxPool1D = GlobalPoolLayer<1, PoolKind::max>;
using GlobalMaxPool2D = GlobalPoolLayer<2, PoolKind::max>;
using GlobalMaxPool3D = GlobalPoolLayer<3, PoolKind::max>;
using GlobalAveragePool1D = GlobalPoolLayer<1, PoolKind::average>;
using GlobalAveragePool2D = GlobalPoolLayer<2, PoolKind::average>;
using GlobalAveragePool3D = GlobalPoolLayer<3, PoolKind::average>;

// Windows as large as it takes to get these sizes.
template <size_t axes, PoolKind kind>
class AdaptivePoolLayer : public detail::SharedIdentity {
 public:
  explicit AdaptivePoolLayer(WindowSize<axes> sizes) : sizes_(sizes) {}
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = kinds::name_of(kinds::kAdaptiveKinds, kind, axes);
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  WindowSize<axes> sizes_;
  std::string name_;
};
using AdaptiveMaxPool1D = AdaptivePoolLayer<1, PoolKind::max>;
using AdaptiveMaxPool2D = AdaptivePoolLayer<2, PoolKind::max>;
using AdaptiveMaxPool3D = AdaptivePoolLayer<3, PoolKind::max>;
using AdaptiveAveragePool1D = AdaptivePoolLayer<1, PoolKind::average>;
using AdaptiveAveragePool2D = AdaptivePoolLayer<2, PoolKind::average>;
using AdaptiveAveragePool3D = AdaptivePoolLayer<3, PoolKind::average>;

// Sizes times a factor.
template <size_t axes>
class UpSamplingLayer : public detail::SharedIdentity {
 public:
  explicit UpSamplingLayer(WindowSize<axes> factor = 2, Resizing method = Resizing::nearest,
                           Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = kinds::kUpSamplingKinds[axes - 1];
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  WindowSize<axes> factor_;
  Resizing method_;
  std::string name_;
};
using UpSampling1D = UpSamplingLayer<1>;
using UpSampling2D = UpSamplingLayer<2>;
using UpSampling3D = UpSamplingLayer<3>;

// td::resize as a layer of images.
class Resize : public detail::SharedIdentity {
 public:
  explicit Resize(Size2 sizes, Resizing method = Resizing::bilinear, bool antialias = false)
      : sizes_(sizes), method_(method), antialias_(antialias) {}
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return name_; }
  TIDEMARK_FIELDS(name_)

  static constexpr const char* kKind = "nn::Resize";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  Size2 sizes_;
  Resizing method_;
  bool antialias_;
  std::string name_;
};

}  // namespace tidemark::nn

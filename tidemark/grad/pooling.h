// Pooling and patches: composites, some with a custom gradient. Channels are last, or first where
// the layout says so.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tidemark/calls/windows.h"

namespace tidemark {

struct PoolOptions {
  std::array<int64_t, 2> size = {2, 2};
  std::optional<std::array<int64_t, 2>> strides = {};  // Default: the window's size.
  WindowPadding padding = Padding::valid;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor max_pool(const Operand& x, PoolOptions options = {}, Source at = Source::here());
// Padding does not count towards the average.
Tensor avg_pool(const Operand& x, PoolOptions options = {}, Source at = Source::here());

// Of [n, width, channels].
struct Pool1dOptions {
  int64_t size = 2;
  std::optional<int64_t> strides = {};
  WindowPadding padding = Padding::valid;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor max_pool1d(const Operand& x, Pool1dOptions options = {}, Source at = Source::here());
Tensor avg_pool1d(const Operand& x, Pool1dOptions options = {}, Source at = Source::here());

// Of [n, depth, height, width, channels].
struct Pool3dOptions {
  std::array<int64_t, 3> size = {2, 2, 2};
  std::optional<std::array<int64_t, 3>> strides = {};
  WindowPadding padding = Padding::valid;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor max_pool3d(const Operand& x, Pool3dOptions options = {}, Source at = Source::here());
Tensor avg_pool3d(const Operand& x, Pool3dOptions options = {}, Source at = Source::here());

// Windows as large as it takes to get these sizes: window i of n goes from floor(i in / n) to
// ceil((i + 1) in / n). Equal largest elements share the gradient.
Tensor adaptive_max_pool(const Operand& x, const std::vector<int64_t>& sizes,
                         LayoutOptions options = {}, Source at = Source::here());
Tensor adaptive_avg_pool(const Operand& x, const std::vector<int64_t>& sizes,
                         LayoutOptions options = {}, Source at = Source::here());

struct PatchOptions {
  std::optional<std::vector<int64_t>> strides = {};    // Default: 1.
  std::optional<std::vector<int64_t>> dilations = {};  // Default: 1.
  WindowPadding padding = Padding::valid;
  ImageLayout layout = ImageLayout::nhwc;
};
// Every window as channels: [n, height, width, in] becomes [n, rows, columns, taps * in], the taps
// in order. Padding is 0. For one to three axes, as many as there are sizes.
Tensor extract_patches(const Operand& x, const std::vector<int64_t>& sizes,
                       PatchOptions options = {}, Source at = Source::here());

}  // namespace tidemark

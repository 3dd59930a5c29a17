// Convolutions, resizing and padding of images, and of signals with one or three axes. Images have
// their channels last, or first where the layout says so.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "tidemark/calls/ops.h"

namespace tidemark {

enum class Padding { valid, same };
enum class ImageLayout { nhwc, nchw };

// How far windows reach beyond an image: by a rule, or so many elements before and after each axis.
class WindowPadding {
 public:
  WindowPadding(Padding rule = Padding::valid) : rule_(rule) {}
  WindowPadding(Padding2 pairs) : pairs_(std::move(pairs)) {}
  WindowPadding(std::initializer_list<std::pair<Dim, Dim>> pairs) : pairs_(pairs) {}
  bool is(Padding rule) const { return pairs_.empty() && rule_ == rule; }
  const Padding2& pairs() const { return pairs_; }  // Empty: there is a rule.

 private:
  Padding rule_ = Padding::valid;
  Padding2 pairs_;
};

// ---- convolutions -------------------------------------------------------------------------------

struct ConvOptions {
  std::array<int64_t, 2> strides = {1, 1};
  WindowPadding padding = Padding::valid;
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
// x is [n, height, width, in] or [n, in, height, width]; w is [height, width, in / groups, out]. An
// NCHW result is a view of the NHWC one that is computed.
Tensor conv2d(const Operand& x, const Operand& w, ConvOptions options = {},
              Source at = Source::here());
struct Conv1dOptions {
  int64_t strides = 1;
  WindowPadding padding = Padding::valid;
  int64_t dilations = 1;
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
// x is [n, width, in]; w is [width, in / groups, out].
Tensor conv1d(const Operand& x, const Operand& w, Conv1dOptions options = {},
              Source at = Source::here());
struct Conv3dOptions {
  std::array<int64_t, 3> strides = {1, 1, 1};
  WindowPadding padding = Padding::valid;
  std::array<int64_t, 3> dilations = {1, 1, 1};
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
// x is [n, depth, height, width, in]; w is [depth, height, width, in / groups, out].
Tensor conv3d(const Operand& x, const Operand& w, Conv3dOptions options = {},
              Source at = Source::here());

// The gradient by the image of a convolution with these options, whose kernel is w, [..., out /
// groups, in], and whose result has the shape of x. `sizes` are those of the result; by default
// strides * (x - 1) + the reach of the window for `valid`, less the padding if that is given, and
// strides * x for `same`.
struct ConvTranspose1dOptions {
  int64_t strides = 1;
  WindowPadding padding = Padding::valid;
  std::optional<Shape> sizes = {};
  int64_t dilations = 1;
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor conv_transpose1d(const Operand& x, const Operand& w, ConvTranspose1dOptions options = {},
                        Source at = Source::here());
struct ConvTranspose2dOptions {
  std::array<int64_t, 2> strides = {1, 1};
  WindowPadding padding = Padding::valid;
  std::optional<Shape> sizes = {};
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor conv_transpose2d(const Operand& x, const Operand& w, ConvTranspose2dOptions options = {},
                        Source at = Source::here());
struct ConvTranspose3dOptions {
  std::array<int64_t, 3> strides = {1, 1, 1};
  WindowPadding padding = Padding::valid;
  std::optional<Shape> sizes = {};
  std::array<int64_t, 3> dilations = {1, 1, 1};
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor conv_transpose3d(const Operand& x, const Operand& w, ConvTranspose3dOptions options = {},
                        Source at = Source::here());

// Each channel by windows of its own: w is [height, width, in, times], and the result has in *
// times channels.
struct DepthwiseOptions {
  std::array<int64_t, 2> strides = {1, 1};
  WindowPadding padding = Padding::valid;
  std::array<int64_t, 2> dilations = {1, 1};
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor depthwise_conv2d(const Operand& x, const Operand& w, DepthwiseOptions options = {},
                        Source at = Source::here());
struct Depthwise1dOptions {
  int64_t strides = 1;
  WindowPadding padding = Padding::valid;
  int64_t dilations = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor depthwise_conv1d(const Operand& x, const Operand& w, Depthwise1dOptions options = {},
                        Source at = Source::here());
// A depthwise convolution, then one with windows of one pixel, [1, 1, in * times, out].
Tensor separable_conv2d(const Operand& x, const Operand& depthwise, const Operand& pointwise,
                        DepthwiseOptions options = {}, Source at = Source::here());
Tensor separable_conv1d(const Operand& x, const Operand& depthwise, const Operand& pointwise,
                        Depthwise1dOptions options = {}, Source at = Source::here());

// ---- padding, resizing --------------------------------------------------------------------------

enum class PadMode { reflect, symmetric, edge };
// Padded with elements of x: mirrored at its outermost elements, at its edges, or the outermost
// elements repeated.
Tensor pad(const Operand& x, const Padding2& widths, PadMode mode, Source at = Source::here());

enum class Resizing { nearest, bilinear, bicubic };
struct ResizeOptions {
  Resizing method = Resizing::bilinear;
  bool antialias = false;
  ImageLayout layout = ImageLayout::nhwc;
};
// An image with other sizes. Pixel i of n lies at (i + 1/2) / n of the axis; what lies beyond the
// edges does not count. The cubic has slope -1/2. With `antialias` the windows of an axis that
// shrinks grow as it shrinks.
Tensor resize(const Operand& x, const Shape& sizes, ResizeOptions options = {},
              Source at = Source::here());

struct LayoutOptions {
  ImageLayout layout = ImageLayout::nhwc;
};
// Channels become pixels: [n, height, width, c * factor * factor] becomes [n, height * factor,
// width * factor, c]; channel (c * factor + i) * factor + j is pixel (i, j) of its block.
Tensor pixel_shuffle(const Operand& x, int64_t factor, LayoutOptions options = {},
                     Source at = Source::here());
// Its inverse.
Tensor pixel_unshuffle(const Operand& x, int64_t factor, LayoutOptions options = {},
                       Source at = Source::here());

}  // namespace tidemark

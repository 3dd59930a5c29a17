// Convolutions, forward and transposed, of one to three axes. One axis is a row of an image.
#include "tidemark/calls/images.h"

#include "tidemark/ops/contract.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace detail {

std::pair<Dim, Dim> same_padding(Dim in, int64_t window, int64_t stride, int64_t dilation) {
  const int64_t reach = dilation * (window - 1) + 1;
  // (out - 1) * stride + reach - in; the size is added last, since the rest may be negative.
  const Dim covered = (in + stride - 1) / stride * stride + reach;
  const Dim wanted = in + stride;
  const Dim total = is_less(covered, wanted) ? Dim(0) : covered - wanted;
  return {total / 2, total - total / 2};
}

void check_pairs(std::string_view name, const WindowPadding& padding, size_t axes, Source at) {
  const Padding2& pairs = padding.pairs();
  if (pairs.empty()) return;
  if (pairs.size() != axes)
    throw UserError(cat(name, ": ", pairs.size(), " widths of padding for ", axes,
                        axes == 1 ? " axis" : " axes"),
                    at, "give {before, after} for every axis of the image");
  for (const auto& [before, after] : pairs)
    if (before.is_any() || after.is_any())
      throw UserError(cat(name, ": padding must not be negative, got {", written(before), ", ",
                          written(after), "}"),
                      at, "use a slice to make an image smaller");
}

namespace {

// Where each axis of the result comes from.
Tensor with_channels_at(const Tensor& x, bool last, Source at) {
  const int64_t rank = x.rank();
  std::vector<int64_t> order{0};
  if (!last) order.push_back(rank - 1);
  for (int64_t i = last ? 2 : 1; i < (last ? rank : rank - 1); ++i) order.push_back(i);
  if (last) order.push_back(1);
  return transpose(x, order, at);
}

}  // namespace

Tensor channels_last(const Tensor& x, ImageLayout layout, Source at) {
  return layout == ImageLayout::nhwc || x.rank() < 3 ? x : with_channels_at(x, true, at);
}

Tensor from_channels_last(const Tensor& y, ImageLayout layout, Source at) {
  return layout == ImageLayout::nhwc ? y : with_channels_at(y, false, at);
}

}  // namespace detail

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

namespace {

// A call, whatever the number of axes.
struct Windows {
  std::string_view name;
  AxisList strides, dilations;
  WindowPadding padding;
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
  std::optional<Shape> sizes = {};  // Of a transposed convolution.

  size_t axes() const { return strides.size(); }
  int64_t rank() const { return static_cast<int64_t>(axes()) + 2; }
};

struct Operands {
  Tensor x, w;

  Operands(const Operand& image, const Operand& kernel, const Windows& windows, Source at)
      : x(detail::channels_last(tensor_of(image, at), windows.layout, at)),
        w(tensor_of(kernel, at)) {
    const DType common = detail::product_dtype(x.dtype(), w.dtype());
    x = cast(x, common, at);
    w = cast(w, common, at);
  }
  bool have_rank(int64_t rank) const { return x.rank() == rank && w.rank() == rank; }
};

// The op checks images of two and three axes; a row is checked before it becomes an image.
void check_row(const Operands& both, const Windows& windows, std::string_view kernel, Source at) {
  const Tensor &x = both.x, &w = both.w;
  if (!both.have_rank(3))
    throw UserError(cat(windows.name, ": needs a row [n, width, in] and a kernel ", kernel,
                        ", got ", type_of(x, at), " and ", type_of(w, at)),
                    at, "one row alone: td::expand_dims(x, 0)");
}

void check_transposed(const Operands& both, const Windows& windows, Source at) {
  const Tensor &x = both.x, &w = both.w;
  constexpr std::string_view kernels[] = {"[width, out, in]", "[height, width, out, in]",
                                          "[depth, height, width, out, in]"};
  const std::string_view kernel = kernels[windows.axes() - 1];
  if (windows.axes() == 1) check_row(both, windows, kernel, at);
  if (!both.have_rank(windows.rank()))
    throw UserError(cat(windows.name, ": needs an image of ", windows.rank(), " axes and a kernel ",
                        kernel, ", got ", type_of(x, at), " and ", type_of(w, at)),
                    at, "one image alone: td::expand_dims(x, 0)");
  const bool divides = windows.groups > 0 && x.shape()[-1] % windows.groups == 0;
  if (x.shape()[-1] != w.shape()[-1] || !divides)
    throw UserError(cat(windows.name, ": ", type_of(x, at), " has ", x.shape()[-1],
                        " channels, the kernel ", type_of(w, at), " takes ", w.shape()[-1], " in ",
                        windows.groups, windows.groups == 1 ? " group" : " groups"),
                    at,
                    "the last axis of both is the number of channels, a multiple of the groups");
}

// The op below may have another name than the function that was called.
void check_dtype(const Operands& both, const Windows& windows, Source at) {
  const DType dtype = both.x.dtype();
  if (!is_float(dtype) && !is_complex(dtype))
    throw UserError(cat(windows.name, ": takes floats, got ", dtype), at,
                    "cast it first: td::cast(x, td::f32)");
}

void check_window(const Operands& both, const Windows& windows, Source at) {
  for (size_t i = 0; i < windows.axes(); ++i)
    if (is_less(both.w.shape()[static_cast<int64_t>(i)], 1))
      throw UserError(
          cat(windows.name, ": the kernel ", type_of(both.w, at), " has an empty window"), at,
          "a window has at least one tap along every axis");
}

void check_channels(const Operands& both, const Windows& windows, Source at) {
  const Tensor &x = both.x, &w = both.w;
  const Dim channels = x.shape()[-1], in = w.shape()[-2], out = w.shape()[-1];
  const bool divides = windows.groups > 0 && out % windows.groups == 0;
  if (divides && channels == in * windows.groups) return;
  throw UserError(
      cat(windows.name, ": ", type_of(x, at), " has ", channels, " channels, the kernel ",
          type_of(w, at), " takes ", in, " in each of ", windows.groups, " groups and gives ", out),
      at,
      "channels must be the kernel's inputs times the groups, and the outputs a "
      "multiple of the groups");
}

// Before anything is computed from them.
void check_numbers(const Windows& windows, Source at) {
  for (size_t i = 0; i < windows.axes(); ++i)
    if (windows.strides[i] < 1 || windows.dilations[i] < 1)
      throw UserError(cat(windows.name, ": strides and dilations must be at least 1, got ",
                          windows.strides[i], " and ", windows.dilations[i]),
                      at, "leave them out for 1");
  detail::check_pairs(windows.name, windows.padding, windows.axes(), at);
}

// If no window fits, the result would be empty and a mean over it NaN.
void need_room(const Operands& both, const Windows& windows, Source at) {
  if (windows.padding.is(Padding::same) || !both.have_rank(windows.rank())) return;
  for (size_t i = 0; i < windows.axes(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const Dim reach = (both.w.shape()[axis] - 1) * windows.dilations[i] + 1;
    Dim room = both.x.shape()[axis + 1];
    if (!windows.padding.pairs().empty())
      room = room + windows.padding.pairs()[i].first + windows.padding.pairs()[i].second;
    if (is_less(room, reach))
      throw UserError(cat(windows.name, ": a window of ", reach, " does not fit axis ", axis + 1,
                          " of ", type_of(both.x, at)),
                      at, "use td::Padding::same, or a smaller window");
  }
}

ops::ConvSpec spec_of(const Operands& both, const Windows& windows) {
  ops::ConvSpec spec;
  spec.axes = windows.axes();
  spec.groups = windows.groups;
  const Padding2& pairs = windows.padding.pairs();
  for (size_t i = 0; i < spec.axes; ++i) {
    spec.stride[i] = windows.strides[i];
    spec.dilation[i] = windows.dilations[i];
    if (!both.have_rank(windows.rank())) continue;  // Which the op refuses.
    const auto axis = static_cast<int64_t>(i);
    const auto [low, high] =
        !pairs.empty() ? pairs[i]
        : windows.padding.is(Padding::same)
            ? detail::same_padding(both.x.shape()[axis + 1], both.w.shape()[axis], spec.stride[i],
                                   spec.dilation[i])
            : std::pair<Dim, Dim>(0, 0);
    spec.pad_low[i] = low;
    spec.pad_high[i] = high;
  }
  return spec;
}

// A row is an image of height 1.
ops::ConvSpec as_image(const ops::ConvSpec& row) {
  ops::ConvSpec spec;
  spec.groups = row.groups;
  spec.stride[1] = row.stride[0];
  spec.pad_low[1] = row.pad_low[0];
  spec.pad_high[1] = row.pad_high[0];
  spec.dilation[1] = row.dilation[0];
  spec.spread[1] = row.spread[0];
  return spec;
}

Tensor run(const Tensor& x, const Tensor& w, const ops::ConvSpec& spec, Source at) {
  if (spec.axes == 1) {
    const Tensor y = run(expand_dims(x, 1, at), expand_dims(w, 0, at), as_image(spec), at);
    return squeeze(y, {1}, at);
  }
  const Tensor operands[] = {x, w};
  const NamedOp& op = spec.axes == 2 ? ops::conv2d : ops::conv3d;
  return bind_op(def_of(&op), operands, spec.attrs(), at);
}

Tensor convolve(const Operand& x, const Operand& w, const Windows& windows, Source at) {
  const SourceScope scope(at);
  const Operands both(x, w, windows, at);
  if (windows.axes() == 1) check_row(both, windows, "[width, in, out]", at);
  check_numbers(windows, at);
  const bool has_rank = both.have_rank(windows.rank());  // Which the op refuses.
  if (has_rank) check_window(both, windows, at);
  need_room(both, windows, at);
  if (has_rank) {
    check_dtype(both, windows, at);
    check_channels(both, windows, at);
  }
  return detail::from_channels_last(run(both.x, both.w, spec_of(both, windows), at), windows.layout,
                                    at);
}

// ---- transposed ---------------------------------------------------------------------------------

// One axis of a transposed convolution: its padding as one of spread pixels.
struct Transposed {
  Dim low = 0, high = 0;
};
Transposed transposed_axis(const Operands& both, const Windows& windows, size_t i, Source at) {
  const auto axis = static_cast<int64_t>(i);
  const Dim in = both.x.shape()[axis + 1];
  const int64_t stride = windows.strides[i];
  const int64_t reach = windows.dilations[i] * (int64_t{both.w.shape()[axis]} - 1);
  const Padding2& pairs = windows.padding.pairs();
  const bool same = windows.padding.is(Padding::same);
  if (!windows.sizes) {
    if (!pairs.empty()) {
      const Dim low = pairs[i].first, high = pairs[i].second;
      if (is_less((in - 1) * stride + reach, low + high))
        throw UserError(cat(windows.name, ": padding of ", low, " and ", high,
                            " leaves nothing of axis ", axis + 1),
                        at, "it takes pixels of the result away: give less");
      return {reach - low.number(), reach - high.number()};
    }
    if (!same) return {reach, reach};
    const int64_t low = std::max<int64_t>(0, reach + 1 - stride) / 2;
    return {reach - low, stride - 1 + low};
  }
  const Dim size = (*windows.sizes)[axis];
  const auto [low, high] =
      !pairs.empty() ? pairs[i]
      : same ? detail::same_padding(size, both.w.shape()[axis], stride, windows.dilations[i])
             : std::pair<Dim, Dim>(0, 0);
  const Dim padded = size + low + high;
  const Dim covered = in * stride + reach + 1;  // One stride more than the last window ends at.
  if (is_less(padded + stride, covered) || !is_less(padded, covered))
    throw UserError(cat(windows.name, ": a convolution of size ", size, " along axis ", axis + 1,
                        " does not give ", in),
                    at, "leave the sizes out for the usual ones");
  return {reach - low.number(), size + low + (stride - 1) - in * stride};
}

// The kernel of the convolution that computes the gradient: turned around, with its input and
// output channels exchanged within each group.
Tensor turned(const Tensor& w, const Windows& windows, Source at) {
  std::vector<int64_t> taps, order;
  for (int64_t i = 0; i + 2 < w.rank(); ++i) taps.push_back(i);
  const int64_t each = w.rank() - 2;
  order = taps;
  order.insert(order.end(), {each + 2, each + 1, each});
  Shape open, closed;
  for (const int64_t i : taps) open.push_back(w.shape()[i]);
  closed = open;
  open.push_back(w.shape()[each]);
  open.push_back(windows.groups);
  open.push_back(w.shape()[-1] / windows.groups);
  closed.push_back(w.shape()[-1] / windows.groups);
  closed.push_back(w.shape()[each] * windows.groups);
  return reshape(transpose(reshape(flip(w, taps, at), open, at), order, at), closed, at);
}

Tensor convolve_transposed(const Operand& x, const Operand& w, const Windows& windows, Source at) {
  const SourceScope scope(at);
  const Operands both(x, w, windows, at);
  check_numbers(windows, at);
  check_transposed(both, windows, at);
  check_window(both, windows, at);
  check_dtype(both, windows, at);
  if (windows.sizes && windows.sizes->rank() != windows.rank() - 2)
    throw UserError(cat(windows.name, ": ", windows.sizes->rank(), " sizes for an image of ",
                        windows.axes(), windows.axes() == 1 ? " axis" : " axes"),
                    at, "give the size of every axis but those of the batch and the channels");
  ops::ConvSpec spec;
  spec.axes = windows.axes();
  spec.groups = windows.groups;
  for (size_t i = 0; i < spec.axes; ++i) {
    const Transposed axis = transposed_axis(both, windows, i, at);
    spec.pad_low[i] = axis.low;
    spec.pad_high[i] = axis.high;
    spec.dilation[i] = windows.dilations[i];
    spec.spread[i] = windows.strides[i];
  }
  return detail::from_channels_last(run(both.x, turned(both.w, windows, at), spec, at),
                                    windows.layout, at);
}

template <size_t n>
AxisList list_of(const std::array<int64_t, n>& items) {
  return AxisList(std::span<const int64_t>(items));
}
AxisList list_of(int64_t item) { return AxisList{item}; }

template <class Options>
Windows windows_of(std::string_view name, const Options& options) {
  Windows windows{name, list_of(options.strides), list_of(options.dilations), options.padding};
  windows.layout = options.layout;
  if constexpr (requires { options.groups; }) windows.groups = options.groups;
  if constexpr (requires { options.sizes; }) windows.sizes = options.sizes;
  return windows;
}

// ---- depthwise ----------------------------------------------------------------------------------

// [taps..., in, times] as the kernel of as many groups as there are channels.
Tensor depthwise(const Operand& x, const Operand& w, Windows windows, Source at) {
  const SourceScope scope(at);
  const Tensor kernel = tensor_of(w, at), image = tensor_of(x, at);
  const bool last = windows.layout == ImageLayout::nhwc;
  if (kernel.rank() != windows.rank() || image.rank() != windows.rank() ||
      image.shape()[last ? -1 : 1] != kernel.shape()[-2])
    throw UserError(cat(windows.name, ": ", type_of(image, at), " and the kernel ",
                        type_of(kernel, at), " do not fit"),
                    at,
                    windows.axes() == 1
                        ? "the kernel is [width, in, times] for an image of `in` channels"
                        : "the kernel is [height, width, in, times] for an image of `in` channels");
  windows.groups = kernel.shape()[-2];
  Shape shape = kernel.shape();
  shape.set(windows.rank() - 1, kernel.shape()[-2] * kernel.shape()[-1]);
  shape.set(windows.rank() - 2, 1);
  return convolve(image, reshape(kernel, shape, at), windows, at);
}

Tensor separable(const Operand& x, const Operand& deep, const Operand& point,
                 const Windows& windows, Source at) {
  const SourceScope scope(at);
  Windows pixels{windows.name, AxisList(windows.axes(), 1), AxisList(windows.axes(), 1), {}};
  pixels.layout = windows.layout;
  return convolve(depthwise(x, deep, windows, at), point, pixels, at);
}

}  // namespace

Tensor conv1d(const Operand& x, const Operand& w, Conv1dOptions options, Source at) {
  return convolve(x, w, windows_of("conv1d", options), at);
}
Tensor conv2d(const Operand& x, const Operand& w, ConvOptions options, Source at) {
  return convolve(x, w, windows_of("conv2d", options), at);
}
Tensor conv3d(const Operand& x, const Operand& w, Conv3dOptions options, Source at) {
  return convolve(x, w, windows_of("conv3d", options), at);
}

Tensor conv_transpose1d(const Operand& x, const Operand& w, ConvTranspose1dOptions options,
                        Source at) {
  return convolve_transposed(x, w, windows_of("conv_transpose1d", options), at);
}
Tensor conv_transpose2d(const Operand& x, const Operand& w, ConvTranspose2dOptions options,
                        Source at) {
  return convolve_transposed(x, w, windows_of("conv_transpose2d", options), at);
}
Tensor conv_transpose3d(const Operand& x, const Operand& w, ConvTranspose3dOptions options,
                        Source at) {
  return convolve_transposed(x, w, windows_of("conv_transpose3d", options), at);
}

Tensor depthwise_conv1d(const Operand& x, const Operand& w, Depthwise1dOptions options, Source at) {
  return depthwise(x, w, windows_of("depthwise_conv1d", options), at);
}
Tensor depthwise_conv2d(const Operand& x, const Operand& w, DepthwiseOptions options, Source at) {
  return depthwise(x, w, windows_of("depthwise_conv2d", options), at);
}
Tensor separable_conv1d(const Operand& x, const Operand& depthwise, const Operand& pointwise,
                        Depthwise1dOptions options, Source at) {
  return separable(x, depthwise, pointwise, windows_of("separable_conv1d", options), at);
}
Tensor separable_conv2d(const Operand& x, const Operand& depthwise, const Operand& pointwise,
                        DepthwiseOptions options, Source at) {
  return separable(x, depthwise, pointwise, windows_of("separable_conv2d", options), at);
}

}  // namespace tidemark

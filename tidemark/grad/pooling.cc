#include "tidemark/grad/pooling.h"

#include <array>
#include <limits>

#include "tidemark/calls/create.h"
#include "tidemark/calls/images.h"
#include "tidemark/grad/custom_gradient.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::from_nhwc;
using detail::same_padding;
using detail::tensor_of;
using detail::to_nhwc;
using detail::type_of;

// The windows of an image, tap by tap: tap (i, j) of all windows is a strided view of the padded
// image.
class Windows {
 public:
  Windows(const TensorType& image, const PoolOptions& options, const char* name, Source at);

  // The image, padded with `outside` if windows extend beyond it.
  Tensor padded(const Tensor& image, const Operand& outside, Source at) const {
    return pads_ ? pad(image, widths_, outside, at) : image;
  }
  Tensor tap(const Tensor& padded, int64_t i, int64_t j, Source at) const {
    return bind_op(def_of(&ops::slice), {&padded, 1}, place(i, j), at);
  }
  // Sets tap (i, j) of all windows to `values`, in the bytes of `padded`.
  Tensor with_tap(Tensor padded, int64_t i, int64_t j, const Tensor& values, Source at) const {
    return detail::bind_onto(def_of(&ops::update), Operand(std::move(padded), at), {&values, 1},
                             place(i, j), at);
  }
  // Without the padding.
  Tensor inside(const Tensor& padded, const Shape& image, Source at) const {
    if (!pads_) return padded;
    DimList begin;
    for (const auto& [low, high] : widths_) begin.push_back(low);
    const Attrs middle = Attrs().add(begin).add(image).add(AxisList{1, 1, 1, 1});
    return detail::dense(bind_op(def_of(&ops::slice), {&padded, 1}, middle, at), at);
  }
  bool overlap() const { return strides_[0] < size_[0] || strides_[1] < size_[1]; }
  template <class Visit>
  void for_each_tap(Visit visit) const {
    for (int64_t i = 0; i < size_[0]; ++i)
      for (int64_t j = 0; j < size_[1]; ++j) visit(i, j);
  }

 private:
  Attrs place(int64_t i, int64_t j) const {
    return Attrs()
        .add(DimList{0, i, j, 0})
        .add(taps_)
        .add(AxisList{1, strides_[0], strides_[1], 1});
  }

  std::array<int64_t, 2> size_, strides_;
  bool pads_;
  Padding2 widths_ = Padding2(4);
  DimList taps_;  // The shape of one tap of all windows.
};

Windows::Windows(const TensorType& image, const PoolOptions& options, const char* name, Source at)
    : size_(options.size),
      strides_(options.strides.value_or(options.size)),
      pads_(options.padding == Padding::same) {
  if (image.shape.rank() != 4)
    throw UserError(cat(name, ": needs an image of four axes, got ", image), at,
                    "one image alone: td::expand_dims(x, 0)");
  Dim out[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    if (size_[i] < 1 || strides_[i] < 1)
      throw UserError(cat(name, ": windows and strides must be at least 1, got ", size_[i], " and ",
                          strides_[i]),
                      at, "a window of 1 with stride 1 leaves the axis as it is");
    if (pads_) widths_[i + 1] = same_padding(image.shape[axis], size_[i], strides_[i], 1);
    const Dim all = image.shape[axis] + widths_[i + 1].first + widths_[i + 1].second;
    if (is_less(all, size_[i]))
      throw UserError(
          cat(name, ": a window of ", size_[i], " does not fit axis ", axis, " of ", image), at,
          "use td::Padding::same, or a smaller window");
    out[i] = (all - size_[i]) / strides_[i] + 1;
  }
  taps_ = {image.shape[0], out[0], out[1], image.shape[3]};
}

// Combines the taps in order; no temporary is larger than the image.
template <class Combine>
Tensor pooled(const Tensor& image, const Windows& windows, const Operand& outside, Source at,
              Combine combine) {
  const SourceScope scope(at);
  const Tensor padded = windows.padded(image, outside, at);
  Tensor total;
  windows.for_each_tap([&](int64_t i, int64_t j) {
    const Tensor tap = windows.tap(padded, i, j, at);
    total =
        total.has_value() ? combine(std::move(total), tap) : detail::dense(identity(tap, at), at);
  });
  return total;
}

Operand lowest(DType dtype, Source at) {
  if (is_float(dtype)) return Operand(-std::numeric_limits<double>::infinity(), at);
  return Operand(least_of(dtype), at);
}

Tensor largest_of(const Tensor& image, const Windows& windows, Source at) {
  return pooled(image, windows, lowest(image.dtype(), at), at,
                [&](Tensor&& a, const Tensor& b) { return maximum(std::move(a), b, at); });
}

// The gradient of a window goes to its largest element: the first of several, and the first element
// of a window with a NaN. It is written tap by tap: summing a padded array per tap would take the
// bytes of the image for each tap.
Tensor put_at_largest(const Tensor& image, const Tensor& largest, const Tensor& g,
                      const Windows& windows, Source at) {
  const SourceScope scope(at);
  const Tensor padded = windows.padded(image, lowest(image.dtype(), at), at);
  const DType wide = is_low_precision(g.dtype()) ? DType::f32 : g.dtype();
  Tensor total = zeros(padded.shape(), wide, at), taken;
  windows.for_each_tap([&](int64_t i, int64_t j) {
    Tensor hit = logical_not(windows.tap(padded, i, j, at) < largest);
    if (taken.has_value()) hit = logical_and(hit, logical_not(taken));
    Tensor part = cast(where(hit, g, 0), wide);
    if (windows.overlap()) part = std::move(part) + windows.tap(total, i, j, at);
    total = windows.with_tap(std::move(total), i, j, part, at);
    taken = taken.has_value() ? logical_or(taken, hit) : hit;
  });
  return cast(windows.inside(total, image.shape(), at), g.dtype(), at);
}

}  // namespace

Tensor max_pool(const Operand& x, PoolOptions options, Source at) {
  const Tensor image = to_nhwc(tensor_of(x, at), options.layout, at);
  const Windows windows(type_of(image, at), options, "max_pool", at);
  const bool may_be_differentiated = is_float(image.dtype()) && detail::is_observed({&image});
  if (!may_be_differentiated) return from_nhwc(largest_of(image, windows, at), options.layout, at);
  const auto pool = [&](const detail::Tensors& inputs) {
    const Tensor& given = inputs[0];
    const Tensor largest = largest_of(given, windows, at);
    const auto pullback = [=](const detail::Tensors& gradients) {
      return detail::OwnGradients{{put_at_largest(given, largest, gradients[0], windows, at)}, {}};
    };
    return detail::OwnResults{{largest}, pullback, {given, largest}};
  };
  return from_nhwc(detail::run_custom({image}, pool, at)[0], options.layout, at);
}

Tensor avg_pool(const Operand& x, PoolOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  // 16-bit floats and integers are summed in f32.
  const DType wide = given.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor image = cast(to_nhwc(given, options.layout, at), wide, at);
  const auto plus = [&](Tensor&& a, const Tensor& b) { return add(std::move(a), b, at); };
  const Windows windows(type_of(image, at), options, "avg_pool", at);
  Tensor total = pooled(image, windows, Operand(0, at), at, plus);
  if (options.padding == Padding::valid) {
    total = divide(std::move(total), Operand(options.size[0] * options.size[1], at), at);
  } else {
    // The number of taps of each window that are inside the image: the same sum over a one-channel
    // image of ones.
    const Tensor flat = ones({1, image.shape()[1], image.shape()[2], 1}, image.dtype(), at);
    const Windows of_flat(type_of(flat, at), options, "avg_pool", at);
    total = divide(std::move(total), pooled(flat, of_flat, Operand(0, at), at, plus), at);
  }
  if (is_low_precision(given.dtype())) total = cast(total, given.dtype(), at);
  return from_nhwc(total, options.layout, at);
}

}  // namespace tidemark

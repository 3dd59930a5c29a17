#include "tidemark/grad/pooling.h"

#include <array>
#include <limits>

#include "tidemark/calls/create.h"
#include "tidemark/calls/images.h"
#include "tidemark/grad/custom_gradient.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::channels_last;
using detail::from_channels_last;
using detail::same_padding;
using detail::tensor_of;
using detail::type_of;

// Windows over the axes between batch and channels.
struct Window {
  const char* name;
  AxisList size, strides, dilations;
  WindowPadding padding;

  size_t axes() const { return size.size(); }
  int64_t reach(size_t i) const { return dilations[i] * (size[i] - 1) + 1; }
  int64_t taps() const {
    int64_t count = 1;
    for (const int64_t each : size) count *= each;
    return count;
  }
};

// The windows of an image, tap by tap: a tap of all windows is a strided view of the padded image.
class Windows {
 public:
  using Tap = std::span<const int64_t>;

  Windows(const TensorType& image, const Window& window, Source at);

  // The image, padded with `outside` if windows extend beyond it.
  Tensor padded(const Tensor& image, const Operand& outside, Source at) const {
    return pads_ ? pad(image, widths_, outside, at) : image;
  }
  Tensor tap(const Tensor& padded, Tap at_tap, Source at) const {
    return bind_op(def_of(&ops::slice), {&padded, 1}, place(at_tap), at);
  }
  // Sets a tap of all windows to `values`, in the bytes of `padded`.
  Tensor with_tap(Tensor padded, Tap at_tap, const Tensor& values, Source at) const {
    return detail::bind_onto(def_of(&ops::update), Operand(std::move(padded), at), {&values, 1},
                             place(at_tap), at);
  }
  // Without the padding.
  Tensor inside(const Tensor& padded, const Shape& image, Source at) const {
    if (!pads_) return padded;
    DimList begin;
    for (const auto& [low, high] : widths_) begin.push_back(low);
    const Attrs middle = Attrs().add(begin).add(image).add(AxisList(begin.size(), 1));
    return detail::dense(bind_op(def_of(&ops::slice), {&padded, 1}, middle, at), at);
  }
  // What `self` with these windows depends on besides types.
  detail::Composition composition(const void* self) const {
    detail::Composition what(self);
    for (const AxisList* list : {&window_.size, &window_.strides, &window_.dilations})
      for (const int64_t each : *list) what.add(each);
    for (const auto& [low, high] : widths_)
      for (const Dim each : {low, high}) what.add(static_cast<int64_t>(each.word()));
    return what;
  }
  bool pads() const { return pads_; }
  int64_t taps() const { return window_.taps(); }
  size_t axes() const { return window_.axes(); }
  // Whether every pixel before those that are cropped lies in one window.
  bool tile() const {
    for (size_t i = 0; i < window_.axes(); ++i)
      if (window_.strides[i] != window_.size[i] || window_.dilations[i] != 1) return false;
    return !pads_;
  }
  // Windows that tile, with an axis of taps behind each of their axes: of a result, [n, rows, 1,
  // columns, 1, c].
  Tensor with_taps(const Tensor& y, Source at) const {
    Shape shape = y.shape();
    for (size_t i = axes(); i-- > 0;) shape.insert(static_cast<int64_t>(i) + 2, 1);
    return reshape(y, shape, at);
  }
  // The number of each tap, [taps, 1, taps, 1].
  Tensor numbers(Source at) const {
    Shape shape;
    for (const int64_t size : window_.size) {
      shape.push_back(size);
      shape.push_back(1);
    }
    return reshape(cast(arange(taps(), at), DType::i32, at), shape, at);
  }
  // An element for each tap as an image; zeros where it is cropped. Open sizes are padded, perhaps
  // by none: to ask whether they are cropped would need a trace for each answer.
  Tensor image_of(const Tensor& tapped, const Shape& image, Source at) const {
    Shape whole;
    for (const Dim size : taps_) whole.push_back(size);
    Padding2 cropped(axes() + 2);
    bool crops = false;
    for (size_t i = 0; i < axes(); ++i) {
      const auto axis = static_cast<int64_t>(i) + 1;
      whole.set(axis, whole[axis] * window_.size[i]);
      cropped[i + 1] = {0, image[axis] - whole[axis]};
      crops |= whole[axis].word() != image[axis].word();
    }
    const Tensor inner = reshape(tapped, whole, at);
    return crops ? pad(inner, cropped, 0, at) : inner;
  }
  // Each element of a result, at all taps of its window.
  Tensor spread(const Tensor& y, const Shape& image, Source at) const {
    Shape tapped = y.shape();
    for (size_t i = axes(); i-- > 0;) tapped.insert(static_cast<int64_t>(i) + 2, window_.size[i]);
    return image_of(broadcast_to(with_taps(y, at), tapped, at), image, at);
  }
  bool overlap() const {
    for (size_t i = 0; i < window_.axes(); ++i)
      if (window_.strides[i] < window_.reach(i)) return true;
    return false;
  }
  template <class Visit>
  void for_each_tap(Visit visit) const {
    AxisList tap(window_.axes(), 0);
    for (int64_t number = 0; number < window_.taps(); ++number) {
      int64_t rest = number;
      for (size_t i = window_.axes(); i-- > 0; rest /= window_.size[i])
        tap[i] = rest % window_.size[i];
      visit(Tap(tap.data(), tap.size()));
    }
  }

 private:
  Attrs place(Tap tap) const {
    DimList begin{0};
    AxisList step{1};
    for (size_t i = 0; i < tap.size(); ++i) {
      begin.push_back(tap[i] * window_.dilations[i]);
      step.push_back(window_.strides[i]);
    }
    begin.push_back(0);
    step.push_back(1);
    return Attrs().add(begin).add(taps_).add(step);
  }

  Window window_;
  bool pads_;
  Padding2 widths_;
  DimList taps_;  // The shape of one tap of all windows.
};

void check_window(const TensorType& image, const Window& window, Source at) {
  constexpr const char* numbers[] = {"three", "four", "five"};
  if (image.shape.rank() != static_cast<int64_t>(window.axes()) + 2)
    throw UserError(
        cat(window.name, ": needs an image of ", numbers[window.axes() - 1], " axes, got ", image),
        at, "one image alone: td::expand_dims(x, 0)");
  for (size_t i = 0; i < window.axes(); ++i)
    if (window.size[i] < 1 || window.strides[i] < 1 || window.dilations[i] < 1)
      throw UserError(
          cat(window.name, ": windows and strides must be at least 1, got ", window.size[i],
              " and ", std::min(window.strides[i], window.dilations[i])),
          at, "a window of 1 with stride 1 leaves the axis as it is");
  detail::check_pairs(window.name, window.padding, window.axes(), at);
}

Windows::Windows(const TensorType& image, const Window& window, Source at)
    : window_(window),
      pads_(!window.padding.is(Padding::valid)),
      widths_(window.axes() + 2),
      taps_{image.shape[0]} {
  check_window(image, window, at);
  for (size_t i = 0; i < window.axes(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    auto& width = widths_[i + 1];
    if (window.padding.is(Padding::same))
      width =
          same_padding(image.shape[axis], window.size[i], window.strides[i], window.dilations[i]);
    else if (pads_)
      width = window.padding.pairs()[i];
    const Dim all = image.shape[axis] + width.first + width.second;
    if (is_less(all, window.reach(i)))
      throw UserError(cat(window.name, ": a window of ", window.reach(i), " does not fit axis ",
                          axis, " of ", image),
                      at, "use td::Padding::same, or a smaller window");
    taps_.push_back((all - window.reach(i)) / window.strides[i] + 1);
  }
  taps_.push_back(image.shape[-1]);
}

// Combines the taps in order; no temporary is larger than the image.
template <class Combine>
Tensor pooled(const Tensor& image, const Windows& windows, const Operand& outside, Source at,
              Combine combine) {
  const SourceScope scope(at);
  const Tensor padded = windows.padded(image, outside, at);
  Tensor total;
  windows.for_each_tap([&](Windows::Tap place) {
    const Tensor tap = windows.tap(padded, place, at);
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
  static constexpr char kSelf = 0;
  const auto larger = [&](Tensor&& a, const Tensor& b) { return maximum(std::move(a), b, at); };
  const auto run = [&](const detail::Tensors& given) {
    return pooled(given[0], windows, lowest(image.dtype(), at), at, larger);
  };
  return detail::composed(windows.composition(&kSelf), {image}, run, at);
}

// The same where windows tile the image: a tap of each, and then every pixel once.
Tensor put_at_first(const Tensor& image, const Tensor& largest, const Tensor& g,
                    const Windows& windows, Source at) {
  Tensor first;
  int64_t number = 0;
  windows.for_each_tap([&](Windows::Tap tap) {
    const Tensor miss = cast(windows.tap(image, tap, at) < largest, DType::i32, at);
    // Past the taps before the first that does not miss.
    first = number == 0 ? miss : first + cast(first == number, DType::i32, at) * miss;
    ++number;
  });
  const Tensor here = windows.with_taps(first, at) == windows.numbers(at);
  return windows.image_of(where(here, windows.with_taps(g, at), 0), image.shape(), at);
}

// The gradient of a window goes to its largest element: the first of several, and the first element
// of a window with a NaN. It is written tap by tap: summing a padded array per tap would take the
// bytes of the image for each tap.
Tensor put_at_largest(const Tensor& image, const Tensor& largest, const Tensor& g,
                      const Windows& windows, Source at) {
  // Loops over taps of three axes cost more than the passes that they save.
  if (windows.tile() && windows.axes() < 3) return put_at_first(image, largest, g, windows, at);
  const Tensor padded = windows.padded(image, lowest(image.dtype(), at), at);
  const DType wide = is_low_precision(g.dtype()) ? DType::f32 : g.dtype();
  Tensor total = zeros(padded.shape(), wide, at), taken;
  windows.for_each_tap([&](Windows::Tap tap) {
    Tensor hit = logical_not(windows.tap(padded, tap, at) < largest);
    if (taken.has_value()) hit = logical_and(hit, logical_not(taken));
    Tensor part = cast(where(hit, g, 0), wide);
    if (windows.overlap()) part = std::move(part) + windows.tap(total, tap, at);
    total = windows.with_tap(std::move(total), tap, part, at);
    taken = taken.has_value() ? logical_or(taken, hit) : hit;
  });
  return cast(windows.inside(total, image.shape(), at), g.dtype(), at);
}

// The gradient of patches: each tap's channels added to the elements that they are copies of.
Tensor put_back(const Shape& image, const Tensor& g, const Windows& windows, Source at) {
  const SourceScope scope(at);
  const DType wide = is_low_precision(g.dtype()) ? DType::f32 : g.dtype();
  Tensor total = windows.padded(zeros(image, wide, at), Operand(0, at), at);
  const int64_t rank = image.rank();
  const Dim channels = image[-1];
  Dim first = 0;
  windows.for_each_tap([&](Windows::Tap tap) {
    DimList begin(static_cast<size_t>(rank)), size;
    for (int64_t i = 0; i + 1 < rank; ++i) size.push_back(g.shape()[i]);
    begin[static_cast<size_t>(rank) - 1] = first;
    size.push_back(channels);
    const Attrs channel = Attrs().add(begin).add(size).add(AxisList(begin.size(), 1));
    Tensor part = cast(bind_op(def_of(&ops::slice), {&g, 1}, channel, at), wide, at);
    if (windows.overlap()) part = part + windows.tap(total, tap, at);
    total = windows.with_tap(std::move(total), tap, part, at);
    first = first + channels;
  });
  return cast(windows.inside(total, image, at), g.dtype(), at);
}

Tensor patches_of(const Tensor& image, const Windows& windows, Source at) {
  const SourceScope scope(at);
  const Tensor padded = windows.padded(image, Operand(0, at), at);
  std::vector<Tensor> taps;
  windows.for_each_tap([&](Windows::Tap tap) { taps.push_back(windows.tap(padded, tap, at)); });
  return taps.size() == 1 ? taps[0] : concat(taps, image.rank() - 1, at);
}

// ---- calls --------------------------------------------------------------------------------------

template <size_t n>
AxisList list_of(const std::array<int64_t, n>& items) {
  return AxisList(std::span<const int64_t>(items));
}
AxisList list_of(int64_t item) { return AxisList{item}; }

template <class Options>
Window window_of(const char* name, const Options& options) {
  const AxisList size = list_of(options.size);
  return {name, size, options.strides ? list_of(*options.strides) : size, AxisList(size.size(), 1),
          options.padding};
}

Tensor max_of(const Operand& x, const Window& window, ImageLayout layout, Source at) {
  const Tensor image = channels_last(tensor_of(x, at), layout, at);
  const Windows windows(type_of(image, at), window, at);
  const bool may_be_differentiated = is_float(image.dtype()) && detail::is_observed({&image});
  if (!may_be_differentiated) return from_channels_last(largest_of(image, windows, at), layout, at);
  const auto pool = [&](const detail::Tensors& inputs) {
    const Tensor& given = inputs[0];
    Tensor largest;
    {
      // The gradient function only compares with the largest elements.
      const detail::NoTape unseen;
      largest = largest_of(given, windows, at);
    }
    const auto pullback = [=](const detail::Tensors& gradients) {
      static constexpr char kSelf = 0;
      const SourceScope scope(at);
      const auto run = [&](const detail::Tensors& all) {
        return put_at_largest(all[0], all[1], all[2], windows, at);
      };
      return detail::OwnGradients{
          {detail::composed(windows.composition(&kSelf), {given, largest, gradients[0]}, run, at)},
          {}};
    };
    return detail::OwnResults{{largest}, pullback, {given, largest}};
  };
  return from_channels_last(detail::run_custom({image}, pool, at)[0], layout, at);
}

// The gradient of windows that tile the image goes to all of their taps at once; tap by tap, each
// would take an array of the size of the image.
Tensor sum_of(const Tensor& image, const Windows& windows, Source at) {
  static constexpr char kSelf = 0;
  const auto run = [&](const detail::Tensors& given) {
    const auto plus = [&](Tensor&& a, const Tensor& b) { return add(std::move(a), b, at); };
    return pooled(given[0], windows, Operand(0, at), at, plus);
  };
  const auto total = [&](const Tensor& of) {
    return detail::composed(windows.composition(&kSelf), {of}, run, at);
  };
  if (!windows.tile() || !detail::is_observed({&image})) return total(image);
  const Shape shape = image.shape();
  const auto pool = [&](const detail::Tensors& inputs) {
    const auto pullback = [=](const detail::Tensors& gradients) {
      // A sum over taps makes +0 of -0.
      const Tensor g = windows.taps() == 1 ? gradients[0] : add(gradients[0], 0, at);
      return detail::OwnGradients{{windows.spread(g, shape, at)}, {}};
    };
    const detail::NoTape unseen;
    return detail::OwnResults{{total(inputs[0])}, pullback, {}};
  };
  return detail::run_custom({image}, pool, at)[0];
}

// Of an image with channels last.
Tensor mean_of_last(const Tensor& given, const Window& window, Source at) {
  // 16-bit floats and integers are summed in f32.
  const DType wide = given.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor image = cast(given, wide, at);
  const Windows windows(type_of(image, at), window, at);
  Tensor total = sum_of(image, windows, at);
  if (!windows.pads()) {
    total = divide(std::move(total), Operand(window.taps(), at), at);
  } else {
    // The number of taps of each window that are inside the image: the same sum over a one-channel
    // image of ones.
    Shape shape = image.shape();
    shape.set(0, 1);
    shape.set(shape.rank() - 1, 1);
    const Tensor flat = ones(shape, image.dtype(), at);
    const Windows of_flat(type_of(flat, at), window, at);
    total = divide(std::move(total), sum_of(flat, of_flat, at), at);
  }
  return is_low_precision(given.dtype()) ? cast(total, given.dtype(), at) : total;
}

// Without a tape the sum and its quotient are one program.
Tensor mean_of(const Operand& x, const Window& window, ImageLayout layout, Source at) {
  static constexpr char kSelf = 0;
  const SourceScope scope(at);
  const Tensor image = channels_last(tensor_of(x, at), layout, at);
  const auto mean = [&](const detail::Tensors& given) {
    return mean_of_last(given[0], window, at);
  };
  if (detail::is_observed({&image})) return from_channels_last(mean({image}), layout, at);
  const Windows windows(type_of(image, at), window, at);
  return from_channels_last(detail::composed(windows.composition(&kSelf), {image}, mean, at),
                            layout, at);
}

void check_adaptive(const char* name, const Tensor& image, std::span<const int64_t> sizes,
                    Source at) {
  const TensorType type = type_of(image, at);
  const auto axes = static_cast<int64_t>(sizes.size());
  if (axes < 1 || axes > 3 || type.shape.rank() != axes + 2)
    throw UserError(cat(name, ": ", axes, " sizes for ", type), at,
                    "give the size of every axis but those of the batch and the channels");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim size = type.shape[static_cast<int64_t>(i) + 1];
    if (sizes[i] < 1 || !is_less(0, size))
      throw UserError(cat(name, ": axis ", i + 1, " of ", type, " cannot get size ", sizes[i]), at,
                      "sizes are at least 1");
  }
}

// The largest of each window along an axis. Windows that are shorter than the others have their
// last element twice.
Tensor largest_along(const Tensor& x, int64_t axis, int64_t out, Source at) {
  const int64_t in = x.shape()[axis], most = (in + out - 1) / out + (in % out == 0 ? 0 : 1);
  Tensor windows = x;
  if (in % out != 0) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < out; ++i) {
      const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      for (int64_t k = 0; k < most; ++k) places.push_back(std::min(begin + k, end - 1));
    }
    windows = gather(x, constant(places, at), axis, at);
  }
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i == axis) shape.push_back(out);
    shape.push_back(i == axis ? Dim(in % out == 0 ? in / out : most) : x.shape()[i]);
  }
  return max(reshape(windows, shape, at), {axis + 1}, Keep::no, at);
}

AxisList given_or_ones(const std::optional<std::vector<int64_t>>& list, size_t axes,
                       const char* what, Source at) {
  if (!list) return AxisList(axes, 1);
  if (list->size() != axes)
    throw UserError(cat("extract_patches: ", list->size(), " ", what, " for ", axes, " sizes"), at,
                    "give as many of them as there are sizes");
  return AxisList(std::span<const int64_t>(*list));
}

}  // namespace

Tensor max_pool(const Operand& x, PoolOptions options, Source at) {
  return max_of(x, window_of("max_pool", options), options.layout, at);
}
Tensor max_pool1d(const Operand& x, Pool1dOptions options, Source at) {
  return max_of(x, window_of("max_pool1d", options), options.layout, at);
}
Tensor max_pool3d(const Operand& x, Pool3dOptions options, Source at) {
  return max_of(x, window_of("max_pool3d", options), options.layout, at);
}
Tensor avg_pool(const Operand& x, PoolOptions options, Source at) {
  return mean_of(x, window_of("avg_pool", options), options.layout, at);
}
Tensor avg_pool1d(const Operand& x, Pool1dOptions options, Source at) {
  return mean_of(x, window_of("avg_pool1d", options), options.layout, at);
}
Tensor avg_pool3d(const Operand& x, Pool3dOptions options, Source at) {
  return mean_of(x, window_of("avg_pool3d", options), options.layout, at);
}

Tensor adaptive_max_pool(const Operand& x, const std::vector<int64_t>& sizes, LayoutOptions options,
                         Source at) {
  const SourceScope scope(at);
  Tensor y = channels_last(tensor_of(x, at), options.layout, at);
  check_adaptive("adaptive_max_pool", y, sizes, at);
  for (size_t i = 0; i < sizes.size(); ++i)
    y = largest_along(y, static_cast<int64_t>(i) + 1, sizes[i], at);
  return from_channels_last(y, options.layout, at);
}

// The mean of a rectangle is the mean of the means of its rows.
Tensor adaptive_avg_pool(const Operand& x, const std::vector<int64_t>& sizes, LayoutOptions options,
                         Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  const DType wide = given.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor y = cast(channels_last(given, options.layout, at), wide, at);
  check_adaptive("adaptive_avg_pool", y, sizes, at);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ops::ResampleSpec spec{
        .axis = static_cast<int64_t>(i) + 1, .size = sizes[i], .sampling = Sampling::mean};
    y = bind_op(def_of(&ops::resample), {&y, 1}, spec.attrs(), at);
  }
  if (is_low_precision(given.dtype())) y = cast(y, given.dtype(), at);
  return from_channels_last(y, options.layout, at);
}

Tensor extract_patches(const Operand& x, const std::vector<int64_t>& sizes, PatchOptions options,
                       Source at) {
  if (sizes.empty() || sizes.size() > 3)
    throw UserError(cat("extract_patches: ", sizes.size(), " sizes"), at,
                    "give the size of windows along one, two or three axes");
  const Window window{"extract_patches", AxisList(std::span<const int64_t>(sizes)),
                      given_or_ones(options.strides, sizes.size(), "strides", at),
                      given_or_ones(options.dilations, sizes.size(), "dilations", at),
                      options.padding};
  const Tensor image = channels_last(tensor_of(x, at), options.layout, at);
  const Windows windows(type_of(image, at), window, at);
  if (!is_float(image.dtype()) || !detail::is_observed({&image}))
    return from_channels_last(patches_of(image, windows, at), options.layout, at);
  const auto extract = [&](const detail::Tensors& inputs) {
    const Shape shape = inputs[0].shape();
    const auto pullback = [=](const detail::Tensors& gradients) {
      return detail::OwnGradients{{put_back(shape, gradients[0], windows, at)}, {}};
    };
    return detail::OwnResults{{patches_of(inputs[0], windows, at)}, pullback, {}};
  };
  return from_channels_last(detail::run_custom({image}, extract, at)[0], options.layout, at);
}

}  // namespace tidemark

// Padding by an image's own elements, resizing, and blocks of pixels as channels.
#include <algorithm>
#include <cstring>

#include "tidemark/calls/create.h"
#include "tidemark/calls/images.h"
#include "tidemark/compile/cpu/library_ops.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

namespace {

// ---- padding ------------------------------------------------------------------------------------

struct Slice {
  Dim begin, count;
  int64_t step = 1;
};
Tensor sliced(const Tensor& x, int64_t axis, const Slice& slice, Source at) {
  const auto rank = static_cast<size_t>(x.rank()), place = static_cast<size_t>(axis);
  DimList begins(rank), sizes;
  for (const Dim size : x.shape()) sizes.push_back(size);
  AxisList steps(rank, 1);
  begins[place] = slice.begin;
  sizes[place] = slice.count;
  steps[place] = slice.step;
  return bind_op(def_of(&ops::slice), {&x, 1}, Attrs().add(begins).add(sizes).add(steps), at);
}

// The elements beyond one end: mirrored, or the outermost one repeated.
Tensor beyond(const Tensor& x, int64_t axis, PadMode mode, Dim count, bool after, Source at) {
  const Dim size = x.shape()[axis];
  if (mode == PadMode::edge) {
    Shape shape = x.shape();
    shape.set(axis, count);
    return broadcast_to(sliced(x, axis, {after ? size - 1 : Dim(0), 1}, at), shape, at);
  }
  const int64_t left_out = mode == PadMode::reflect ? 1 : 0;
  const Dim first = after ? size - (1 + left_out) : count + left_out - 1;
  return sliced(x, axis, {first, count, -1}, at);
}

void check_mirror(const TensorType& type, int64_t axis, PadMode mode, Dim width, Source at) {
  const Dim size = type.shape[axis];
  const Dim most = mode == PadMode::symmetric ? size : is_less(0, size) ? size - 1 : Dim(0);
  if (mode == PadMode::edge ? is_less(0, size) : !is_less(most, width)) return;
  if (mode == PadMode::edge)
    throw UserError(cat("pad: axis ", axis, " of ", type, " has no edge to repeat"), at,
                    "pad an empty axis with a value");
  throw UserError(cat("pad: ", width, " elements beyond axis ", axis, " of ", type,
                      " are more than it can mirror"),
                  at, cat("it has ", most, " to mirror: pad with an edge or a value"));
}

// The element that each place of a padded axis shows.
struct Mirror {
  int64_t size, before, left_out;
  bool is_edge;

  int64_t at(int64_t place) const {
    const int64_t i = place - before;
    if (is_edge) return std::clamp<int64_t>(i, 0, size - 1);
    if (i < 0) return left_out - 1 - i;
    return i < size ? i : 2 * size - left_out - 1 - i;
  }
};

// In eager code, line by line of the last axis but one: padded axes are not copied one by one.
class Padded {
 public:
  Padded(const Tensor& x, const Padding2& widths, PadMode mode, Source at)
      : x_(detail::dense(x, at)), from_(detail::array_of(x_, at).data) {
    Shape shape;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      const auto& [before, after] = widths[static_cast<size_t>(axis)];
      mirrors_.push_back(
          {x.shape()[axis], before, mode == PadMode::reflect ? 1 : 0, mode == PadMode::edge});
      shape.push_back(int64_t{x.shape()[axis]} + int64_t{before} + int64_t{after});
    }
    made_ = detail::make_tensor(x.dtype(), shape, at);
    to_ = detail::array_of(made_, at).data;
    // Axes at the end that are not padded move as one element.
    last_ = x.rank() - 1;
    element_ = size_of(x.dtype());
    while (last_ > 0 && shape[last_] == x.shape()[last_]) element_ *= int64_t{shape[last_--]};
  }

  Tensor fill() const {
    const int64_t columns = made_.shape()[last_], size = mirrors_[static_cast<size_t>(last_)].size;
    const int64_t row_bytes = columns * element_;
    if (made_.size() == 0) return made_;
    int64_t rows = 1;
    for (int64_t axis = 0; axis < last_; ++axis) rows *= int64_t{made_.shape()[axis]};
    device::parallel_for(rows, std::max<int64_t>(1, kGrainBytes / row_bytes),
                         [&](int64_t begin, int64_t end, int) {
                           for (int64_t row = begin; row < end; ++row)
                             fill_row(from_ + row_of(row) * size * element_, to_ + row * row_bytes);
                         });
    return made_;
  }

 private:
  static constexpr int64_t kGrainBytes = 64 << 10;

  // The row of x that a row of the result shows.
  int64_t row_of(int64_t row) const {
    int64_t found = 0, stride = 1;
    for (int64_t axis = last_ - 1; axis >= 0; --axis) {
      const Mirror& mirror = mirrors_[static_cast<size_t>(axis)];
      const int64_t count = made_.shape()[axis];
      found += mirror.at(row % count) * stride;
      stride *= mirror.size;
      row /= count;
    }
    return found;
  }
  void fill_row(const std::byte* from, std::byte* to) const {
    const Mirror& mirror = mirrors_[static_cast<size_t>(last_)];
    const int64_t columns = made_.shape()[last_], inside_end = mirror.before + mirror.size;
    const auto copy = [&](int64_t place, int64_t count) {
      std::memcpy(to + place * element_, from + mirror.at(place) * element_,
                  static_cast<size_t>(count * element_));
    };
    for (int64_t place = 0; place < mirror.before; ++place) copy(place, 1);
    copy(mirror.before, mirror.size);
    for (int64_t place = inside_end; place < columns; ++place) copy(place, 1);
  }

  Tensor x_, made_;
  std::vector<Mirror> mirrors_;
  const std::byte* from_;
  std::byte* to_ = nullptr;
  int64_t last_ = 0, element_ = 1;
};

// ---- resizing -----------------------------------------------------------------------------------

constexpr Sampling kSamplings[] = {Sampling::nearest, Sampling::linear, Sampling::cubic};

Tensor resampled(const Tensor& x, int64_t axis, Dim size, const ResizeOptions& options, Source at) {
  const ops::ResampleSpec spec{.axis = axis,
                               .size = size,
                               .sampling = kSamplings[static_cast<size_t>(options.method)],
                               .antialias = options.antialias};
  return bind_op(def_of(&ops::resample), {&x, 1}, spec.attrs(), at);
}

// The height of images, then the width, in eager code: there are no images between the two.
Tensor resampled_at_once(const Tensor& x, const Shape& sizes, const ResizeOptions& options,
                         Source at) {
  const Tensor images = detail::dense(x, at);
  const Tensor made =
      detail::make_tensor(x.dtype(), {x.shape()[0], sizes[0], sizes[1], x.shape()[3]}, at);
  compile::run_resample_images(detail::array_of(images, at),
                               kSamplings[static_cast<size_t>(options.method)], options.antialias,
                               detail::array_of(made, at));
  return made;
}
bool is_concrete(const Tensor& x) {
  return !detail::is_observed({&x}) &&
         detail::TensorState::of(x)->kind == detail::TensorState::Kind::concrete;
}

// Of any dtype: element (2 i + 1) in / (2 out), in whole numbers.
Tensor nearest(const Tensor& x, int64_t axis, Dim size, Source at) {
  const Tensor place = arange(Operand(size, at), at) * 2 + 1;
  const Tensor index = floor_divide(cast(place, DType::i64, at) * x.shape()[axis], size * 2);
  return gather(x, index, axis, at);
}

// Along all axes in one pass, in eager code: the place of each pixel is looked up.
Tensor nearest_at_once(const Tensor& x, const Shape& sizes, Source at) {
  std::vector<int64_t> places = {0};
  Dim pixels = 1;
  for (int64_t axis = 0; axis < sizes.rank(); ++axis) {
    const int64_t size = x.shape()[axis + 1], count = sizes[axis];
    std::vector<int64_t> wider;
    for (const int64_t place : places)
      for (int64_t i = 0; i < count; ++i)
        wider.push_back(place * size + (2 * i + 1) * size / (2 * count));
    places = std::move(wider);
    pixels = pixels * size;
  }
  const Tensor flat = reshape(x, Shape{x.shape()[0], pixels, x.shape()[-1]}, at);
  Shape shape{x.shape()[0]};
  for (const Dim size : sizes) shape.push_back(size);
  shape.push_back(x.shape()[-1]);
  return reshape(gather(flat, Operand(constant(places)), 1, at), shape, at);
}

// Axes that shrink come first, from the first one on, whose rows are long; those that grow come
// last, from the last one on: so the fewest elements are computed.
std::vector<int64_t> order_of(const Shape& from, const Shape& sizes) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < sizes.rank(); ++i)
    if (is_less(sizes[i], from[i + 1])) order.push_back(i);
  for (int64_t i = sizes.rank() - 1; i >= 0; --i)
    if (!is_less(sizes[i], from[i + 1]) && sizes[i] != from[i + 1]) order.push_back(i);
  return order;
}

void check_sizes(const Tensor& image, const Shape& sizes, Source at) {
  const TensorType type = type_of(image, at);
  if (sizes.rank() < 1 || sizes.rank() > 3 || type.shape.rank() != sizes.rank() + 2)
    throw UserError(cat("resize: ", sizes.rank(), " sizes for ", type), at,
                    "give the size of every axis but those of the batch and the channels");
  for (int64_t i = 0; i < sizes.rank(); ++i)
    if (!is_less(0, sizes[i]) || !is_less(0, type.shape[i + 1]))
      throw UserError(
          cat("resize: axis ", i + 1, " of ", type, " cannot get size ", written(sizes[i])), at,
          "sizes are at least 1");
}

// ---- pixels and channels ------------------------------------------------------------------------

void check_factor(const char* name, const Tensor& x, int64_t factor, Source at) {
  if (x.rank() != 4)
    throw UserError(cat(name, ": needs an image of four axes, got ", type_of(x, at)), at,
                    "one image alone: td::expand_dims(x, 0)");
  if (factor < 1)
    throw UserError(cat(name, ": the factor must be at least 1, got ", factor), at,
                    "2 makes blocks of 2 x 2 pixels");
}

}  // namespace

Tensor pad(const Operand& x, const Padding2& widths, PadMode mode, Source at) {
  const SourceScope scope(at);
  Tensor y = tensor_of(x, at);
  const TensorType type = type_of(y, at);
  if (static_cast<int64_t>(widths.size()) != type.shape.rank())
    throw UserError(
        cat("pad: ", widths.size(), " widths for the ", type.shape.rank(), " axes of ", type), at,
        "give {before, after} for every axis");
  for (int64_t axis = y.rank() - 1; axis >= 0; --axis) {
    const auto& [before, after] = widths[static_cast<size_t>(axis)];
    if (before.is_any() || after.is_any())
      throw UserError(cat("pad: widths must not be negative, got {", written(before), ", ",
                          written(after), "}"),
                      at, "use a slice to make a tensor smaller");
    if (before == 0 && after == 0) continue;
    check_mirror(type, axis, mode, before, at);
    check_mirror(type, axis, mode, after, at);
  }
  if (y.rank() > 0 && is_concrete(y)) return Padded(y, widths, mode, at).fill();
  // The last axes first: what is copied again is then copied in long pieces.
  for (int64_t axis = y.rank() - 1; axis >= 0; --axis) {
    const auto& [before, after] = widths[static_cast<size_t>(axis)];
    std::vector<Tensor> parts;
    if (before == 0 && after == 0) continue;
    if (before != 0) parts.push_back(beyond(y, axis, mode, before, false, at));
    parts.push_back(y);
    if (after != 0) parts.push_back(beyond(y, axis, mode, after, true, at));
    y = concat(parts, axis, at);
  }
  return y;
}

Tensor resize(const Operand& x, const Shape& sizes, ResizeOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  Tensor y = detail::channels_last(given, options.layout, at);
  check_sizes(y, sizes, at);
  const bool keeps = options.method == Resizing::nearest;
  const bool picks = keeps && !is_float(given.dtype());
  if (keeps && !detail::is_observed({&y}))
    return detail::from_channels_last(nearest_at_once(y, sizes, at), options.layout, at);
  if (!picks && given.dtype() != DType::f64) y = cast(y, DType::f32, at);
  const std::vector<int64_t> order = order_of(y.shape(), sizes);
  if (!keeps && order == std::vector<int64_t>{0, 1} && sizes.rank() == 2 && is_concrete(y)) {
    y = resampled_at_once(y, sizes, options, at);
  } else {
    for (const int64_t i : order)
      y = picks ? nearest(y, i + 1, sizes[i], at) : resampled(y, i + 1, sizes[i], options, at);
  }
  if (is_low_precision(given.dtype())) y = cast(y, given.dtype(), at);
  return detail::from_channels_last(y, options.layout, at);
}

Tensor pixel_shuffle(const Operand& x, int64_t factor, LayoutOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor image = detail::channels_last(tensor_of(x, at), options.layout, at);
  check_factor("pixel_shuffle", image, factor, at);
  const Dim n = image.shape()[0], height = image.shape()[1], width = image.shape()[2];
  const int64_t channels = image.shape()[3];
  if (channels % (factor * factor) != 0)
    throw UserError(cat("pixel_shuffle: ", channels, " channels of ", type_of(image, at),
                        " are no blocks of ", factor, " x ", factor),
                    at, "the channels must be a multiple of the factor squared");
  const int64_t kept = channels / (factor * factor);
  const Tensor blocks = reshape(image, {n, height, width, kept, factor, factor}, at);
  const Tensor y = reshape(transpose(blocks, {0, 1, 4, 2, 5, 3}, at),
                           {n, height * factor, width * factor, kept}, at);
  return detail::from_channels_last(y, options.layout, at);
}

Tensor pixel_unshuffle(const Operand& x, int64_t factor, LayoutOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor image = detail::channels_last(tensor_of(x, at), options.layout, at);
  check_factor("pixel_unshuffle", image, factor, at);
  const Dim n = image.shape()[0], height = image.shape()[1], width = image.shape()[2];
  const Dim channels = image.shape()[3];
  if (height % factor != 0 || width % factor != 0)
    throw UserError(cat("pixel_unshuffle: ", type_of(image, at), " is not made of blocks of ",
                        factor, " x ", factor, " pixels"),
                    at, "height and width must be multiples of the factor");
  const Tensor blocks =
      reshape(image, {n, height / factor, factor, width / factor, factor, channels}, at);
  const Tensor y = reshape(transpose(blocks, {0, 1, 3, 5, 2, 4}, at),
                           {n, height / factor, width / factor, channels * factor * factor}, at);
  return detail::from_channels_last(y, options.layout, at);
}

}  // namespace tidemark

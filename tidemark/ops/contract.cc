#include "tidemark/ops/contract.h"

#include <algorithm>
#include <cmath>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/size.h"

namespace tidemark::ops {

ConvSpec ConvSpec::from(const Attrs& attrs) {
  ConvSpec spec;
  Attrs::Reader read = attrs.read();
  const std::span<const int64_t> strides = read.integers();
  spec.axes = std::min(strides.size(), kMostAxes);
  std::ranges::copy(strides.first(spec.axes), spec.stride);
  std::ranges::copy(read.sizes().first(spec.axes), spec.pad_low);
  std::ranges::copy(read.sizes().first(spec.axes), spec.pad_high);
  std::ranges::copy(read.integers().first(spec.axes), spec.dilation);
  spec.groups = read.integer();
  const std::span<const int64_t> spread = read.integers();
  std::ranges::copy(spread.first(std::min(spread.size(), spec.axes)), spec.spread);
  spec.by_channel = read.boolean();
  if (!read.ended()) spec.taps = AxisList(read.integers());
  return spec;
}

Attrs ConvSpec::attrs() const {
  const auto numbers = [&](const int64_t* list) { return std::span(list, axes); };
  const auto sizes = [&](const Dim* list) { return std::span(list, axes); };
  Attrs list = Attrs()
                   .add(numbers(stride))
                   .add(sizes(pad_low))
                   .add(sizes(pad_high))
                   .add(numbers(dilation))
                   .add(groups)
                   .add(is_spread() ? numbers(spread) : std::span<const int64_t>())
                   .add(by_channel);
  if (!taps.empty()) list.add(taps);
  return list;
}

Dim ConvSpec::out_size(size_t axis, Dim in, int64_t kernel) const {
  const int64_t gap = spread[axis] - 1;
  const int64_t reach = dilation[axis] * (kernel - 1) + 1;
  if (in.is_traced()) {
    const Dim padded = in * spread[axis] + pad_low[axis] + pad_high[axis];
    return is_less(padded, reach + gap) ? Dim(0) : (padded - (reach + gap)) / stride[axis] + 1;
  }
  // If the size of the image is known, so is the padding. Gaps are between pixels.
  const int64_t covered = in == 0 ? 0 : int64_t{in} * spread[axis] - gap;
  const int64_t padded = covered + pad_low[axis].number() + pad_high[axis].number();
  return padded < reach ? Dim(0) : Dim((padded - reach) / stride[axis] + 1);
}

namespace rule {

namespace {

TensorType rows_by_columns(const InferContext& context, std::string_view name) {
  const TensorType& a = context.operands[0];
  const TensorType& b = context.operands[1];
  if (a.shape.rank() < 2 || b.shape.rank() < 2) {
    throw UserError(cat(name, ": operands need at least two axes, got ", a, " x ", b), context.at,
                    "add an axis: td::expand_dims(v, 0) or td::expand_dims(v, 1)");
  }
  if (a.shape[-1] != b.shape[-2]) {
    const bool flipped = a.shape[-1] == b.shape[-1];
    throw UserError(cat(name, ": inner sizes differ: ", a, " x ", b, " (", a.shape[-1], " and ",
                        b.shape[-2], ")"),
                    context.at,
                    flipped
                        ? "did you mean to transpose the second operand? {.transpose_b = true}"
                        : "the last size of the first must equal the last but one of the second");
  }
  Shape shape, other;
  for (int64_t i = 0; i < a.shape.rank() - 2; ++i) shape.push_back(a.shape[i]);
  for (int64_t i = 0; i < b.shape.rank() - 2; ++i) other.push_back(b.shape[i]);
  broadcast_into(shape, other, name, context.at);
  shape.push_back(a.shape[-2]);
  shape.push_back(b.shape[-1]);
  return {a.dtype, shape};
}

}  // namespace

TensorType infer_matmul(const InferContext& context) { return rows_by_columns(context, "matmul"); }
TensorType infer_distances(const InferContext& context) {
  return rows_by_columns(context, "distances");
}

TensorType infer_weighted_differences(const InferContext& context) {
  const std::string_view name = "weighted_differences";
  const TensorType &weights = context.operands[0], &a = context.operands[1],
                   &b = context.operands[2];
  const TensorType product[] = {weights, b};
  TensorType result = rows_by_columns({context.op, product, context.attrs, context.at}, name);
  if (a.shape.rank() < 2 || a.shape[-2] != result.shape[-2] || a.shape[-1] != result.shape[-1])
    throw UserError(cat(name, ": weights ", weights, " of points ", b, " need points [..., ",
                        result.shape[-2], ", ", result.shape[-1], "] to differ from, got ", a),
                    context.at, "the points of a have a row of weights each");
  broadcast_into(result.shape, a.shape, name, context.at);
  return result;
}

TensorType infer_accumulate(const InferContext& context) {
  const TensorType product =
      infer_matmul({context.op, context.operands.subspan(1), context.attrs, context.at});
  if (context.operands[0] != product ||
      (product.dtype != DType::f32 && product.dtype != DType::f64)) {
    throw UserError(cat("accumulate: takes products of f32 or f64 and a sum of the same type, got ",
                        context.operands[0], " and ", product),
                    context.at, "cast the sum to the product's type");
  }
  return product;
}

namespace {

Term swap_last(Term x) {
  AxisList order;
  for (int64_t i = 0; i < x.shape().rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return term::transpose(x, order);
}

// All matrices of a batch stacked into one.
Term stacked(Term x) {
  const Shape& shape = x.shape();
  Dim rows = 1;
  for (int64_t i = 0; i + 1 < shape.rank(); ++i) rows = rows * shape[i];
  return term::reshape(x, Shape{rows, shape[-1]});
}

}  // namespace

Term grad_matmul(const GradContext& context, int index) {
  const Term a = context.operands[0];
  const Term b = context.operands[1];
  if (index == 0) return term::sum_to(matmul.apply({context.g, swap_last(b)}, {}), a.shape());
  // If one matrix serves the whole batch, its gradient is one product instead of a sum of products.
  if (b.shape().rank() == 2 && a.shape().rank() > 2)
    return matmul.apply({swap_last(stacked(a)), stacked(context.g)}, {});
  return term::sum_to(matmul.apply({swap_last(a), context.g}, {}), b.shape());
}

namespace {

// Row-major number of the first element of the matrix that output index belongs to.
int64_t matrix_of(const ArrayRef& x, std::span<const int64_t> index) {
  const Strides strides = contiguous_strides(x.shape);
  const auto batch = static_cast<size_t>(x.rank() - 2);
  const size_t shift = index.size() - 2 - batch;
  int64_t at = 0;
  for (size_t i = 0; i < batch; ++i) {
    if (x.shape[static_cast<int64_t>(i)] != 1) at += index[i + shift] * strides[i];
  }
  return at;
}

}  // namespace

void reference_matmul(const ReferenceContext& context) {
  const ArrayRef& a = context.operands[0];
  const ArrayRef& b = context.operands[1];
  const int64_t inner = a.shape[-1];
  const int64_t columns = b.shape[-1];
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t row = matrix_of(a, index) + index[index.size() - 2] * inner;
    const int64_t column = matrix_of(b, index) + index[index.size() - 1];
    if (is_float(a.dtype)) {
      long double total = 0;
      for (int64_t k = 0; k < inner; ++k) {
        total += reference::read_float(a, row + k) * reference::read_float(b, column + k * columns);
      }
      reference::write(context.result, i, total);
      return;
    }
    uint64_t total = 0;
    for (int64_t k = 0; k < inner; ++k) {
      total += static_cast<uint64_t>(reference::read_integer(a, row + k)) *
               static_cast<uint64_t>(reference::read_integer(b, column + k * columns));
    }
    reference::write(context.result, i, static_cast<int64_t>(total));
  });
}

namespace {

// The first of the points that are columns, 0 where it is not finite: a constant.
Term offset_of(Term points) {
  DimList size(static_cast<size_t>(points.shape().rank()));
  for (int64_t i = 0; i < points.shape().rank(); ++i)
    size[static_cast<size_t>(i)] = points.shape()[i];
  size.back() = 1;
  const Term first = term::slice(points, DimList(size.size()), size, AxisList(size.size(), 1));
  const Term finite = term::equal(first - first, first.like(0));
  return stop_gradient.apply({term::where(finite, first, first.like(0))}, {});
}

}  // namespace

// Where two points meet the slope is 0. That of 16-bit floats is computed in f32, where it is
// finite for all points that do not meet.
Term grad_distances(const GradContext& context, int index) {
  const Term operand = context.operands[static_cast<size_t>(index)];
  const auto in_dtype = [](Term x, DType dtype) {
    return x.dtype() == dtype ? x : term::cast(x, dtype);
  };
  const bool is_short = size_of(operand.dtype()) == 2;
  const auto wide = [&](Term x) { return in_dtype(x, is_short ? DType::f32 : x.dtype()); };
  const Term a = wide(context.operands[0]), b = swap_last(wide(context.operands[1]));
  const Term y = wide(context.result), g = wide(context.g);
  if (y.shape().open_size() == 0 || operand.shape().open_size() == 0) return operand.like(0);
  const Term meet = term::equal(y, y.like(0));
  const Term weight = term::where(meet, y.like(0), g / term::where(meet, y.like(1), y));
  const Term slope = index == 0
                         ? weighted_differences.apply({weight, a, b}, {})
                         : swap_last(weighted_differences.apply({swap_last(weight), b, a}, {}));
  return in_dtype(term::sum_to(slope, operand.shape()), operand.dtype());
}

// The gradient by the weights is taken apart into products, where differences of points lose
// digits. So it is computed in the next wider dtype, whose digits outlast points that are as close
// as their own dtype allows. In f64, which has none, a point of b, which changes no difference, is
// subtracted first: a common offset of all points costs no digits.
Term grad_weighted_differences(const GradContext& context, int index) {
  const Term weights = context.operands[0], operand = context.operands[static_cast<size_t>(index)];
  if (index == 1)
    return term::sum_to(context.g * term::sum(weights, AxisList{weights.shape().rank() - 1}, true),
                        operand.shape());
  if (index == 2)
    return term::sum_to(-matmul.apply({swap_last(weights), context.g}, {}), operand.shape());
  const DType narrow = operand.dtype(), wide = size_of(narrow) == 2 ? DType::f32 : DType::f64;
  const auto in_dtype = [](Term x, DType dtype) {
    return x.dtype() == dtype ? x : term::cast(x, dtype);
  };
  const Term a = in_dtype(context.operands[1], wide);
  const Term b = swap_last(in_dtype(context.operands[2], wide)), g = in_dtype(context.g, wide);
  const Term offset = offset_of(b);
  const Term all = term::sum(g * (a - swap_last(offset)), AxisList{g.shape().rank() - 1}, true);
  const Term slope = all - matmul.apply({g, b - offset}, {});
  return in_dtype(term::sum_to(slope, operand.shape()), narrow);
}

void reference_weighted_differences(const ReferenceContext& context) {
  const ArrayRef &weights = context.operands[0], &a = context.operands[1], &b = context.operands[2];
  const int64_t points = b.shape[-2], size = b.shape[-1];
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t row = index[index.size() - 2], column = index[index.size() - 1];
    const int64_t weight = matrix_of(weights, index) + row * points;
    const int64_t from = matrix_of(a, index) + row * size + column;
    long double total = 0;
    for (int64_t k = 0; k < points; ++k) {
      const long double apart = reference::read_float(a, from) -
                                reference::read_float(b, matrix_of(b, index) + k * size + column);
      total += reference::read_float(weights, weight + k) * apart;
    }
    reference::write(context.result, i, total);
  });
}

void reference_distances(const ReferenceContext& context) {
  const ArrayRef &a = context.operands[0], &b = context.operands[1];
  const int64_t inner = a.shape[-1], columns = b.shape[-1];
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t row = matrix_of(a, index) + index[index.size() - 2] * inner;
    const int64_t column = matrix_of(b, index) + index[index.size() - 1];
    long double total = 0;
    for (int64_t k = 0; k < inner; ++k) {
      const long double apart =
          reference::read_float(a, row + k) - reference::read_float(b, column + k * columns);
      total += apart * apart;
    }
    reference::write(context.result, i, std::sqrt(total));
  });
}

namespace {

struct ConvNames {
  std::string_view name, image, kernel;
};
constexpr ConvNames kConvNames[] = {
    {"conv2d", "[n, height, width, in]", "[height, width, in, out]"},
    {"conv3d", "[n, depth, height, width, in]", "[depth, height, width, in, out]"}};

const NamedOp& conv_of(size_t axes) { return axes == 2 ? conv2d : conv3d; }

// Bounded such that sizes do not overflow.
void check_spread(const InferContext& context, const ConvNames& names, const ConvSpec& spec) {
  constexpr int64_t most = int64_t{1} << 40;
  for (size_t i = 0; i < spec.axes; ++i) {
    const int64_t size = context.operands[0].shape[static_cast<int64_t>(i) + 1].known_or(1);
    if (spec.spread[i] > most / std::max<int64_t>(1, size))
      throw UserError(
          cat(names.name, ": ", context.operands[0], " cannot be spread by ", spec.spread[i]),
          context.at, "the result must fit in memory");
  }
}

void check_conv(const InferContext& context, const ConvNames& names, size_t axes) {
  const TensorType& x = context.operands[0];
  const TensorType& w = context.operands[1];
  const auto rank = static_cast<int64_t>(axes) + 2;
  if (x.shape.rank() != rank || w.shape.rank() != rank) {
    throw UserError(cat(names.name, ": needs an image ", names.image, " and a kernel ",
                        names.kernel, ", got ", x, " and ", w),
                    context.at, "one image alone: td::expand_dims(x, 0)");
  }
  if (!is_float(x.dtype)) {
    throw UserError(cat(names.name, ": takes floats, got ", x.dtype), context.at,
                    "cast it first: td::cast(x, td::f32)");
  }
  const ConvSpec spec = ConvSpec::from(context.attrs);
  for (size_t axis = 0; axis < axes; ++axis) {
    if (spec.stride[axis] < 1 || spec.dilation[axis] < 1 || spec.spread[axis] < 1) {
      throw UserError(
          cat(names.name, ": strides and dilations must be at least 1, got ",
              std::min(spec.stride[axis], spec.spread[axis]), " and ", spec.dilation[axis]),
          context.at, "leave them out for 1");
    }
  }
  check_spread(context, names, spec);
  const Dim in = w.shape[-2], out = w.shape[-1], channels = x.shape[-1];
  if (spec.groups < 1 || channels != in * spec.groups || out % spec.groups != 0) {
    throw UserError(cat(names.name, ": ", x, " has ", channels, " channels, the kernel ", w,
                        " takes ", in, " in each of ", spec.groups, " groups and gives ", out),
                    context.at,
                    "channels must be the kernel's inputs times the groups, and the outputs a "
                    "multiple of the groups");
  }
}

bool can_add_by_channel(const ConvSpec& spec, DType dtype) {
  return spec.axes == 2 && spec.groups == 1 && !spec.is_spread() &&
         (dtype == DType::f32 || dtype == DType::f64);
}

TensorType infer_conv(const InferContext& context, size_t axes) {
  check_conv(context, kConvNames[axes - 2], axes);
  const TensorType& x = context.operands[0];
  const TensorType& w = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  if (spec.by_channel && !can_add_by_channel(spec, x.dtype)) {
    throw UserError(cat(kConvNames[axes - 2].name,
                        ": adds up by channel only flat images of f32 or "
                        "f64 in one group, got ",
                        x, " in ", spec.groups),
                    context.at, "leave by_channel out");
  }
  Shape shape{x.shape[0]};
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i);
    shape.push_back(spec.out_size(i, x.shape[axis + 1], w.shape[axis]));
  }
  shape.push_back(w.shape[-1]);
  return {x.dtype, shape};
}

// Moves the group index of the last axis, [..., groups * each], to axis `axis`, and that axis'
// share of each group to the last: reshape, transpose, reshape back.
Term swap_within_groups(Term x, int64_t axis, int64_t groups) {
  const Shape& shape = x.shape();
  const int64_t last = shape.rank() - 1;
  Shape open = shape;
  open.set(last, groups);
  open.push_back(shape[last] / groups);
  AxisList order;
  for (int64_t i = 0; i <= last + 1; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(last + 1)]);
  Shape closed = shape;
  closed.set(axis, shape[last] / groups);
  closed.set(last, shape[axis] * groups);
  return term::reshape(term::transpose(term::reshape(x, open), order), closed);
}

// The first axis moved to the place before the last: [n, height, width, c] as [height, width, n,
// c].
Term first_inward(Term x) {
  AxisList order;
  for (int64_t i = 1; i + 1 < x.shape().rank(); ++i) order.push_back(i);
  order.push_back(0);
  order.push_back(x.shape().rank() - 1);
  return term::transpose(x, order);
}

// Every window turned around: `first` is the number of the first axis of the windows.
Term turned(Term x, size_t first, size_t axes) {
  DimList begin(static_cast<size_t>(x.shape().rank()));
  AxisList step(begin.size(), 1);
  for (size_t i = first; i < first + axes; ++i) {
    begin[i] = x.shape()[static_cast<int64_t>(i)] - 1;
    step[i] = -1;
  }
  return slice.apply({x}, Attrs().add(begin).add(x.shape()).add(step));
}

// One axis of a convolution, in numbers.
struct ConvAxis {
  int64_t in, out, taps, low, stride, dilation, spread;
  int64_t reach() const { return dilation * (taps - 1); }
};
ConvAxis axis_of(const GradContext& context, const ConvSpec& spec, size_t i) {
  const auto axis = static_cast<int64_t>(i);
  return {.in = context.operands[0].shape()[axis + 1],
          .out = context.g.shape()[axis + 1],
          .taps = context.operands[1].shape()[axis],
          .low = spec.pad_low[i].number(),
          .stride = spec.stride[i],
          .dilation = spec.dilation[i],
          .spread = spec.spread[i]};
}

// The convolution of g, spread by the strides, with the windows turned around, whose results are
// where the pixels are.
ConvSpec back_of(const GradContext& context, const ConvSpec& spec) {
  ConvSpec back;
  back.axes = spec.axes;
  back.groups = spec.groups;
  for (size_t i = 0; i < spec.axes; ++i) {
    const ConvAxis axis = axis_of(context, spec, i);
    const int64_t low = axis.reach() - axis.low;
    back.stride[i] = axis.spread;
    back.spread[i] = axis.stride;
    back.dilation[i] = axis.dilation;
    back.pad_low[i] = low;
    back.pad_high[i] =
        (axis.in - 1) * axis.spread - (axis.out - 1) * axis.stride + axis.reach() - low;
  }
  return back;
}

// The gradient by the image: the kernel is turned around, and its input and output channels are
// exchanged.
Term by_image(const GradContext& context, const ConvSpec& spec) {
  const Term kernel = swap_within_groups(turned(context.operands[1], 0, spec.axes),
                                         static_cast<int64_t>(spec.axes), spec.groups);
  return conv_of(spec.axes).apply({context.g, kernel}, back_of(context, spec).attrs());
}

// As ops::conv_kernel; the sizes of the kernel are those of `like`.
Term in_groups(Term image, Term by, ConvSpec spec, Term like) {
  for (size_t i = 0; i < spec.axes; ++i) spec.taps.push_back(like.shape()[static_cast<int64_t>(i)]);
  return conv_kernel.apply({image, by}, spec.attrs());
}

// The gradient by the kernel is the convolution of x with g as the kernel: the batch takes the role
// of the channels, and strides and dilations are exchanged. It adds up image by image.
Term by_kernel(const GradContext& context, const ConvSpec& spec) {
  const Term x = context.operands[0], w = context.operands[1];
  if (spec.groups > 1) return in_groups(x, context.g, spec, w);
  ConvSpec over = spec;
  std::swap(over.stride, over.dilation);
  over.by_channel = can_add_by_channel(over, x.dtype());
  const Term image = swap_within_groups(x, 0, spec.groups);
  const Term taps = conv_of(spec.axes).apply({image, first_inward(context.g)}, over.attrs());
  // Pixels that the strides never reach would become taps beyond the last one: they are cropped.
  const Shape& shape = w.shape();
  DimList size{shape[-2]};
  for (size_t i = 0; i < spec.axes; ++i) size.push_back(shape[static_cast<int64_t>(i)]);
  size.push_back(shape[-1]);
  return first_inward(term::slice(taps, DimList(size.size()), size, AxisList(size.size(), 1)));
}

// Of a convolution of spread pixels in groups, whose strides are 1: x takes the role of the result.
// The taps come out in reverse, and those channels of a group that come in are the outputs.
Term by_kernel_of_spread_groups(const GradContext& context, const ConvSpec& spec) {
  const Term taps =
      in_groups(context.g, context.operands[0], back_of(context, spec), context.operands[1]);
  return turned(swap_within_groups(taps, static_cast<int64_t>(spec.axes), spec.groups), 0,
                spec.axes);
}

// Of a convolution of spread pixels: with the roles of x and g exchanged nothing is spread, so that
// both are read in place. The taps come out in reverse.
Term by_kernel_of_spread(const GradContext& context, const ConvSpec& spec) {
  const auto is_one = [](int64_t stride) { return stride == 1; };
  if (spec.groups > 1 && std::all_of(spec.stride, spec.stride + spec.axes, is_one))
    return by_kernel_of_spread_groups(context, spec);
  ConvSpec over = back_of(context, spec);
  std::swap(over.stride, over.dilation);
  const Term image = swap_within_groups(context.g, 0, spec.groups);
  const Term taps =
      conv_of(spec.axes).apply({image, first_inward(context.operands[0])}, over.attrs());
  return first_inward(turned(swap_within_groups(taps, 0, spec.groups), 1, spec.axes));
}

// The pixel that a tap of an output meets, or -1.
int64_t met(const ConvSpec& spec, size_t axis, int64_t output, int64_t tap, int64_t size) {
  const int64_t place =
      output * spec.stride[axis] + tap * spec.dilation[axis] - spec.pad_low[axis].number();
  const bool is_pixel = place >= 0 && place % spec.spread[axis] == 0;
  return is_pixel && place / spec.spread[axis] < size ? place / spec.spread[axis] : -1;
}

}  // namespace

TensorType infer_conv2d(const InferContext& context) { return infer_conv(context, 2); }
TensorType infer_conv3d(const InferContext& context) { return infer_conv(context, 3); }

TensorType infer_accumulate_conv2d(const InferContext& context) {
  const TensorType added =
      infer_conv2d({context.op, context.operands.subspan(1), context.attrs, context.at});
  if (context.operands[0] != added || !ConvSpec::from(context.attrs).by_channel) {
    throw UserError(cat("accumulate_conv2d: takes a convolution by channel and a sum of the same "
                        "type, got ",
                        context.operands[0], " and ", added),
                    context.at, "cast the sum to the type of the convolution");
  }
  return added;
}

TensorType infer_conv_kernel(const InferContext& context) {
  const TensorType &x = context.operands[0], &by = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  TIDEMARK_CHECK(spec.axes >= 2 && spec.taps.size() == spec.axes, "conv_kernel: ", spec.axes,
                 " strides and ", spec.taps.size(), " taps");
  TensorType kernel{x.dtype, {}};
  for (const int64_t count : spec.taps) kernel.shape.push_back(count);
  const Dim channels = x.shape.rank() == 0 ? Dim(0) : x.shape[-1];
  kernel.shape.push_back(spec.groups > 0 ? channels / spec.groups : channels);
  kernel.shape.push_back(by.shape.rank() == 0 ? Dim(0) : by.shape[-1]);
  const TensorType operands[] = {x, kernel};
  const TensorType result =
      infer_conv({context.op, operands, context.attrs, context.at}, spec.axes);
  if (spec.is_spread() || by != result) {
    throw UserError(cat("conv_kernel: the gradient ", by, " is not that of ", result), context.at,
                    "it has the type of what the convolution gives, of pixels that are not spread");
  }
  return kernel;
}

// It is linear in both operands: the convolution with a kernel g times `by` is g times the result.
Term grad_conv_kernel(const GradContext& context, int index) {
  const Term x = context.operands[0], by = context.operands[1];
  const Term operand = context.operands[static_cast<size_t>(index)];
  if (context.result.shape().open_size() == 0 || operand.shape().open_size() == 0)
    return operand.like(0);
  ConvSpec spec = ConvSpec::from(context.attrs);
  spec.taps.clear();
  if (index == 1) return conv_of(spec.axes).apply({x, context.g}, spec.attrs());
  const Term convolved[] = {x, context.g};
  return by_image({.g = by, .operands = convolved, .result = by, .attrs = context.attrs}, spec);
}

Term grad_conv(const GradContext& context, int index) {
  const Term operand = context.operands[static_cast<size_t>(index)];
  // An empty result has a gradient of zeros.
  if (context.result.shape().open_size() == 0) return operand.like(0);
  const ConvSpec spec = ConvSpec::from(context.attrs);
  if (index == 0) return by_image(context, spec);
  return spec.is_spread() ? by_kernel_of_spread(context, spec) : by_kernel(context, spec);
}

// Taps that meet no pixel are skipped, not multiplied by zero.
void reference_conv(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const ArrayRef& w = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  const int64_t channels = w.shape[-2], outputs = w.shape[-1];
  const int64_t per_group = outputs / spec.groups;
  Shape windows;
  for (size_t i = 0; i < spec.axes; ++i) windows.push_back(w.shape[static_cast<int64_t>(i)]);
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t output = index[spec.axes + 1], group = output / per_group;
    long double total = 0;
    reference::for_each_index(windows, [&](std::span<const int64_t> tap, int64_t number) {
      int64_t pixel = index[0];
      for (size_t axis = 0; axis < spec.axes; ++axis) {
        const int64_t size = x.shape[static_cast<int64_t>(axis) + 1];
        const int64_t place = met(spec, axis, index[axis + 1], tap[axis], size);
        if (place < 0) return;
        pixel = pixel * size + place;
      }
      for (int64_t c = 0; c < channels; ++c) {
        total += reference::read_float(x, pixel * x.shape[-1] + group * channels + c) *
                 reference::read_float(w, (number * channels + c) * outputs + output);
      }
    });
    reference::write(context.result, i, total);
  });
}

// The sum over all outputs that a tap is part of.
void reference_conv_kernel(const ReferenceContext& context) {
  const ArrayRef &x = context.operands[0], &by = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  const int64_t channels = context.result.shape[-2], outputs = by.shape[-1];
  Shape places{by.shape[0]};
  for (size_t i = 0; i < spec.axes; ++i) places.push_back(by.shape[static_cast<int64_t>(i) + 1]);
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t output = index[spec.axes + 1], group = output / (outputs / spec.groups);
    const int64_t channel = group * channels + index[spec.axes];
    long double total = 0;
    reference::for_each_index(places, [&](std::span<const int64_t> at, int64_t number) {
      int64_t pixel = at[0];
      for (size_t axis = 0; axis < spec.axes; ++axis) {
        const int64_t size = x.shape[static_cast<int64_t>(axis) + 1];
        const int64_t place = met(spec, axis, at[axis + 1], index[axis], size);
        if (place < 0) return;
        pixel = pixel * size + place;
      }
      total += reference::read_float(x, pixel * x.shape[-1] + channel) *
               reference::read_float(by, number * outputs + output);
    });
    reference::write(context.result, i, total);
  });
}

namespace {

// Adds the first operand to what the result has.
void add_first(const ReferenceContext& context) {
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t>, int64_t i) {
    reference::write(
        context.result, i,
        reference::read_float(context.operands[0], i) + reference::read_float(context.result, i));
  });
}

}  // namespace

void reference_accumulate(const ReferenceContext& context) {
  reference_matmul({context.op, context.operands.subspan(1), context.result, context.attrs});
  add_first(context);
}

void reference_accumulate_conv2d(const ReferenceContext& context) {
  reference_conv({context.op, context.operands.subspan(1), context.result, context.attrs});
  add_first(context);
}

}  // namespace rule
}  // namespace tidemark::ops

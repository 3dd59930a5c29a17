#include "tidemark/ops/contract.h"

#include <algorithm>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/size.h"

namespace tidemark::ops {

ConvSpec ConvSpec::from(const Attrs& attrs) {
  ConvSpec spec;
  Attrs::Reader read = attrs.read();
  std::ranges::copy(read.integers().first(2), spec.stride);
  std::ranges::copy(read.sizes().first(2), spec.pad_low);
  std::ranges::copy(read.sizes().first(2), spec.pad_high);
  std::ranges::copy(read.integers().first(2), spec.dilation);
  spec.groups = read.integer();
  spec.by_channel = read.boolean();
  return spec;
}

Attrs ConvSpec::attrs() const {
  using Numbers = std::span<const int64_t>;
  using Sizes = std::span<const Dim>;
  return Attrs()
      .add(Numbers(stride))
      .add(Sizes(pad_low))
      .add(Sizes(pad_high))
      .add(Numbers(dilation))
      .add(groups)
      .add(by_channel);
}

Dim ConvSpec::out_size(int axis, Dim in, int64_t kernel) const {
  const int64_t reach = dilation[axis] * (kernel - 1) + 1;
  // If the size of the image is known, so is the padding.
  const Dim padded = in.is_traced()
                         ? in + pad_low[axis] + pad_high[axis]
                         : Dim(int64_t{in} + pad_low[axis].number() + pad_high[axis].number());
  return is_less(padded, reach) ? Dim(0) : (padded - reach) / stride[axis] + 1;
}

namespace rule {

TensorType infer_matmul(const InferContext& context) {
  const TensorType& a = context.operands[0];
  const TensorType& b = context.operands[1];
  if (a.shape.rank() < 2 || b.shape.rank() < 2) {
    throw UserError(cat("matmul: operands need at least two axes, got ", a, " x ", b), context.at,
                    "add an axis: td::expand_dims(v, 0) or td::expand_dims(v, 1)");
  }
  if (a.shape[-1] != b.shape[-2]) {
    const bool flipped = a.shape[-1] == b.shape[-1];
    throw UserError(cat("matmul: inner sizes differ: ", a, " x ", b, " (", a.shape[-1], " and ",
                        b.shape[-2], ")"),
                    context.at,
                    flipped
                        ? "did you mean to transpose the second operand? {.transpose_b = true}"
                        : "the last size of the first must equal the last but one of the second");
  }
  Shape shape, other;
  for (int64_t i = 0; i < a.shape.rank() - 2; ++i) shape.push_back(a.shape[i]);
  for (int64_t i = 0; i < b.shape.rank() - 2; ++i) other.push_back(b.shape[i]);
  broadcast_into(shape, other, "matmul", context.at);
  shape.push_back(a.shape[-2]);
  shape.push_back(b.shape[-1]);
  return {a.dtype, shape};
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

void reference_matmul(const ReferenceContext& context) {
  const ArrayRef& a = context.operands[0];
  const ArrayRef& b = context.operands[1];
  const int64_t inner = a.shape[-1];
  const int64_t columns = b.shape[-1];
  // Row-major number of the first element of the matrix that output index belongs to.
  const auto matrix = [](const ArrayRef& x, std::span<const int64_t> index) {
    const Strides strides = contiguous_strides(x.shape);
    const auto batch = static_cast<size_t>(x.rank() - 2);
    const size_t shift = index.size() - 2 - batch;
    int64_t at = 0;
    for (size_t i = 0; i < batch; ++i) {
      if (x.shape[static_cast<int64_t>(i)] != 1) at += index[i + shift] * strides[i];
    }
    return at;
  };
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t row = matrix(a, index) + index[index.size() - 2] * inner;
    const int64_t column = matrix(b, index) + index[index.size() - 1];
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

TensorType infer_conv2d(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const TensorType& w = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  if (x.shape.rank() != 4 || w.shape.rank() != 4) {
    throw UserError(
        cat("conv2d: needs an image [n, height, width, in] and a kernel [height, width, in, "
            "out], got ",
            x, " and ", w),
        context.at, "one image alone: td::expand_dims(x, 0)");
  }
  if (!is_float(x.dtype)) {
    throw UserError(cat("conv2d: takes floats, got ", x.dtype), context.at,
                    "cast it first: td::cast(x, td::f32)");
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (spec.stride[axis] < 1 || spec.dilation[axis] < 1) {
      throw UserError(cat("conv2d: strides and dilations must be at least 1, got ",
                          spec.stride[axis], " and ", spec.dilation[axis]),
                      context.at, "leave them out for 1");
    }
  }
  if (spec.groups < 1 || x.shape[3] != w.shape[2] * spec.groups || w.shape[3] % spec.groups != 0) {
    throw UserError(cat("conv2d: ", x, " has ", x.shape[3], " channels, the kernel ", w, " takes ",
                        w.shape[2], " in each of ", spec.groups, " groups and gives ", w.shape[3]),
                    context.at,
                    "channels must be the kernel's inputs times the groups, and the outputs a "
                    "multiple of the groups");
  }
  if (spec.by_channel && (spec.groups != 1 || (x.dtype != DType::f32 && x.dtype != DType::f64))) {
    throw UserError(cat("conv2d: adds up by channel in one group of f32 or f64, got ", spec.groups,
                        " of ", x.dtype),
                    context.at, "leave by_channel out");
  }
  return {x.dtype,
          {x.shape[0], spec.out_size(0, x.shape[1], w.shape[0]),
           spec.out_size(1, x.shape[2], w.shape[1]), w.shape[3]}};
}

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

namespace {

// An image and the padding that is left to apply.
struct PaddedImage {
  Term image;
  ConvSpec spec;
};

// Negative padding is applied as a slice, and becomes 0.
PaddedImage padded_by(Term image, ConvSpec spec, const int64_t (&low)[2],
                      const int64_t (&high)[2]) {
  DimList begin(4), end;
  for (const Dim size : image.shape()) end.push_back(size);
  bool cut = false;
  for (size_t i = 0; i < 2; ++i) {
    begin[i + 1] = std::max<int64_t>(0, -low[i]);
    if (high[i] < 0) end[i + 1] = larger(begin[i + 1], end[i + 1] - -high[i]);
    cut = cut || low[i] < 0 || high[i] < 0;
    spec.pad_low[i] = std::max<int64_t>(0, low[i]);
    spec.pad_high[i] = std::max<int64_t>(0, high[i]);
  }
  return {cut ? term::slice(image, begin, end, AxisList(4, 1)) : image, spec};
}

// Moves the group index of the last axis, [..., groups * each], to axis `axis`, and that axis'
// share of each group to the last: reshape, transpose, reshape back.
Term swap_within_groups(Term x, int64_t axis, int64_t groups) {
  const Shape& shape = x.shape();
  Shape open = shape;
  open.set(3, groups);
  open.push_back(shape[3] / groups);
  AxisList order{0, 1, 2, 3, 4};
  std::swap(order[static_cast<size_t>(axis)], order[4]);
  Shape closed = shape;
  closed.set(axis, shape[3] / groups);
  closed.set(3, shape[axis] * groups);
  return term::reshape(term::transpose(term::reshape(x, open), order), closed);
}

// The gradient by the image is the convolution of g, dilated by the stride, with the kernel flipped
// and its input and output channels exchanged.
Term grad_conv2d_image(const GradContext& context, const ConvSpec& spec) {
  const Term x = context.operands[0], w = context.operands[1];
  const AxisList inside{0, spec.stride[0] - 1, spec.stride[1] - 1, 0};
  const bool apart = inside[1] > 0 || inside[2] > 0;
  const Term g =
      apart
          ? pad.apply({context.g},
                      Attrs().add(DimList(4)).add(DimList(4)).add(inside).add(0.0).add(int64_t{0}))
          : context.g;
  ConvSpec back;
  back.groups = spec.groups;
  DimList begin(4);
  AxisList step(4, 1);
  int64_t low[2], high[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t in = x.shape()[axis + 1], out = g.shape()[axis + 1], taps = w.shape()[axis];
    const int64_t reach = spec.dilation[i] * (taps - 1);
    back.dilation[i] = spec.dilation[i];
    low[i] = reach - spec.pad_low[i].number();
    high[i] = in + reach - low[i] - out;
    begin[i] = taps - 1;
    step[i] = -1;
  }
  const Term turned = slice.apply({w}, Attrs().add(begin).add(w.shape()).add(step));
  const PaddedImage from = padded_by(g, back, low, high);
  return conv2d.apply({from.image, swap_within_groups(turned, 2, spec.groups)}, from.spec.attrs());
}

// The gradient by the kernel is the convolution of x with g as the kernel: the batch takes the role
// of the channels, and strides and dilations are exchanged. It adds up image by image.
Term grad_conv2d_kernel(const GradContext& context, const ConvSpec& spec) {
  const Term x = context.operands[0], w = context.operands[1];
  ConvSpec over = spec;
  std::swap(over.stride, over.dilation);
  over.by_channel = spec.groups == 1 && (x.dtype() == DType::f32 || x.dtype() == DType::f64);
  const Term image = swap_within_groups(x, 0, spec.groups);
  const Term kernel = term::transpose(context.g, {1, 2, 0, 3});
  const Term taps = conv2d.apply({image, kernel}, over.attrs());
  // Pixels that the strides never reach would become taps beyond the last one: they are cropped.
  const Shape& shape = w.shape();
  const Term cut =
      term::slice(taps, DimList(4), {shape[2], shape[0], shape[1], shape[3]}, AxisList(4, 1));
  return term::transpose(cut, {1, 2, 0, 3});
}

}  // namespace

Term grad_conv2d(const GradContext& context, int index) {
  const Term operand = context.operands[static_cast<size_t>(index)];
  // An empty result has a gradient of zeros.
  if (context.result.shape().open_size() == 0) return operand.like(0);
  const ConvSpec spec = ConvSpec::from(context.attrs);
  return index == 0 ? grad_conv2d_image(context, spec) : grad_conv2d_kernel(context, spec);
}

// Taps that fall into the padding are skipped, not multiplied by zero.
void reference_conv2d(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const ArrayRef& w = context.operands[1];
  const ConvSpec spec = ConvSpec::from(context.attrs);
  const int64_t channels = w.shape[2];
  const int64_t per_group = w.shape[3] / spec.groups;
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t group = index[3] / per_group;
    long double total = 0;
    for (int64_t kh = 0; kh < w.shape[0]; ++kh) {
      for (int64_t kw = 0; kw < w.shape[1]; ++kw) {
        const int64_t row =
            index[1] * spec.stride[0] + kh * spec.dilation[0] - spec.pad_low[0].number();
        const int64_t column =
            index[2] * spec.stride[1] + kw * spec.dilation[1] - spec.pad_low[1].number();
        if (row < 0 || row >= x.shape[1] || column < 0 || column >= x.shape[2]) continue;
        const int64_t pixel = ((index[0] * x.shape[1] + row) * x.shape[2] + column) * x.shape[3];
        const int64_t tap = (kh * w.shape[1] + kw) * channels;
        for (int64_t c = 0; c < channels; ++c) {
          total += reference::read_float(x, pixel + group * channels + c) *
                   reference::read_float(w, (tap + c) * w.shape[3] + index[3]);
        }
      }
    }
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
  reference_conv2d({context.op, context.operands.subspan(1), context.result, context.attrs});
  add_first(context);
}

}  // namespace rule
}  // namespace tidemark::ops

#include "tidemark/compile/cpu/library_ops.h"

#include <algorithm>
#include <cmath>

#include "tidemark/compile/cpu/draws.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/library/fft.h"
#include "tidemark/emit/library/index.h"
#include "tidemark/emit/library/resample.h"
#include "tidemark/emit/library/scan.h"
#include "tidemark/emit/library/sort.h"
#include "tidemark/emit/linalg/linalg.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/linalg.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/scan.h"

namespace tidemark::compile {
namespace {

// A dense operand: the operand itself, or a copy.
class Dense {
 public:
  explicit Dense(const ArrayRef& array) : Dense(array, array.dtype) {}
  Dense(const ArrayRef& array, DType dtype) : ref_(array) {
    if (array.is_contiguous() && array.dtype == dtype) return;
    copy_ = Workspace(array.size() * size_of(dtype));
    ref_.data = copy_.data();
    ref_.dtype = dtype;
    ref_.strides = contiguous_strides(array.shape);
    run_copy(array, ref_);
  }
  const ArrayRef& ref() const { return ref_; }
  // The bytes of the copy.
  static int64_t bytes(const ArrayRef& array) { return bytes(array, array.dtype); }
  static int64_t bytes(const ArrayRef& array, DType dtype) {
    const bool is_dense = array.is_contiguous() && array.dtype == dtype;
    return is_dense ? 0 : granted_bytes(array.size() * size_of(dtype));
  }

 private:
  ArrayRef ref_;
  Workspace copy_;
};

// An array seen as [outer, axis, inner].
struct Split {
  int64_t outer = 1, size = 1, inner = 1;
  Split(const Shape& shape, int64_t axis) {
    for (int64_t i = 0; i < shape.rank(); ++i) {
      (i < axis ? outer : i == axis ? size : inner) *= shape[i];
    }
  }
};

ArrayRef part_of(const ArrayRef& array, std::span<const Dim> begin, const Shape& shape,
                 const AxisList& step) {
  ArrayRef part = array;
  part.shape = shape;
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    part.data += int64_t{begin[axis]} * array.strides[axis] * size_of(array.dtype);
    part.strides[axis] *= step[axis];
  }
  return part;
}

// ---- concat, padding, update --------------------------------------------------------------------

void run_concat(std::span<const ArrayRef> operands, const Attrs& attrs, const ArrayRef& result) {
  const auto axis = static_cast<size_t>(attrs.read().integer());
  const auto rank = static_cast<size_t>(result.rank());
  DimList begin(rank);
  const AxisList step(rank, 1);
  for (const ArrayRef& piece : operands) {
    run_copy(piece, part_of(result, begin, piece.shape, step));
    begin[axis] = begin[axis] + piece.shape[static_cast<int64_t>(axis)];
  }
}

// Fills all of an array except a part that begins at `low`.
void fill_around(uint64_t number, const ArrayRef& array, std::span<const Dim> low,
                 const Shape& shape) {
  ArrayRef rest = array;  // Along the axes before this one, it has the extent of the part.
  for (int64_t axis = 0; axis < array.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t stride = array.strides[at] * size_of(array.dtype);
    const int64_t begin = low[at], end = begin + shape[axis], size = rest.shape[axis];
    ArrayRef slab = rest;
    slab.shape.set(axis, begin);
    run_fill(number, slab);
    slab.shape.set(axis, size - end);
    slab.data += end * stride;
    run_fill(number, slab);
    rest.data += begin * stride;
    rest.shape.set(axis, shape[axis]);
  }
}

// In place if the operand is already inside the result.
void run_pad(const ArrayRef& x, const Attrs& attrs, const ArrayRef& result) {
  Attrs::Reader read = attrs.read();
  const std::span<const Dim> low = read.sizes();
  read.sizes();
  AxisList step(read.integers());
  for (int64_t& gap : step) ++gap;
  const double value = read.number();
  const uint64_t number = number_bits(value, read.integer(), is_float(result.dtype), result.dtype);
  const ArrayRef part = part_of(result, low, x.shape, step);
  const bool preparing = WorkspacePart::preparing(), is_there = x.data == part.data;
  if (preparing || is_there) fill_around(number, result, low, x.shape);
  if (preparing || !is_there) {
    run_fill(number, result);
    run_copy(x, part);
  }
}

// In place if the result has the operand's bytes.
void run_update(std::span<const ArrayRef> operands, const Attrs& attrs, const ArrayRef& result) {
  Attrs::Reader read = attrs.read();
  const std::span<const Dim> begin = read.sizes();
  read.sizes();
  const AxisList step(read.integers());
  if (WorkspacePart::preparing() || result.data != operands[0].data) run_copy(operands[0], result);
  run_copy(operands[1], part_of(result, begin, operands[1].shape, step));
}

// ---- indices ------------------------------------------------------------------------------------

std::string index_text(const library::Indices& list, int64_t i) {
  if (list.dtype == DType::u64) return std::to_string(static_cast<uint64_t>(list[i]));
  return std::to_string(list[i]);
}

library::Indices checked_indices(const OpDef& op, const ArrayRef& indices, const ArrayRef& x,
                                 int64_t axis, Source at) {
  const library::Indices list{indices.data, indices.dtype, indices.size()};
  const int64_t size = x.shape[axis];
  const int64_t bad = library::first_outside(list, size);
  if (bad >= 0) {
    throw UserError(cat(op.name, ": index ", index_text(list, bad), " is out of range for axis ",
                        axis, " of ", TensorType{x.dtype, x.shape}),
                    at, cat("indices go from ", -size, " to ", size - 1));
  }
  return list;
}

void run_gather(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                const ArrayRef& result, Source at) {
  const int64_t axis = attrs.read().integer();
  const Dense x(operands[0]), indices(operands[1]);
  if (WorkspacePart::preparing()) return;
  const library::Indices list = checked_indices(op, indices.ref(), x.ref(), axis, at);
  const Split split(x.ref().shape, axis);
  library::gather(x.ref().data, split.outer, split.size, split.inner * size_of(result.dtype), list,
                  result.data);
}

// Throws if a class does not exist. Negative numbers do not count from the end here.
void check_classes(const library::Indices& list, const ArrayRef& x, int64_t axis, Source at) {
  const int64_t size = x.shape[axis];
  for (int64_t i = 0; i < list.count; ++i) {
    if (list[i] >= 0 && list[i] < size) [[likely]]
      continue;
    throw UserError(cat("class ", index_text(list, i), " is out of range for axis ", axis, " of ",
                        TensorType{x.dtype, x.shape}),
                    at, cat("class numbers go from 0 to ", size - 1));
  }
}

void run_take_along(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                    const ArrayRef& result, Source at) {
  Attrs::Reader read = attrs.read();
  const int64_t axis = read.integer();
  const bool from_end = read.boolean();
  const Dense indices(operands[1]);
  if (WorkspacePart::preparing()) return;
  library::Indices list{indices.ref().data, indices.ref().dtype, indices.ref().size()};
  if (from_end)
    list = checked_indices(op, indices.ref(), operands[0], axis, at);
  else
    check_classes(list, operands[0], axis, at);
  library::take_along(operands[0], axis, list, result.shape, result.data);
}

// In place if the result has the array's bytes.
void run_put(const OpDef& op, std::span<const ArrayRef> operands, const ArrayRef& result,
             Source at) {
  const ArrayRef& array = operands[0];
  const Dense index(operands[1]), element(operands[2]);
  if (WorkspacePart::preparing()) return run_copy(array, result);
  const library::Indices list = checked_indices(op, index.ref(), array, 0, at);
  if (result.data != array.data) run_copy(array, result);
  if (element.ref().size() == 0) return;
  library::put(result.data, array.shape[0],
               element.ref().size() / list.count * size_of(array.dtype), list, element.ref().data);
}

library::Combine combination(const OpDef& op) {
  switch (op.routine) {
    case Routine::scatter_max:
      return library::Combine::maximum;
    case Routine::scatter_min:
      return library::Combine::minimum;
    case Routine::scatter_mul:
      return library::Combine::multiply;
    default:
      return library::Combine::add;
  }
}

void run_scatter(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 const ArrayRef& result, Source at) {
  Attrs::Reader read = attrs.read();
  const int64_t axis = read.integer();
  const bool along = read.boolean();
  const Dense indices(operands[1]), updates(operands[2]);
  if (WorkspacePart::preparing()) return run_copy(operands[0], result);
  const library::Indices list = checked_indices(op, indices.ref(), operands[0], axis, at);
  run_copy(operands[0], result);
  const Split split(result.shape, axis);
  const library::Scatter work{.how = combination(op),
                              .dtype = result.dtype,
                              .to = result.data,
                              .outer = split.outer,
                              .size = split.size,
                              .inner = split.inner};
  if (along)
    library::scatter_along(work, list, indices.ref().shape[axis], updates.ref().data);
  else
    library::scatter(work, list, updates.ref().data);
}

// ---- along an axis ------------------------------------------------------------------------------

library::Scan scan_of(const ArrayRef& result, DType dtype, const Attrs& attrs) {
  Attrs::Reader read = attrs.read();
  const Split split(result.shape, read.integer());
  return {.dtype = dtype,
          .outer = split.outer,
          .count = split.size,
          .inner = split.inner,
          .reverse = read.boolean()};
}

// Of several results either may be unused.
void run_scan(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
              std::span<const ArrayRef> results) {
  const ArrayRef& result = results[0];
  const Dense x(operands[0], result.dtype);
  const Dense y = operands.size() > 1
                      ? Dense(operands[1], result.dtype)
                      : Dense(ArrayRef{.dtype = result.dtype, .shape = {0}, .strides = {1}});
  if (WorkspacePart::preparing()) return;
  const library::Scan scan = scan_of(result, result.dtype, attrs);
  const std::byte* from = x.ref().data;
  switch (op.routine) {
    case Routine::cummax:
      return library::cummax(scan, from, result.data, reinterpret_cast<int64_t*>(results[1].data));
    case Routine::cummin:
      return library::cummin(scan, from, result.data, reinterpret_cast<int64_t*>(results[1].data));
    case Routine::cumprod:
      return library::cumprod(scan, from, result.data);
    case Routine::linear_scan:
      return library::linear_scan(scan, from, y.ref().data, result.data);
    default:
      return library::cumsum(scan, from, result.data);
  }
}

library::Resample resample_of(const ArrayRef& x, const Attrs& attrs, const ArrayRef& result) {
  const ops::ResampleSpec spec = ops::ResampleSpec::from(attrs);
  const Split split(x.shape, spec.axis);
  return {.dtype = result.dtype,
          .outer = split.outer,
          .inner = split.inner,
          .from = split.size,
          .to = result.shape[spec.axis],
          .sampling = spec.sampling,
          .antialias = spec.antialias,
          .transposed = spec.transposed};
}

int64_t resample_workspace(const ArrayRef& x, const Attrs& attrs, const ArrayRef& result) {
  if (result.size() == 0) return 0;
  return Dense::bytes(x) +
         granted_bytes(library::resample_scratch_bytes(resample_of(x, attrs, result)));
}

void run_resample(const ArrayRef& operand, const Attrs& attrs, const ArrayRef& result) {
  if (result.size() == 0) return;
  const Dense x(operand);
  const library::Resample work = resample_of(operand, attrs, result);
  const Workspace scratch(library::resample_scratch_bytes(work));
  if (WorkspacePart::preparing()) return;
  library::resample(work, x.ref().data, result.data, scratch.data());
}

void run_searchsorted(std::span<const ArrayRef> operands, const Attrs& attrs,
                      const ArrayRef& result) {
  const Dense sorted(operands[0]), values(operands[1]);
  if (WorkspacePart::preparing()) return;
  const Split split(values.ref().shape, values.ref().rank() - 1);
  library::searchsorted({.dtype = sorted.ref().dtype,
                         .rows = split.outer,
                         .size = sorted.ref().shape[-1],
                         .count = split.size,
                         .right = attrs.read().boolean()},
                        sorted.ref().data, values.ref().data,
                        reinterpret_cast<int64_t*>(result.data));
}

void run_first_equal(const ArrayRef& operand, const ArrayRef& result) {
  const Dense x(operand);
  const Workspace order(result.size() * size_of(result.dtype));
  if (WorkspacePart::preparing()) return;
  library::first_equal({x.ref().data, x.ref().dtype, x.ref().size()},
                       reinterpret_cast<int64_t*>(order.data()),
                       reinterpret_cast<int64_t*>(result.data));
}

// Either result may be unused.
library::Sorting sorting(const OpDef& op, const ArrayRef& x, const Attrs& attrs,
                         std::span<const ArrayRef> results) {
  Attrs::Reader read = attrs.read();
  const int64_t axis = read.integer();
  return {.x = x,
          .axis = axis,
          .descending = op.routine == Routine::top_k || read.boolean(),
          .count = results[0].shape[axis],
          .values = results[0].data,
          .indices = reinterpret_cast<int64_t*>(results[1].data)};
}

int64_t sort_workspace(const OpDef& op, const ArrayRef& x, const Attrs& attrs,
                       std::span<const ArrayRef> results) {
  return granted_bytes(library::sort_scratch_bytes(sorting(op, x, attrs, results), num_threads()));
}

void run_sort(const OpDef& op, const ArrayRef& x, const Attrs& attrs,
              std::span<const ArrayRef> results) {
  const int threads = num_threads();
  const library::Sorting work = sorting(op, x, attrs, results);
  const Workspace scratch(library::sort_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  library::sort(work, threads, scratch.data());
}

// ---- Fourier transforms
// --------------------------------------------------------------------------

// Of a dense operand [outer, axis, inner, 2].
library::Fourier fourier_of(const Attrs& attrs, const ArrayRef& result) {
  Attrs::Reader read = attrs.read();
  const Split split(result.shape, read.integers()[0]);
  const bool inverse = read.boolean();
  return {.dtype = result.dtype,
          .outer = split.outer,
          .count = split.size,
          .inner = split.inner / 2,
          .inverse = inverse,
          .scale = read.number(),
          .to = result.data};
}

int64_t fft_workspace(const ArrayRef& operand, const Attrs& attrs, const ArrayRef& result) {
  const int64_t scratch = library::fft_scratch_bytes(fourier_of(attrs, result), num_threads());
  return Dense::bytes(operand) + granted_bytes(scratch);
}

void run_fft(const ArrayRef& operand, const Attrs& attrs, const ArrayRef& result) {
  const Dense x(operand);
  const int threads = num_threads();
  library::Fourier work = fourier_of(attrs, result);
  const Workspace scratch(library::fft_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  work.from = x.ref().data;
  library::fft(work, threads, scratch.data());
}

// ---- contractions -------------------------------------------------------------------------------

// The strides of an operand along the batch axes, broadcast to those of the result.
Batch::Axes batch_strides(const ArrayRef& operand, const ArrayRef& result) {
  const int64_t shift = result.rank() - operand.rank();
  Batch::Axes strides;
  for (int64_t axis = 0; axis + 2 < result.rank(); ++axis) {
    const bool repeats = axis < shift || operand.shape[axis - shift] == 1;
    strides.push_back(repeats ? 0 : operand.strides[static_cast<size_t>(axis - shift)]);
  }
  return strides;
}

Batch batch_of(const ArrayRef& a, const ArrayRef& b, const ArrayRef& result) {
  Batch batch;
  for (int64_t axis = 0; axis + 2 < result.rank(); ++axis)
    batch.extents.push_back(result.shape[axis]);
  batch.a = batch_strides(a, result);
  batch.b = batch_strides(b, result);
  batch.c = batch_strides(result, result);
  return batch;
}

MatrixRef matrix(const ArrayRef& array) {
  const size_t rank = array.strides.size();
  return {array.data, array.dtype, array.strides[rank - 2], array.strides[rank - 1]};
}

Contraction product_of(std::span<const ArrayRef> operands, const ArrayRef& result, bool add) {
  const ArrayRef &a = operands[0], &b = operands[1];
  return {.m = a.shape[-2],
          .n = b.shape[-1],
          .k = a.shape[-1],
          .a = matrix(a),
          .b = matrix(b),
          .c = matrix(result),
          .add = add,
          .batch = batch_of(a, b, result)};
}

int64_t matmul_workspace(std::span<const ArrayRef> operands, const ArrayRef& result,
                         bool add = false) {
  if (result.size() == 0) return 0;
  return granted_bytes(contract_scratch_bytes(product_of(operands, result, add), num_threads()));
}

void run_matmul(std::span<const ArrayRef> operands, const ArrayRef& result, bool add = false) {
  if (result.size() == 0) return;
  const Contraction work = product_of(operands, result, add);
  const int threads = num_threads();
  const Workspace scratch(contract_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  contract(work, threads, scratch.data());
}

// In place if the result has the operand's bytes.
void run_accumulate(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (WorkspacePart::preparing() || result.data != operands[0].data) run_copy(operands[0], result);
  run_matmul(operands.subspan(1), result, true);
}

// The sizes of a convolution, from shapes and attributes; the caller adds the addresses.
Convolution convolution(const ArrayRef& x, const ArrayRef& w, const Attrs& attrs,
                        const ArrayRef& result) {
  const ops::ConvSpec spec = ops::ConvSpec::from(attrs);
  Convolution work;
  work.dtype = result.dtype;
  work.n = x.shape[0];
  work.c_in = x.shape[-1];
  work.c_out = result.shape[-1];
  work.groups = spec.groups;
  work.in = x.data;
  work.in_n = x.strides[0];
  work.weight = w.data;
  work.out = result.data;
  // Height and width come last; frames before them.
  const auto height = static_cast<int64_t>(spec.axes) - 2;
  const auto h = static_cast<size_t>(height), across = h + 1;
  work.h = x.shape[height + 1];
  work.w = x.shape[height + 2];
  work.kh = w.shape[height];
  work.kw = w.shape[height + 1];
  work.out_h = result.shape[height + 1];
  work.out_w = result.shape[height + 2];
  work.stride_h = spec.stride[h];
  work.stride_w = spec.stride[across];
  work.pad_top = spec.pad_low[h].number();
  work.pad_left = spec.pad_low[across].number();
  work.dilation_h = spec.dilation[h];
  work.dilation_w = spec.dilation[across];
  work.spread_h = spec.spread[h];
  work.spread_w = spec.spread[across];
  work.in_h = x.strides[h + 1];
  work.in_w = x.strides[across + 1];
  if (spec.axes == 2) return work;
  work.d = x.shape[1];
  work.kd = w.shape[0];
  work.out_d = result.shape[1];
  work.stride_d = spec.stride[0];
  work.pad_front = spec.pad_low[0].number();
  work.dilation_d = spec.dilation[0];
  work.spread_d = spec.spread[0];
  work.in_d = x.strides[1];
  return work;
}

int64_t last_stride(const ArrayRef& array) { return array.strides[array.strides.size() - 1]; }

// Interleaved images, as in the gradient with respect to the kernel, are read without copies. A
// tile is as tall as there are images; with few images this pays if there are fewer outputs than
// taps, as in that gradient.
bool lies_across(const Convolution& work, const ArrayRef& x, const ArrayRef& w) {
  const bool pays =
      work.n >= 6 || work.kd * work.kh * work.kw >= work.out_d * work.out_h * work.out_w;
  return pays && work.n > 1 && work.in_n == 1 && (last_stride(x) != 1 || x.shape[-1] == 1) &&
         work.groups == 1 && !is_low_precision(work.dtype) &&
         work.spread_d * work.spread_h * work.spread_w == 1 &&
         (last_stride(w) == 1 || w.shape[-1] == 1);
}

// A convolution of images that are not interleaved: the kernel is dense, and the channels of a
// pixel are contiguous; other axes may have any stride.
struct PackedConvolution {
  PackedConvolution(std::span<const ArrayRef> operands)
      : image(operands[0]),
        kernel(operands[1]),
        packs_image(last_stride(image) != 1 && image.shape[-1] != 1) {}
  int64_t copy_bytes() const {
    return Dense::bytes(kernel) + (packs_image ? Dense::bytes(image) : 0);
  }
  const ArrayRef &image, &kernel;
  bool packs_image;
};

// A convolution that adds up by channel always has its images interleaved and the outputs of its
// kernel contiguous: operands that lie otherwise are copied.
struct AcrossOperands {
  AcrossOperands(const ArrayRef& image, const ArrayRef& kernel)
      : image(image),
        turned(permuted(image)),
        kernel(kernel),
        packs_image(image.strides[0] != 1 && image.shape[0] != 1),
        packs_kernel(kernel.strides[3] != 1 && kernel.shape[3] != 1) {}
  int64_t copy_bytes() const {
    return (packs_image ? Dense::bytes(turned) : 0) + (packs_kernel ? Dense::bytes(kernel) : 0);
  }
  // Images last; and back.
  static ArrayRef permuted(const ArrayRef& image) {
    ArrayRef turned = image;
    const Dim images = image.shape[0], channels = image.shape[3];
    turned.shape.set(0, channels);
    turned.shape.set(3, images);
    std::swap(turned.strides[0], turned.strides[3]);
    return turned;
  }
  const ArrayRef image, turned, kernel;
  const bool packs_image, packs_kernel;
};

void run_conv2d_by_channel(std::span<const ArrayRef> operands, const Attrs& attrs,
                           const ArrayRef& result, bool add) {
  const AcrossOperands given(operands[0], operands[1]);
  const ArrayRef none{.dtype = given.image.dtype, .shape = {0}, .strides = {1}};
  const Dense image(given.packs_image ? given.turned : none);
  const Dense kernel(given.packs_kernel ? given.kernel : none);
  if (WorkspacePart::preparing()) return;
  const ArrayRef x = given.packs_image ? AcrossOperands::permuted(image.ref()) : given.image;
  const ArrayRef w = given.packs_kernel ? kernel.ref() : given.kernel;
  ConvolutionAcross work{.of = convolution(x, w, attrs, result),
                         .in_c = x.strides[3],
                         .weight_h = w.strides[0],
                         .weight_w = w.strides[1],
                         .weight_c = w.strides[2],
                         .by_channel = true,
                         .add = add};
  work.of.in_n = 1;
  convolve_across(work, num_threads());
}

int64_t conv_workspace(std::span<const ArrayRef> operands, const Attrs& attrs,
                       const ArrayRef& result) {
  if (result.size() == 0) return 0;
  if (ops::ConvSpec::from(attrs).by_channel)
    return AcrossOperands(operands[0], operands[1]).copy_bytes();
  if (lies_across(convolution(operands[0], operands[1], attrs, result), operands[0], operands[1]))
    return 0;
  const PackedConvolution packed(operands);
  const auto dense = [](const ArrayRef& array) { return dense_layout({array.dtype, array.shape}); };
  const Convolution work = convolution(packed.packs_image ? dense(packed.image) : packed.image,
                                       dense(packed.kernel), attrs, result);
  return packed.copy_bytes() + granted_bytes(convolve_scratch_bytes(work, num_threads()));
}

void run_conv(std::span<const ArrayRef> operands, const Attrs& attrs, const ArrayRef& result) {
  if (result.size() == 0) return;
  if (ops::ConvSpec::from(attrs).by_channel)
    return run_conv2d_by_channel(operands, attrs, result, false);
  const ArrayRef &image = operands[0], &kernel = operands[1];
  const int threads = num_threads();
  const Convolution as_it_lies = convolution(image, kernel, attrs, result);
  if (lies_across(as_it_lies, image, kernel)) {
    if (WorkspacePart::preparing()) return;
    const size_t height = kernel.strides.size() - 4;
    return convolve_across({.of = as_it_lies,
                            .in_c = last_stride(image),
                            .weight_h = kernel.strides[height],
                            .weight_w = kernel.strides[height + 1],
                            .weight_c = kernel.strides[height + 2],
                            .weight_d = height == 0 ? 0 : kernel.strides[0]},
                           threads);
  }
  const bool packs_image = PackedConvolution(operands).packs_image;
  const Dense w(kernel);
  const Dense packed = packs_image
                           ? Dense(image)
                           : Dense(ArrayRef{.dtype = image.dtype, .shape = {0}, .strides = {1}});
  const Convolution work = convolution(packs_image ? packed.ref() : image, w.ref(), attrs, result);
  const Workspace scratch(convolve_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  convolve(work, threads, scratch.data());
}

void run_accumulate_conv2d(std::span<const ArrayRef> operands, const Attrs& attrs,
                           const ArrayRef& result) {
  if (result.size() == 0) return;
  if (WorkspacePart::preparing() || result.data != operands[0].data) run_copy(operands[0], result);
  run_conv2d_by_channel(operands.subspan(1), attrs, result, true);
}

// ---- linear algebra -----------------------------------------------------------------------------

factor::Problem problem_of(const OpDef& op) {
  switch (op.routine) {
    case Routine::eigh:
      return factor::Problem::eigh;
    case Routine::expm:
      return factor::Problem::expm;
    case Routine::lu:
      return factor::Problem::lu;
    case Routine::pinv:
      return factor::Problem::pinv;
    case Routine::qr:
      return factor::Problem::qr;
    case Routine::solve:
      return factor::Problem::solve;
    case Routine::solve_triangular:
      return factor::Problem::solve_triangular;
    case Routine::svd:
      return factor::Problem::svd;
    default:
      return factor::Problem::cholesky;
  }
}

factor::Work linalg_work(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                         std::span<const ArrayRef> results) {
  factor::Work work{.problem = problem_of(op), .operands = operands, .results = results};
  Attrs::Reader read = attrs.read();
  if (op.routine == Routine::solve_triangular) work.lower = read.boolean();
  if (op.routine == Routine::solve_triangular || op.routine == Routine::solve)
    work.transposed = read.boolean();
  if (op.routine == Routine::solve_triangular) work.unit = read.boolean();
  if (op.routine == Routine::pinv)
    work.cutoff = ops::pinv_cutoff(operands[0].shape, operands[0].dtype, read.number());
  return work;
}

int64_t linalg_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                         std::span<const ArrayRef> results) {
  return granted_bytes(
      factor::scratch_bytes(linalg_work(op, operands, attrs, results), num_threads()));
}

void run_linalg(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                std::span<const ArrayRef> results) {
  const int threads = num_threads();
  const factor::Work work = linalg_work(op, operands, attrs, results);
  const Workspace scratch(factor::scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  factor::run(work, threads, scratch.data());
}

}  // namespace

int64_t library_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                          std::span<const ArrayRef> results) {
  const ArrayRef& result = results[0];
  switch (op.routine) {
    case Routine::accumulate:
      return matmul_workspace(operands.subspan(1), result, true);
    case Routine::accumulate_conv2d:
      return conv_workspace(operands.subspan(1), attrs, result);
    case Routine::conv:
      return conv_workspace(operands, attrs, result);
    case Routine::cummax:
    case Routine::cummin:
    case Routine::cumprod:
    case Routine::cumsum:
      return Dense::bytes(operands[0], result.dtype);
    case Routine::fft:
      return fft_workspace(operands[0], attrs, result);
    case Routine::linear_scan:
    case Routine::searchsorted:
      return Dense::bytes(operands[0]) + Dense::bytes(operands[1]);
    case Routine::cholesky:
    case Routine::eigh:
    case Routine::expm:
    case Routine::lu:
    case Routine::pinv:
    case Routine::qr:
    case Routine::solve:
    case Routine::solve_triangular:
    case Routine::svd:
      return linalg_workspace(op, operands, attrs, results);
    case Routine::first_equal:
      return Dense::bytes(operands[0]) + granted_bytes(result.size() * size_of(result.dtype));
    case Routine::gather:
      return Dense::bytes(operands[0]) + Dense::bytes(operands[1]);
    case Routine::matmul:
      return matmul_workspace(operands, result);
    case Routine::put:
    case Routine::scatter_add:
    case Routine::scatter_max:
    case Routine::scatter_min:
    case Routine::scatter_mul:
      return Dense::bytes(operands[1]) + Dense::bytes(operands[2]);
    case Routine::random_normal:
    case Routine::random_uniform:
      // 16-bit floats are drawn as f32.
      return is_low_precision(result.dtype) ? granted_bytes(result.size() * size_of(DType::f32))
                                            : 0;
    case Routine::resample:
      return resample_workspace(operands[0], attrs, result);
    case Routine::sort:
    case Routine::top_k:
      return sort_workspace(op, operands[0], attrs, results);
    case Routine::take_along_axis:
      return Dense::bytes(operands[1]);
    default:
      return 0;
  }
}

void run_library(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at) {
  const ArrayRef& result = results[0];
  switch (op.routine) {
    case Routine::accumulate:
      return run_accumulate(operands, result);
    case Routine::arange:
      return run_draw(op, operands, attrs, result);
    case Routine::cholesky:
    case Routine::eigh:
    case Routine::expm:
    case Routine::lu:
    case Routine::pinv:
    case Routine::qr:
    case Routine::solve:
    case Routine::solve_triangular:
    case Routine::svd:
      return run_linalg(op, operands, attrs, results);
    case Routine::concat:
      return run_concat(operands, attrs, result);
    case Routine::accumulate_conv2d:
      return run_accumulate_conv2d(operands, attrs, result);
    case Routine::conv:
      return run_conv(operands, attrs, result);
    case Routine::cummax:
    case Routine::cummin:
    case Routine::cumprod:
    case Routine::cumsum:
    case Routine::linear_scan:
      return run_scan(op, operands, attrs, results);
    case Routine::fft:
      return run_fft(operands[0], attrs, result);
    case Routine::first_equal:
      return run_first_equal(operands[0], result);
    case Routine::gather:
      return run_gather(op, operands, attrs, result, at);
    case Routine::matmul:
      return run_matmul(operands, result);
    case Routine::pad:
      return run_pad(operands[0], attrs, result);
    case Routine::put:
      return run_put(op, operands, result, at);
    case Routine::random_bernoulli:
    case Routine::random_fold:
    case Routine::random_integers:
    case Routine::random_normal:
    case Routine::random_permutation:
    case Routine::random_uniform:
      return run_draw(op, operands, attrs, result);
    case Routine::resample:
      return run_resample(operands[0], attrs, result);
    case Routine::scatter_add:
    case Routine::scatter_max:
    case Routine::scatter_min:
    case Routine::scatter_mul:
      return run_scatter(op, operands, attrs, result, at);
    case Routine::searchsorted:
      return run_searchsorted(operands, attrs, result);
    case Routine::sort:
    case Routine::top_k:
      return run_sort(op, operands[0], attrs, results);
    case Routine::take_along_axis:
      return run_take_along(op, operands, attrs, result, at);
    case Routine::update:
      return run_update(operands, attrs, result);
    case Routine::none:
      break;
  }
  TIDEMARK_CHECK(false, op.name, " has no kernel");
}

}  // namespace tidemark::compile

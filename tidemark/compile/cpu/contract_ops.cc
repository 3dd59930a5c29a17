#include "tidemark/compile/cpu/contract_ops.h"

#include <algorithm>

#include "tidemark/compile/cpu/dense.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/ops/contract.h"

namespace tidemark::compile {
namespace {

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

// By weights, the first operand.
WeightedDifferences differences_of(std::span<const ArrayRef> operands, const ArrayRef& result) {
  const ArrayRef product[] = {operands[0], operands[2]};
  return {.of = product_of(product, result, false),
          .from = matrix(operands[1]),
          .from_batch = batch_strides(operands[1], result)};
}

}  // namespace

int64_t matmul_workspace(std::span<const ArrayRef> operands, const ArrayRef& result, bool add) {
  if (result.size() == 0) return 0;
  return granted_bytes(contract_scratch_bytes(product_of(operands, result, add), num_threads()));
}

void run_matmul(std::span<const ArrayRef> operands, const ArrayRef& result, bool add) {
  if (result.size() == 0) return;
  const Contraction work = product_of(operands, result, add);
  const int threads = num_threads();
  const Workspace scratch(contract_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  contract(work, threads, scratch.data());
}

namespace {

// Distances of two operands, or weighted differences of three. 16-bit floats are widened first, and
// the result rounded once.
int64_t scratch_bytes_of_points(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (operands.size() == 2)
    return distances_scratch_bytes(product_of(operands, result, false), num_threads());
  return weighted_differences_scratch_bytes(differences_of(operands, result), num_threads());
}
void run_points(std::span<const ArrayRef> operands, const ArrayRef& result) {
  const Workspace scratch(scratch_bytes_of_points(operands, result));
  if (WorkspacePart::preparing()) return;
  if (operands.size() == 2)
    return distances(product_of(operands, result, false), num_threads(), scratch.data());
  weighted_differences(differences_of(operands, result), num_threads(), scratch.data());
}

}  // namespace

int64_t distances_workspace(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (result.size() == 0) return 0;
  const DType wide = is_low_precision(result.dtype) ? DType::f32 : result.dtype;
  ArrayRef to = result;
  to.dtype = wide;
  int64_t bytes = wide == result.dtype ? 0 : granted_bytes(result.size() * size_of(wide));
  for (const ArrayRef& operand : operands)
    if (operand.dtype != wide) bytes += Dense::bytes(operand, wide);
  return bytes + granted_bytes(scratch_bytes_of_points(operands, to));
}

void run_distances(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (result.size() == 0) return;
  if (!is_low_precision(result.dtype)) return run_points(operands, result);
  const ArrayRef none{.dtype = DType::f32, .shape = {0}, .strides = {1}};
  const Dense a(operands[0], DType::f32), b(operands[1], DType::f32),
      c(operands.size() == 3 ? operands[2] : none, DType::f32);
  const ArrayRef wide[] = {a.ref(), b.ref(), c.ref()};
  const Workspace room(result.size() * size_of(DType::f32));
  const ArrayRef to{room.data(), DType::f32, result.shape, contiguous_strides(result.shape)};
  run_points(std::span(wide).first(operands.size()), to);
  run_copy(to, result);
}

// In place if the result has the operand's bytes.
void run_accumulate(std::span<const ArrayRef> operands, const ArrayRef& result) {
  if (WorkspacePart::preparing() || result.data != operands[0].data) run_copy(operands[0], result);
  run_matmul(operands.subspan(1), result, true);
}

namespace {

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
// taps, as in that gradient. Images that repeat one, as the gradient of a sum does, lie in any
// order.
bool lies_across(const Convolution& work, const ArrayRef& x) {
  const bool has_more_taps = work.kd * work.kh * work.kw >= work.out_d * work.out_h * work.out_w;
  const bool pays = has_more_taps || (work.n >= 6 && work.in_n == 1);
  return pays && work.n > 1 && (work.in_n == 1 || work.in_n == 0) &&
         (last_stride(x) != 1 || x.shape[-1] == 1) && work.groups == 1 &&
         !is_low_precision(work.dtype) && work.spread_d * work.spread_h * work.spread_w == 1;
}

// Then the outputs of a kernel are contiguous, or it is copied.
bool packs_outputs(const ArrayRef& w) { return last_stride(w) != 1 && w.shape[-1] != 1; }

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
        packs_kernel(packs_outputs(kernel)) {}
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

// ---- the gradient by the kernel of groups -------------------------------------------------------

// Channels of a pixel are contiguous; other axes may have any stride. 16-bit floats are widened
// first unless each group has one channel.
struct KernelGradientOperands {
  KernelGradientOperands(const ArrayRef& image, const ArrayRef& by, const Attrs& attrs)
      : image(image),
        by(by),
        dtype(is_low_precision(image.dtype) && !is_depthwise(attrs) ? DType::f32 : image.dtype),
        packs_image(is_packed(image)),
        packs_by(is_packed(by)) {}
  bool is_packed(const ArrayRef& array) const {
    return dtype != array.dtype || (last_stride(array) != 1 && array.shape[-1] != 1);
  }
  bool is_depthwise(const Attrs& attrs) const {
    const int64_t groups = ops::ConvSpec::from(attrs).groups;
    return image.shape[-1] == groups && by.shape[-1] == groups;
  }
  bool rounds() const { return dtype != image.dtype; }
  int64_t copy_bytes(const ArrayRef& result) const {
    return (packs_image ? Dense::bytes(image, dtype) : 0) +
           (packs_by ? Dense::bytes(by, dtype) : 0) +
           (rounds() ? granted_bytes(result.size() * size_of(dtype)) : 0);
  }
  const ArrayRef &image, &by;
  const DType dtype;
  const bool packs_image, packs_by;
};

KernelGradient kernel_gradient_of(const ArrayRef& x, const ArrayRef& by, const Attrs& attrs,
                                  const ArrayRef& result) {
  // The roles of the result and of the kernel are exchanged.
  KernelGradient work{.of = convolution(x, result, attrs, by), .by = by.data, .to = result.data};
  work.of.dtype = x.dtype;
  const size_t rank = by.strides.size();
  work.by_n = by.strides[0];
  work.by_h = by.strides[rank - 3];
  work.by_w = by.strides[rank - 2];
  work.by_d = rank == 5 ? by.strides[1] : 0;
  return work;
}

int64_t conv_kernel_workspace(std::span<const ArrayRef> operands, const Attrs& attrs,
                              const ArrayRef& result) {
  if (result.size() == 0) return 0;
  const KernelGradientOperands given(operands[0], operands[1], attrs);
  const KernelGradient work = kernel_gradient_of(operands[0], operands[1], attrs, result);
  return given.copy_bytes(result) +
         granted_bytes(kernel_gradient_scratch_bytes(work, num_threads()));
}

void run_conv_kernel(std::span<const ArrayRef> operands, const Attrs& attrs,
                     const ArrayRef& result) {
  if (result.size() == 0) return;
  const KernelGradientOperands given(operands[0], operands[1], attrs);
  const ArrayRef none{.dtype = given.dtype, .shape = {0}, .strides = {1}};
  const Dense image(given.packs_image ? given.image : none, given.dtype);
  const Dense by(given.packs_by ? given.by : none, given.dtype);
  ArrayRef to = result;
  Workspace wide;
  if (given.rounds()) {
    wide = Workspace(result.size() * size_of(given.dtype));
    to.data = wide.data();
    to.dtype = given.dtype;
  }
  const int threads = num_threads();
  const KernelGradient work = kernel_gradient_of(given.packs_image ? image.ref() : given.image,
                                                 given.packs_by ? by.ref() : given.by, attrs, to);
  const Workspace scratch(kernel_gradient_scratch_bytes(work, threads));
  if (!WorkspacePart::preparing()) kernel_gradient(work, threads, scratch.data());
  if (given.rounds()) run_copy(to, result);
}

}  // namespace

int64_t conv_workspace(std::span<const ArrayRef> operands, const Attrs& attrs,
                       const ArrayRef& result) {
  if (result.size() == 0) return 0;
  const ops::ConvSpec spec = ops::ConvSpec::from(attrs);
  if (!spec.taps.empty()) return conv_kernel_workspace(operands, attrs, result);
  if (spec.by_channel) return AcrossOperands(operands[0], operands[1]).copy_bytes();
  if (lies_across(convolution(operands[0], operands[1], attrs, result), operands[0]))
    return packs_outputs(operands[1]) ? Dense::bytes(operands[1]) : 0;
  const PackedConvolution packed(operands);
  const auto dense = [](const ArrayRef& array) { return dense_layout({array.dtype, array.shape}); };
  const Convolution work = convolution(packed.packs_image ? dense(packed.image) : packed.image,
                                       dense(packed.kernel), attrs, result);
  return packed.copy_bytes() + granted_bytes(convolve_scratch_bytes(work, num_threads()));
}

void run_conv(std::span<const ArrayRef> operands, const Attrs& attrs, const ArrayRef& result) {
  if (result.size() == 0) return;
  const ops::ConvSpec spec = ops::ConvSpec::from(attrs);
  if (!spec.taps.empty()) return run_conv_kernel(operands, attrs, result);
  if (spec.by_channel) return run_conv2d_by_channel(operands, attrs, result, false);
  const ArrayRef &image = operands[0], &kernel = operands[1];
  const int threads = num_threads();
  const Convolution as_it_lies = convolution(image, kernel, attrs, result);
  const ArrayRef none{.dtype = image.dtype, .shape = {0}, .strides = {1}};
  if (lies_across(as_it_lies, image)) {
    const Dense packed(packs_outputs(kernel) ? kernel : none);
    if (WorkspacePart::preparing()) return;
    const ArrayRef& w = packs_outputs(kernel) ? packed.ref() : kernel;
    const size_t height = w.strides.size() - 4;
    return convolve_across({.of = convolution(image, w, attrs, result),
                            .in_c = last_stride(image),
                            .weight_h = w.strides[height],
                            .weight_w = w.strides[height + 1],
                            .weight_c = w.strides[height + 2],
                            .weight_d = height == 0 ? 0 : w.strides[0]},
                           threads);
  }
  const bool packs_image = PackedConvolution(operands).packs_image;
  const Dense w(kernel);
  const Dense packed(packs_image ? image : none);
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

}  // namespace tidemark::compile

#include "tidemark/compile/cpu/library_ops.h"

#include <algorithm>
#include <cmath>

#include "tidemark/compile/cpu/contract_ops.h"
#include "tidemark/compile/cpu/dense.h"
#include "tidemark/compile/cpu/draws.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/linalg_ops.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/fft.h"
#include "tidemark/emit/library/index.h"
#include "tidemark/emit/library/resample.h"
#include "tidemark/emit/library/scan.h"
#include "tidemark/emit/library/sort.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/scan.h"

namespace tidemark::compile {
namespace {

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

// ---- Fourier transforms -------------------------------------------------------------------------

// Of a dense operand [outer, axis, inner, 2].
library::Fourier complex_fourier(const Attrs& attrs, const ArrayRef& result) {
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

// Of a dense operand.
library::Fourier fourier_of(const OpDef& op, const Attrs& attrs, const ArrayRef& result) {
  if (op.attrs.data() == ops::kFourierAttrs) return complex_fourier(attrs, result);
  const ops::RealFourierSpec spec = ops::RealFourierSpec::from(attrs);
  const int64_t row = spec.inverse ? spec.count : 2 * (spec.count / 2 + 1);
  return {.dtype = result.dtype,
          .kind = spec.inverse ? library::FourierKind::to_reals : library::FourierKind::of_reals,
          .outer = result.size() / row,
          .count = spec.count,
          .inverse = spec.inverse,
          .adjoint = spec.adjoint,
          .scale = spec.scale,
          .to = result.data};
}

int64_t fft_workspace(const OpDef& op, const ArrayRef& operand, const Attrs& attrs,
                      const ArrayRef& result) {
  const int64_t scratch = library::fft_scratch_bytes(fourier_of(op, attrs, result), num_threads());
  return Dense::bytes(operand) + granted_bytes(scratch);
}

void run_fft(const OpDef& op, const ArrayRef& operand, const Attrs& attrs, const ArrayRef& result) {
  const Dense x(operand);
  const int threads = num_threads();
  library::Fourier work = fourier_of(op, attrs, result);
  const Workspace scratch(library::fft_scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  work.from = x.ref().data;
  library::fft(work, threads, scratch.data());
}

}  // namespace

int64_t library_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                          std::span<const ArrayRef> results) {
  if (is_linalg(op.routine)) return linalg_workspace(op, operands, attrs, results);
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
    case Routine::distances:
    case Routine::weighted_differences:
      return distances_workspace(operands, result);
    case Routine::fft:
      return fft_workspace(op, operands[0], attrs, result);
    case Routine::linear_scan:
    case Routine::searchsorted:
      return Dense::bytes(operands[0]) + Dense::bytes(operands[1]);
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
      if (operands.size() == 2) return Dense::bytes(operands[1]);
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
    case Routine::distances:
    case Routine::weighted_differences:
      return run_distances(operands, result);
    case Routine::fft:
      return run_fft(op, operands[0], attrs, result);
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

void run_resample_images(const ArrayRef& images, Sampling sampling, bool antialias,
                         const ArrayRef& result) {
  if (result.size() == 0) return;
  const library::ResampleImages work{.dtype = result.dtype,
                                     .n = images.shape[0],
                                     .h = images.shape[1],
                                     .w = images.shape[2],
                                     .c = images.shape[3],
                                     .to_h = result.shape[1],
                                     .to_w = result.shape[2],
                                     .sampling = sampling,
                                     .antialias = antialias};
  const int threads = num_threads();
  const Workspace scratch(library::resample_images_scratch_bytes(work, threads));
  library::resample_images(work, threads, images.data, result.data, scratch.data());
}

}  // namespace tidemark::compile

#include "tidemark/calls/fourier.h"

#include <cmath>
#include <numbers>

#include "tidemark/calls/create.h"
#include "tidemark/calls/scans.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

// Inside, complex numbers are pairs of f32 or f64 on the last axis.
namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

// The complex dtype that holds the transform of numbers.
DType spectrum_dtype(const Tensor& x) {
  return complex_dtype(is_low_precision(x.dtype()) ? DType::f32 : x.dtype());
}

// `count` elements from `begin` on along one axis, as a view.
Tensor part_of(const Tensor& x, int64_t axis, int64_t begin, Dim count) {
  const Shape shape = x.shape();
  DimList begins(static_cast<size_t>(shape.rank()), 0);
  begins[static_cast<size_t>(axis)] = begin;
  Shape sizes = shape;
  sizes.set(axis, count);
  return bind_op(def_of(&ops::slice), {&x, 1},
                 Attrs().add(begins).add(sizes).add(AxisList(begins.size(), 1)), Source::here());
}

}  // namespace

namespace fft {
namespace {

double scale_of(Norm norm, bool inverse, int64_t n) {
  const auto length = static_cast<double>(n);
  if (norm == Norm::ortho) return 1 / std::sqrt(length);
  return inverse == (norm == Norm::backward) ? 1 / length : 1;
}

int64_t checked_length(int64_t n, std::string_view name, Source at) {
  if (n < 1)
    throw UserError(cat("fft::", name, ": a transform of length ", n), at,
                    "the length is at least 1");
  return n;
}

// An axis cut off, or padded with zeros at its end.
Tensor resized(const Tensor& x, int64_t axis, int64_t n) {
  const int64_t size = x.shape()[axis];
  if (size == n) return x;
  if (size > n) return part_of(x, axis, 0, n);
  Padding2 widths(static_cast<size_t>(x.rank()));
  widths[static_cast<size_t>(axis)].second = n - size;
  return pad(x, widths);
}

// A number of the program.
int64_t axis_of(const Tensor& x, int64_t axis, std::string_view name, Source at) {
  return plain_axis(axis, x.rank(), cat("fft::", name), type_of(x, at), at);
}

Tensor transform(const Tensor& pairs, int64_t axis, bool inverse, double scale) {
  const AxisList axes = {axis, pairs.rank() - 1};
  return bind_op(def_of(&ops::fourier), {&pairs, 1}, Attrs().add(axes).add(inverse).add(scale),
                 Source::here());
}

Tensor with_axis_moved(const Tensor& x, int64_t from, int64_t to) {
  if (from == to) return x;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

// See ops::real_fourier.
Tensor real_transform(const Tensor& x, const ops::RealFourierSpec& spec) {
  return bind_op(def_of(&ops::real_fourier), {&x, 1}, spec.attrs(), Source::here());
}

Tensor of_complex(const Operand& x, const AxisOptions& options, bool inverse, std::string_view name,
                  Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  const int64_t axis = axis_of(given, options.axis, name, at);
  const int64_t n = checked_length(options.n ? *options.n : int64_t{given.shape()[axis]}, name, at);
  const Tensor z = view_as_real(cast(given, spectrum_dtype(given)));
  const double scale = scale_of(options.norm, inverse, n);
  return view_as_complex(transform(resized(z, axis, n), axis, inverse, scale));
}

Norm other(Norm norm) {
  return norm == Norm::ortho ? norm : norm == Norm::backward ? Norm::forward : Norm::backward;
}

// "rfft: does not take complex numbers"
void check_is_real(const Tensor& x, std::string_view name, Source at) {
  if (is_complex(x.dtype()))
    throw UserError(cat("fft::", name, ": takes real numbers, got ", type_of(x, at)), at,
                    "of complex ones take td::fft::fft, or their parts: td::real(z)");
}

}  // namespace

Tensor fft(const Operand& x, const AxisOptions& options, Source at) {
  return of_complex(x, options, false, "fft", at);
}

Tensor ifft(const Operand& x, const AxisOptions& options, Source at) {
  return of_complex(x, options, true, "ifft", at);
}

Tensor rfft(const Operand& x, const AxisOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  check_is_real(given, "rfft", at);
  const int64_t axis = axis_of(given, options.axis, "rfft", at), last = given.rank() - 1;
  const int64_t n =
      checked_length(options.n ? *options.n : int64_t{given.shape()[axis]}, "rfft", at);
  const double scale = scale_of(options.norm, false, n);
  const Tensor wide = cast(given, part_dtype(spectrum_dtype(given)));
  const Tensor reals = with_axis_moved(resized(wide, axis, n), axis, last);
  const Tensor made = real_transform(reals, {.scale = scale, .count = n});
  return view_as_complex(with_axis_moved(made, last, axis));
}

Tensor irfft(const Operand& x, const AxisOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  const int64_t axis = axis_of(given, options.axis, "irfft", at), last = given.rank() - 1;
  const int64_t n =
      checked_length(options.n ? *options.n : 2 * (int64_t{given.shape()[axis]} - 1), "irfft", at);
  const double scale = scale_of(options.norm, true, n);
  const Tensor z = view_as_real(cast(given, spectrum_dtype(given)));
  const Tensor spectrum = with_axis_moved(resized(z, axis, n / 2 + 1), axis, last);
  const Tensor made = real_transform(spectrum, {.inverse = true, .scale = scale, .count = n});
  return with_axis_moved(made, last, axis);
}

// The transform in the other direction of the conjugates.
Tensor hfft(const Operand& x, const AxisOptions& options, Source at) {
  AxisOptions turned = options;
  turned.norm = other(options.norm);
  return irfft(conj(x, at), turned, at);
}

Tensor ihfft(const Operand& x, const AxisOptions& options, Source at) {
  AxisOptions turned = options;
  turned.norm = other(options.norm);
  return conj(rfft(x, turned, at), at);
}

namespace {

// The axes to transform, each with its length.
std::vector<AxisOptions> several(const AxesOptions& options, int64_t rank, std::string_view name,
                                 Source at) {
  std::vector<int64_t> axes = options.axes;
  const auto named = static_cast<int64_t>(options.s.size());
  const int64_t count = named > 0 ? named : rank;
  for (int64_t i = axes.empty() ? -count : 0; i < 0; ++i) axes.push_back(i);
  if (axes.empty() || (named > 0 && named != static_cast<int64_t>(axes.size())))
    throw UserError(cat("fft::", name, ": ", named, " lengths for ", axes.size(), " axes"), at,
                    "give a length for each axis, or none");
  std::vector<AxisOptions> list;
  for (size_t i = 0; i < axes.size(); ++i) {
    list.push_back({.n = {}, .axis = axes[i], .norm = options.norm});
    if (named > 0) list.back().n = options.s[i];
  }
  return list;
}

AxesOptions of_two(AxesOptions options) {
  if (options.axes.empty()) options.axes = {-2, -1};
  return options;
}

}  // namespace

Tensor fftn(const Operand& x, const AxesOptions& options, Source at) {
  Tensor z = tensor_of(x, at);
  for (const AxisOptions& each : several(options, z.rank(), "fftn", at)) z = fft(z, each, at);
  return z;
}

Tensor ifftn(const Operand& x, const AxesOptions& options, Source at) {
  Tensor z = tensor_of(x, at);
  for (const AxisOptions& each : several(options, z.rank(), "ifftn", at)) z = ifft(z, each, at);
  return z;
}

Tensor rfftn(const Operand& x, const AxesOptions& options, Source at) {
  const Tensor given = tensor_of(x, at);
  std::vector<AxisOptions> axes = several(options, given.rank(), "rfftn", at);
  Tensor z = rfft(given, axes.back(), at);
  axes.pop_back();
  for (const AxisOptions& each : axes) z = fft(z, each, at);
  return z;
}

Tensor irfftn(const Operand& x, const AxesOptions& options, Source at) {
  Tensor z = tensor_of(x, at);
  std::vector<AxisOptions> axes = several(options, z.rank(), "irfftn", at);
  const AxisOptions last = axes.back();
  axes.pop_back();
  for (const AxisOptions& each : axes) z = ifft(z, each, at);
  return irfft(z, last, at);
}

Tensor fft2(const Operand& x, const AxesOptions& options, Source at) {
  return fftn(x, of_two(options), at);
}
Tensor ifft2(const Operand& x, const AxesOptions& options, Source at) {
  return ifftn(x, of_two(options), at);
}
Tensor rfft2(const Operand& x, const AxesOptions& options, Source at) {
  return rfftn(x, of_two(options), at);
}
Tensor irfft2(const Operand& x, const AxesOptions& options, Source at) {
  return irfftn(x, of_two(options), at);
}

Tensor fftfreq(int64_t n, double d, DType dtype, Source at) {
  const SourceScope scope(at);
  checked_length(n, "fftfreq", at);
  const Tensor upward = arange((n + 1) / 2), downward = arange(-(n / 2), 0);
  return cast(cast(concat({upward, downward}), DType::f64) / (static_cast<double>(n) * d), dtype);
}

Tensor rfftfreq(int64_t n, double d, DType dtype, Source at) {
  const SourceScope scope(at);
  checked_length(n, "rfftfreq", at);
  return cast(cast(arange(n / 2 + 1), DType::f64) / (static_cast<double>(n) * d), dtype);
}

namespace {

Tensor shifted(const Operand& x, const Axes& axes, bool back, std::string_view name, Source at) {
  const SourceScope scope(at);
  Tensor moved = tensor_of(x, at);
  const AxisList list = plain_axes(axes, cat("fft::", name), type_of(moved, at), at);
  for (const int64_t axis : list) {
    const int64_t size = moved.shape()[axis];
    moved = roll(moved, back ? -(size / 2) : size / 2, axis);
  }
  return moved;
}

}  // namespace

Tensor fftshift(const Operand& x, const Axes& axes, Source at) {
  return shifted(x, axes, false, "fftshift", at);
}
Tensor ifftshift(const Operand& x, const Axes& axes, Source at) {
  return shifted(x, axes, true, "ifftshift", at);
}

}  // namespace fft
}  // namespace tidemark

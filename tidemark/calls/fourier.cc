#include "tidemark/calls/fourier.h"

#include <cmath>
#include <numbers>

#include "tidemark/calls/create.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

Tensor pairs_of(const Operand& z, std::string_view name, Source at) {
  Tensor tensor = tensor_of(z, at);
  const TensorType type = type_of(tensor, at);
  if (type.shape.rank() == 0 || type.shape[-1].known_or(0) != 2)
    throw UserError(cat(name, ": takes pairs (re, im) on the last axis, got ", type), at,
                    "make them: td::complex::make(re, im)");
  return is_float(type.dtype) ? tensor : cast(tensor, DType::f32);
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

Tensor component(const Tensor& z, int64_t which) {
  const int64_t last = z.rank() - 1;
  return squeeze(part_of(z, last, which, 1), last);
}

struct Parts {
  Tensor re, im;
  explicit Parts(const Tensor& z) : re(component(z, 0)), im(component(z, 1)) {}
  Parts(Tensor real, Tensor imag) : re(std::move(real)), im(std::move(imag)) {}
};

Tensor joined(const Tensor& re, const Tensor& im) { return stack({re, im}, -1); }

// The axis of pairs comes last, and is not counted.
int64_t axis_before_pairs(const Tensor& z, int64_t axis, std::string_view name, Source at) {
  TensorType type = type_of(z, at);
  type.shape.erase(type.shape.rank() - 1);
  return plain_axis(axis, type.shape.rank(), name, type, at);
}

}  // namespace

namespace complex {

Tensor make(const Operand& re, const Operand& im, Source at) {
  const SourceScope scope(at);
  Tensor list[] = {tensor_of(re, at), tensor_of(im, at)};
  const OperandType types[] = {{list[0].dtype(), detail::number_of(re, at).weak, nullptr},
                               {list[1].dtype(), detail::number_of(im, at).weak, nullptr}};
  const DType common = promote(types);
  Shape shape = list[0].shape();
  broadcast_into(shape, list[1].shape(), "complex::make", at);
  for (Tensor& each : list)
    each = broadcast_to(cast(each, is_float(common) ? common : DType::f32, at), shape, at);
  return joined(list[0], list[1]);
}

Tensor real(const Operand& z, Source at) {
  const SourceScope scope(at);
  return component(pairs_of(z, "complex::real", at), 0);
}

Tensor imag(const Operand& z, Source at) {
  const SourceScope scope(at);
  return component(pairs_of(z, "complex::imag", at), 1);
}

Tensor conj(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Parts parts(pairs_of(z, "complex::conj", at));
  return joined(parts.re, -parts.im);
}

Tensor abs(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Parts parts(pairs_of(z, "complex::abs", at));
  return hypot(parts.re, parts.im);
}

Tensor angle(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Parts parts(pairs_of(z, "complex::angle", at));
  return atan2(parts.im, parts.re);
}

Tensor exp(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Parts parts(pairs_of(z, "complex::exp", at));
  const Tensor size = tidemark::exp(parts.re);
  return joined(size * cos(parts.im), size * sin(parts.im));
}

Tensor multiply(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Parts x(pairs_of(a, "complex::multiply", at)), y(pairs_of(b, "complex::multiply", at));
  return joined(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

// Smith's method: the larger part of the divisor is divided by, so that nothing overflows on the
// way.
Tensor divide(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Parts x(pairs_of(a, "complex::divide", at)), y(pairs_of(b, "complex::divide", at));
  const Tensor is_flat = tidemark::abs(y.re) >= tidemark::abs(y.im);
  const Tensor large = where(is_flat, y.re, y.im), small = where(is_flat, y.im, y.re);
  const Tensor ratio = small / large, size = large + small * ratio;
  const Tensor re = where(is_flat, x.re + x.im * ratio, x.re * ratio + x.im);
  const Tensor im = where(is_flat, x.im - x.re * ratio, x.im * ratio - x.re);
  return joined(re / size, im / size);
}

Tensor equal(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Tensor x = pairs_of(a, "complex::equal", at), y = pairs_of(b, "complex::equal", at);
  return all(x == y, -1);
}

// Halves are multiplied until one element is left: the error grows with the logarithm of the size.
Tensor prod(const Operand& z, int64_t axis, Source at) {
  const SourceScope scope(at);
  Tensor x = pairs_of(z, "complex::prod", at);
  const int64_t plain = axis_before_pairs(x, axis, "complex::prod", at);
  if (int64_t{x.shape()[plain]} == 0) {
    Shape shape = x.shape();
    shape.erase(plain);
    shape.erase(shape.rank() - 1);
    return make(ones(shape, x.dtype()), zeros(shape, x.dtype()));
  }
  for (int64_t size = x.shape()[plain]; size > 1; size -= size / 2) {
    const int64_t half = size / 2;
    const Tensor made = multiply(part_of(x, plain, 0, half), part_of(x, plain, half, half));
    x = size % 2 == 0 ? made : concat({made, part_of(x, plain, 2 * half, 1)}, plain);
  }
  return squeeze(x, plain);
}

Tensor matmul(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Parts x(pairs_of(a, "complex::matmul", at)), y(pairs_of(b, "complex::matmul", at));
  using tidemark::matmul;
  return joined(matmul(x.re, y.re) - matmul(x.im, y.im), matmul(x.re, y.im) + matmul(x.im, y.re));
}

}  // namespace complex

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

// 16-bit floats are transformed in f32.
Tensor wide(const Tensor& x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }
Tensor rounded(const Tensor& y, DType dtype) { return is_float(dtype) ? cast(y, dtype) : y; }

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

// exp(sign 2 pi i k / n) for k < count; computed in f64, rounded to the dtype.
Parts roots(int64_t count, int64_t n, double sign, DType dtype) {
  const double step = sign * 2 * std::numbers::pi / static_cast<double>(n);
  const Tensor angle = cast(arange(count), DType::f64) * step;
  return {cast(cos(angle), dtype), cast(sin(angle), dtype)};
}

// z[k] and the conjugate of z[count - 1 - k], along the axis before the pairs: half their sum and
// half their difference.
struct Mirrored {
  Parts here, there;
  explicit Mirrored(const Tensor& z) : here(z), there(flip(z, z.rank() - 2)) {}
  Parts even() const { return {(here.re + there.re) * 0.5, (here.im - there.im) * 0.5}; }
  Parts odd() const { return {(here.re - there.re) * 0.5, (here.im + there.im) * 0.5}; }
};

// Of an even number of reals on the last axis: pairs of neighbours are transformed as complex
// numbers of half the length, and the transforms of the even and the odd elements taken apart.
Tensor half_length(const Tensor& x, int64_t n, double scale) {
  const int64_t axis = x.rank() - 1;
  Shape shape = x.shape();
  shape.set(axis, n / 2);
  shape.push_back(2);
  const Tensor z = transform(reshape(x, shape), axis, false, scale);
  const Mirrored both(concat({z, part_of(z, axis, 0, 1)}, axis));
  const Parts w = roots(n / 2 + 1, n, -1, x.dtype()), even = both.even(), odd = both.odd();
  // The odd elements have -i times the difference.
  return joined(even.re + (w.re * odd.im + w.im * odd.re),
                even.im + (w.im * odd.im - w.re * odd.re));
}

// Without the imaginary parts that the transform of reals has not: those of the first element, and
// for an even length of the last.
Tensor of_reals(const Tensor& z, int64_t n) {
  const Tensor k = arange(n / 2 + 1);
  const Tensor is_free = n % 2 == 0 ? (k > 0) & (k < n / 2) : k > 0;
  const Parts parts(z);
  return joined(parts.re, where(is_free, parts.im, 0));
}

// The inverse of `half_length`, of n / 2 + 1 pairs on the last axes.
Tensor from_half_length(const Tensor& spectrum, int64_t n, double scale) {
  const int64_t axis = spectrum.rank() - 2, half = n / 2;
  const Mirrored both(spectrum);
  const Parts w = roots(half + 1, n, 1, spectrum.dtype()), even = both.even(), odd = both.odd();
  // Both at once: even + i w odd.
  const Tensor z =
      joined(even.re - (w.re * odd.im + w.im * odd.re), even.im + (w.re * odd.re - w.im * odd.im));
  const Tensor x = transform(part_of(z, axis, 0, half), axis, true, 2 * scale);
  Shape shape = x.shape();
  shape.erase(axis + 1);
  shape.set(axis, n);
  return reshape(x, shape);
}

// All n pairs of the spectrum of reals, from the first n / 2 + 1; n is odd.
Tensor all_of(const Tensor& spectrum, int64_t n) {
  const int64_t axis = spectrum.rank() - 2;
  const Tensor rest = flip(part_of(spectrum, axis, 1, n / 2), axis);
  return concat({spectrum, complex::conj(rest)}, axis);
}

Tensor of_complex(const Operand& x, const AxisOptions& options, bool inverse, std::string_view name,
                  Source at) {
  const SourceScope scope(at);
  const Tensor z = pairs_of(x, cat("fft::", name), at);
  const int64_t axis = axis_before_pairs(z, options.axis, cat("fft::", name), at);
  const int64_t n = checked_length(options.n ? *options.n : int64_t{z.shape()[axis]}, name, at);
  const double scale = scale_of(options.norm, inverse, n);
  return rounded(transform(resized(wide(z), axis, n), axis, inverse, scale), z.dtype());
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
  const int64_t axis = plain_axis(options.axis, given.rank(), "fft::rfft", type_of(given, at), at);
  const int64_t last = given.rank() - 1;
  const int64_t n =
      checked_length(options.n ? *options.n : int64_t{given.shape()[axis]}, "rfft", at);
  const double scale = scale_of(options.norm, false, n);
  const Tensor reals = with_axis_moved(resized(wide(given), axis, n), axis, last);
  const auto by_pairs = [&] {
    return transform(joined(reals, zeros_like(reals)), last, false, scale);
  };
  const Tensor made =
      n % 2 == 0 ? half_length(reals, n, scale) : part_of(by_pairs(), last, 0, n / 2 + 1);
  return rounded(with_axis_moved(made, last, axis), given.dtype());
}

Tensor irfft(const Operand& x, const AxisOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor z = pairs_of(x, "fft::irfft", at);
  const int64_t axis = axis_before_pairs(z, options.axis, "fft::irfft", at), last = z.rank() - 2;
  const int64_t n =
      checked_length(options.n ? *options.n : 2 * (int64_t{z.shape()[axis]} - 1), "irfft", at);
  const double scale = scale_of(options.norm, true, n);
  const Tensor spectrum =
      of_reals(with_axis_moved(resized(wide(z), axis, n / 2 + 1), axis, last), n);
  const Tensor made = n % 2 == 0 ? from_half_length(spectrum, n, scale)
                                 : component(transform(all_of(spectrum, n), last, true, scale), 0);
  return rounded(with_axis_moved(made, last, axis), z.dtype());
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
  Tensor z = pairs_of(x, "fft::fftn", at);
  for (const AxisOptions& each : several(options, z.rank() - 1, "fftn", at)) z = fft(z, each, at);
  return z;
}

Tensor ifftn(const Operand& x, const AxesOptions& options, Source at) {
  Tensor z = pairs_of(x, "fft::ifftn", at);
  for (const AxisOptions& each : several(options, z.rank() - 1, "ifftn", at)) z = ifft(z, each, at);
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
  Tensor z = pairs_of(x, "fft::irfftn", at);
  std::vector<AxisOptions> axes = several(options, z.rank() - 1, "irfftn", at);
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

}  // namespace fft
}  // namespace tidemark

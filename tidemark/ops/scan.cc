#include "tidemark/ops/scan.h"

#include <cmath>
#include <numbers>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/types/size.h"

namespace tidemark::ops {

ResampleSpec ResampleSpec::from(const Attrs& attrs) {
  Attrs::Reader read = attrs.read();
  ResampleSpec spec;
  spec.axis = read.integer();
  spec.size = read.size();
  spec.sampling = static_cast<Sampling>(read.integer());
  spec.antialias = read.boolean();
  spec.transposed = read.boolean();
  return spec;
}

Attrs ResampleSpec::attrs() const {
  return Attrs()
      .add(axis)
      .add(size)
      .add(static_cast<int64_t>(sampling))
      .add(antialias)
      .add(transposed);
}

}  // namespace tidemark::ops

namespace tidemark::ops {

RealFourierSpec RealFourierSpec::from(const Attrs& attrs) {
  Attrs::Reader read = attrs.read();
  RealFourierSpec spec;
  spec.inverse = read.boolean();
  spec.scale = read.number();
  spec.count = read.integer();
  spec.adjoint = read.boolean();
  return spec;
}

Attrs RealFourierSpec::attrs() const {
  return Attrs().add(inverse).add(scale).add(count).add(adjoint);
}

}  // namespace tidemark::ops

namespace tidemark::ops::rule {
namespace {

struct ScanAttrs {
  int64_t axis;
  bool reverse;
  explicit ScanAttrs(const Attrs& attrs) {
    Attrs::Reader read = attrs.read();
    axis = read.integer();
    reverse = read.boolean();
  }
  Attrs backwards() const { return Attrs().add(axis).add(!reverse); }
};

// x moved by one place along an axis, to later positions or to earlier ones; `fill` comes in.
Term moved(Term x, int64_t axis, bool later, double fill) {
  const Shape shape = x.shape();
  const auto rank = static_cast<size_t>(shape.rank()), at = static_cast<size_t>(axis);
  DimList begin(rank, 0), low(rank, 0), high(rank, 0);
  DimList end;
  for (int64_t i = 0; i < shape.rank(); ++i) end.push_back(shape[i]);
  if (later)
    end[at] = shape[axis] - 1;
  else
    begin[at] = 1;
  (later ? low : high)[at] = 1;
  const Term part = term::slice(x, begin, end, AxisList(rank, 1));
  return pad.apply(
      {part},
      Attrs().add(low).add(high).add(AxisList(rank, 0)).add(fill).add(static_cast<int64_t>(fill)));
}

bool is_empty(Term x, int64_t axis) { return !is_less(0, x.shape()[axis]); }

}  // namespace

TensorType infer_extremum_scan(const InferContext& context) {
  TensorType type = context.operands[0];
  if (context.result == 1) type.dtype = DType::i64;
  return type;
}

TensorType infer_linear_scan(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  if (a.shape != b.shape || a.dtype != b.dtype)
    throw UserError(cat("linear_scan: factors ", a, " and terms ", b, " differ"), context.at,
                    "give both one shape and one dtype");
  return a;
}

TensorType infer_searchsorted(const InferContext& context) {
  const TensorType &sorted = context.operands[0], &values = context.operands[1];
  bool fits = sorted.dtype == values.dtype && sorted.shape.rank() == values.shape.rank() &&
              sorted.shape.rank() > 0;
  for (int64_t i = 0; fits && i + 1 < sorted.shape.rank(); ++i)
    fits = sorted.shape[i] == values.shape[i];
  if (!fits)
    throw UserError(cat("searchsorted: values ", values, " do not fit rows ", sorted), context.at,
                    "give one sorted row, or as many rows as values have");
  return {DType::i64, values.shape};
}

// x[i] is a factor of y[i] and all later results: the product of the factors before it, times the
// sum of g[j] x[i + 1] ... x[j] over j >= i, which is a recurrence. Nothing is divided, so zeros
// need no care.
Term grad_cumprod(const GradContext& context, int) {
  const ScanAttrs attrs(context.attrs);
  const Term x = context.operands[0];
  if (is_empty(x, attrs.axis)) return context.g;
  const Term before = moved(context.result, attrs.axis, !attrs.reverse, 1);
  const Term next = moved(x, attrs.axis, attrs.reverse, 0);
  return before * linear_scan.apply({next, context.g}, attrs.backwards());
}

// The gradient by the terms is the recurrence backwards; by a factor, that times the state before.
Term grad_linear_scan(const GradContext& context, int index) {
  const ScanAttrs attrs(context.attrs);
  const Term a = context.operands[0];
  if (is_empty(a, attrs.axis)) return context.g;
  const Term next = moved(a, attrs.axis, attrs.reverse, 0);
  const Term back = linear_scan.apply({next, context.g}, attrs.backwards());
  return index == 1 ? back : back * moved(context.result, attrs.axis, !attrs.reverse, 0);
}

namespace {

// Calls f(previous, here) with the numbers of neighbours in the order of the scan; `previous` is -1
// at the start of a row.
template <class F>
void for_each_step(const ReferenceContext& context, F f) {
  const ScanAttrs attrs(context.attrs);
  const Shape& shape = context.operands[0].shape;
  const int64_t count = shape[attrs.axis];
  const int64_t stride = contiguous_strides(shape)[static_cast<size_t>(attrs.axis)];
  reference::for_each_index(shape, [&](std::span<const int64_t> index, int64_t i) {
    if (index[static_cast<size_t>(attrs.axis)] != 0) return;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t position = attrs.reverse ? count - 1 - k : k;
      const int64_t here = i + position * stride;
      f(k == 0 ? int64_t{-1} : here + (attrs.reverse ? stride : -stride), here, position);
    }
  });
}

// A running value in the type that kernels keep it in: f32 for 16-bit floats.
template <class Step>
void accumulate(const ReferenceContext& context, Step step) {
  const DType dtype = context.result.dtype;
  double state = 0;
  uint64_t whole = 0;
  for_each_step(context, [&](int64_t previous, int64_t here, int64_t) {
    if (!is_float(dtype)) {
      whole = step(previous < 0, whole, here, [](const ArrayRef& array, int64_t i) {
        return static_cast<uint64_t>(reference::read_integer(array, i));
      });
      return reference::write(context.result, here, static_cast<int64_t>(whole));
    }
    const auto read = [](const ArrayRef& array, int64_t i) {
      return static_cast<double>(reference::read_float(array, i));
    };
    if (dtype == DType::f64) {
      state = step(previous < 0, state, here, read);
    } else {
      state = step(
          previous < 0, static_cast<float>(state), here,
          [&](const ArrayRef& array, int64_t i) { return static_cast<float>(read(array, i)); });
    }
    reference::write(context.result, here, static_cast<long double>(state));
  });
}

}  // namespace

void reference_cumprod(const ReferenceContext& context) {
  accumulate(context, [&](bool first, auto state, int64_t here, auto read) {
    const auto x = read(context.operands[0], here);
    return first ? x : state * x;
  });
}

void reference_linear_scan(const ReferenceContext& context) {
  accumulate(context, [&](bool first, auto state, int64_t here, auto read) {
    const auto a = read(context.operands[0], here), b = read(context.operands[1], here);
    if (first) return b;
    const auto product = a * state;
    return product + b;
  });
}

void reference_extremum_scan(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const bool largest = context.op.routine == Routine::cummax;
  int64_t best = 0, at = 0;
  for_each_step(context, [&](int64_t previous, int64_t here, int64_t position) {
    const auto replaces = [&](auto old, auto now) {
      return old == old && (now != now || (largest ? now > old : now < old));
    };
    const bool takes =
        previous < 0 ||
        (is_float(x.dtype)
             ? replaces(reference::read_float(x, best), reference::read_float(x, here))
             : replaces(reference::read_ordered(x, best), reference::read_ordered(x, here)));
    if (takes) {
      best = here;
      at = position;
    }
    if (is_float(x.dtype))
      reference::write(context.results[0], here, reference::read_float(x, best));
    else
      reference::write(context.results[0], here, reference::read_integer(x, best));
    reference::write(context.results[1], here, at);
  });
}

void reference_searchsorted(const ReferenceContext& context) {
  const ArrayRef &sorted = context.operands[0], &values = context.operands[1];
  const bool right = context.attrs.read().boolean();
  const int64_t size = sorted.shape[-1], count = values.shape[-1];
  const auto before = [&](auto a, auto b) { return a < b || (b != b && a == a); };
  const auto counts = [&](auto read, int64_t element, int64_t value) {
    const auto x = read(sorted, element), v = read(values, value);
    return before(x, v) || (right && !before(v, x));
  };
  for (int64_t i = 0; i < values.size(); ++i) {
    int64_t found = 0;
    for (int64_t j = 0; j < size; ++j) {
      const int64_t element = i / count * size + j;
      found += is_float(sorted.dtype) ? counts(reference::read_float, element, i)
                                      : counts(reference::read_ordered, element, i);
    }
    reference::write(context.result, i, found);
  }
}

// ---- resampling ---------------------------------------------------------------------------------

TensorType infer_resample(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const ResampleSpec spec = ResampleSpec::from(context.attrs);
  if (x.dtype != DType::f32 && x.dtype != DType::f64)
    throw UserError(cat("resample: takes f32 and f64, got ", x.dtype), context.at,
                    "cast it first: td::cast(x, td::f32)");
  if (static_cast<int64_t>(spec.sampling) < 0 || spec.sampling > Sampling::mean)
    throw UserError(cat("resample: there is no sampling ", static_cast<int64_t>(spec.sampling)),
                    context.at, "the choices are 0 to 3");
  const Dim from = x.shape[spec.axis];
  const bool sizes_known = !from.is_traced() && !spec.size.is_traced();
  if (sizes_known && (spec.size < 0 || (spec.size > 0) != (from > 0)))
    throw UserError(
        cat("resample: axis ", spec.axis, " of ", x, " cannot have ", spec.size, " samples"),
        context.at, "both sizes must be positive, or both 0");
  Shape shape = x.shape;
  shape.set(spec.axis, spec.size);
  return {x.dtype, shape};
}

Term grad_resample(const GradContext& context, int) {
  ResampleSpec spec = ResampleSpec::from(context.attrs);
  spec.size = context.operands[0].shape()[spec.axis];
  spec.transposed = !spec.transposed;
  return resample.apply({context.g}, spec.attrs());
}

namespace {

// The weight of sample j of `in` in sample i of `out`, before weights are divided by their sum.
long double raw_weight(const ResampleSpec& spec, int64_t in, int64_t out, int64_t i, int64_t j) {
  if (spec.sampling == Sampling::nearest) return (2 * i + 1) * in / (2 * out) == j ? 1 : 0;
  if (spec.sampling == Sampling::mean) return j >= i * in / out && j * out < (i + 1) * in ? 1 : 0;
  const long double step = static_cast<long double>(in) / static_cast<long double>(out);
  const long double wide = spec.antialias && in > out ? step : 1;
  const long double t = std::fabs(
      (static_cast<long double>(j) + 0.5L - (static_cast<long double>(i) + 0.5L) * step) / wide);
  if (spec.sampling == Sampling::linear) return t < 1 ? 1 - t : 0;
  if (t >= 2) return 0;
  return t < 1 ? (1.5L * t - 2.5L) * t * t + 1 : ((-0.5L * t + 2.5L) * t - 4) * t + 2;
}

long double weight(const ResampleSpec& spec, int64_t in, int64_t out, int64_t i, int64_t j) {
  long double sum = 0;
  for (int64_t k = 0; k < in; ++k) sum += raw_weight(spec, in, out, i, k);
  return raw_weight(spec, in, out, i, j) / sum;
}

}  // namespace

// By the dense matrix of weights.
void reference_resample(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const ResampleSpec spec = ResampleSpec::from(context.attrs);
  const int64_t from = x.shape[spec.axis], to = context.result.shape[spec.axis];
  const auto axis = static_cast<size_t>(spec.axis);
  const Strides strides = contiguous_strides(x.shape);
  std::vector<long double> weights;
  for (int64_t i = 0; i < to; ++i)
    for (int64_t j = 0; j < from; ++j)
      weights.push_back(spec.transposed ? weight(spec, to, from, j, i)
                                        : weight(spec, from, to, i, j));
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t at) {
    int64_t first = 0;
    for (size_t k = 0; k < index.size(); ++k)
      if (k != axis) first += index[k] * strides[k];
    long double total = 0;
    for (int64_t j = 0; j < from; ++j) {
      const long double w = weights[static_cast<size_t>(index[axis] * from + j)];
      // What has no weight is not there.
      if (w != 0) total += w * reference::read_float(x, first + j * strides[axis]);
    }
    reference::write(context.result, at, total);
  });
}

// ---- Fourier transforms -------------------------------------------------------------------------

TensorType infer_fourier(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::span<const int64_t> axes = context.attrs.read().integers();
  const int64_t last = x.shape.rank() - 1;
  const bool is_complex = axes.size() == 2 && axes[1] == last && x.shape[last] == 2;
  if (!is_complex || (x.dtype != DType::f32 && x.dtype != DType::f64))
    throw UserError(cat("fourier: takes pairs of f32 or f64 on the last axis, got ", x), context.at,
                    "stack real and imaginary parts: td::stack({re, im}, -1)");
  if (!is_less(0, x.shape[axes[0]]))
    throw UserError(cat("fourier: ", x, " has no elements along axis ", axes[0]), context.at,
                    "a transform has at least one element");
  return x;
}

// The matrix is symmetric, so that its adjoint is its conjugate: the transform in the other
// direction.
Term grad_fourier(const GradContext& context, int) {
  Attrs::Reader read = context.attrs.read();
  const AxisList axes(read.integers());
  const bool inverse = read.boolean();
  return fourier.apply({context.g}, Attrs().add(axes).add(!inverse).add(read.number()));
}

void reference_fourier(const ReferenceContext& context) {
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integers()[0];
  const long double turn = (read.boolean() ? 2 : -2) * std::numbers::pi_v<long double>;
  const double scale = read.number();
  const ArrayRef& x = context.operands[0];
  const int64_t count = x.shape[axis];
  const int64_t stride = contiguous_strides(x.shape)[static_cast<size_t>(axis)];
  reference::for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    if (index.back() != 0) return;
    const int64_t k = index[static_cast<size_t>(axis)];
    long double re = 0, im = 0;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = i + (j - k) * stride;
      const long double angle = turn * static_cast<long double>(j * k % count) / count;
      const long double a = reference::read_float(x, at), b = reference::read_float(x, at + 1);
      re += a * std::cos(angle) - b * std::sin(angle);
      im += a * std::sin(angle) + b * std::cos(angle);
    }
    reference::write(context.result, i, re * scale);
    reference::write(context.result, i + 1, im * scale);
  });
}

// ---- of reals

TensorType infer_real_fourier(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const RealFourierSpec spec = RealFourierSpec::from(context.attrs);
  const int64_t rank = x.shape.rank(), kept = spec.count / 2 + 1;
  const bool fits =
      spec.count > 0 && (spec.inverse ? rank > 1 && x.shape[-1] == 2 && x.shape[-2] == kept
                                      : rank > 0 && x.shape[-1] == spec.count);
  if (!fits || (x.dtype != DType::f32 && x.dtype != DType::f64))
    throw UserError(cat("real_fourier: takes ", spec.inverse ? kept : spec.count,
                        spec.inverse ? " pairs" : " numbers", " of f32 or f64, got ", x),
                    context.at, "td::fft::rfft and td::fft::irfft pad or cut off");
  Shape shape = x.shape;
  if (spec.inverse) shape.erase(rank - 1);
  shape.set(shape.rank() - 1, spec.inverse ? spec.count : kept);
  if (!spec.inverse) shape.push_back(2);
  return {x.dtype, shape};
}

Term grad_real_fourier(const GradContext& context, int) {
  RealFourierSpec spec = RealFourierSpec::from(context.attrs);
  spec.inverse = !spec.inverse;
  spec.adjoint = !spec.adjoint;
  return real_fourier.apply({context.g}, spec.attrs());
}

namespace {

// exp(2 pi i j k / n).
struct Turn {
  long double re, im;
  Turn(int64_t j, int64_t k, int64_t n) {
    const long double angle = 2 * std::numbers::pi_v<long double> *
                              static_cast<long double>(j * k % n) / static_cast<long double>(n);
    re = std::cos(angle);
    im = std::sin(angle);
  }
};

// Whether pair k has a conjugate behind it.
bool is_double(int64_t k, int64_t n) { return k > 0 && 2 * k != n; }

}  // namespace

void reference_real_fourier(const ReferenceContext& context) {
  const RealFourierSpec spec = RealFourierSpec::from(context.attrs);
  const ArrayRef& x = context.operands[0];
  const int64_t n = spec.count, kept = n / 2 + 1;
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    long double sum = 0;
    if (spec.inverse) {
      const int64_t row = i / n, j = index.back();
      for (int64_t k = 0; k < kept; ++k) {
        const Turn turn(j, k, n);
        const int64_t at = 2 * (row * kept + k);
        const long double weight = is_double(k, n) && !spec.adjoint ? 2 : 1;
        sum += weight * reference::read_float(x, at) * turn.re;
        if (is_double(k, n)) sum -= weight * reference::read_float(x, at + 1) * turn.im;
      }
    } else {
      const int64_t row = i / 2 / kept, k = i / 2 % kept;
      const bool imaginary = i % 2 == 1;
      for (int64_t j = 0; j < n && (is_double(k, n) || !imaginary); ++j) {
        const Turn turn(j, k, n);
        sum += reference::read_float(x, row * n + j) * (imaginary ? -turn.im : turn.re);
      }
      if (is_double(k, n) && spec.adjoint) sum *= 2;
    }
    reference::write(context.result, i, sum * spec.scale);
  });
}

}  // namespace tidemark::ops::rule

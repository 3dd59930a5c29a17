#include "tidemark/calls/scans.h"

#include <limits>

#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

// x moved by one place in the direction of the scan; `fill` comes in.
Tensor moved(const Tensor& x, int64_t axis, bool reverse, double fill, Source at) {
  const Shape shape = x.shape();
  if (!is_less(0, shape[axis])) return x;
  const auto rank = static_cast<size_t>(shape.rank()), along = static_cast<size_t>(axis);
  DimList begin(rank, 0), low(rank, 0), high(rank, 0);
  Shape size = shape;
  size.set(axis, shape[axis] - 1);
  begin[along] = reverse ? 1 : 0;
  (reverse ? high : low)[along] = 1;
  const Tensor part = bind_op(def_of(&ops::slice), {&x, 1},
                              Attrs().add(begin).add(size).add(AxisList(rank, 1)), at);
  return bind_op(def_of(&ops::pad), {&part, 1},
                 Attrs()
                     .add(low)
                     .add(high)
                     .add(AxisList(rank, 0))
                     .add(fill)
                     .add(is_float(x.dtype()) ? int64_t{0} : static_cast<int64_t>(fill)),
                 at);
}

int64_t axis_of(const Tensor& x, int64_t axis, std::string_view name, Source at) {
  return plain_axis(axis, x.rank(), name, type_of(x, at), at);
}

// A running sum or product; `neutral` is what an exclusive one begins with.
Tensor running(const NamedOp& op, const Operand& x, int64_t axis, RunningOptions options,
               double neutral, Source at) {
  Tensor tensor = tensor_of(x, at);
  const int64_t plain = axis_of(tensor, axis, op.name, at);
  if (options.exclusive) tensor = moved(tensor, plain, options.reverse, neutral, at);
  return bind_op(def_of(&op), {&tensor, 1}, Attrs().add(plain).add(options.reverse), at);
}

}  // namespace

Tensor cumsum(const Operand& x, int64_t axis, RunningOptions options, Source at) {
  const SourceScope scope(at);
  return running(ops::cumsum, x, axis, options, 0, at);
}

Tensor cumprod(const Operand& x, int64_t axis, RunningOptions options, Source at) {
  const SourceScope scope(at);
  return running(ops::cumprod, x, axis, options, 1, at);
}

Tensor cummax(const Operand& x, int64_t axis, DirectionOptions options, Source at) {
  return detail::bind_along_axis({ops::cummax, "cummax", Attrs().add(options.reverse)}, x, axis,
                                 at)[0];
}

Tensor cummin(const Operand& x, int64_t axis, DirectionOptions options, Source at) {
  return detail::bind_along_axis({ops::cummin, "cummin", Attrs().add(options.reverse)}, x, axis,
                                 at)[0];
}

Tensor linear_scan(const Operand& a, const Operand& b, int64_t axis, DirectionOptions options,
                   Source at) {
  const SourceScope scope(at);
  Tensor list[] = {tensor_of(a, at), tensor_of(b, at)};
  const OpDef& op = def_of(&ops::linear_scan);
  const DType promoted = promote(list[0].dtype(), list[1].dtype());
  const DType common = is_complex(promoted) ? promoted : admit(op, promoted, at);
  Shape shape = list[0].shape();
  broadcast_into(shape, list[1].shape(), "linear_scan", at);
  for (Tensor& each : list) each = broadcast_to(cast(each, common, at), shape, at);
  const int64_t plain = axis_of(list[0], axis, "linear_scan", at);
  return bind_op(op, list, Attrs().add(plain).add(options.reverse), at);
}

namespace {

// Sums of exponentials relative to the largest element so far, m: a linear recurrence, whose factor
// scales the sum down where m grows. The result does not depend on m, which therefore has no
// gradient.
Tensor running_logsumexp(const Tensor& given, int64_t axis, const RunningOptions& options,
                         Source at) {
  const DType real = is_float(given.dtype()) ? given.dtype() : DType::f32;
  const DType wide = is_low_precision(real) ? DType::f32 : real;
  const double infinity = std::numeric_limits<double>::infinity();
  const bool reverse = options.reverse;
  Tensor terms = cast(given, wide);
  if (options.exclusive) terms = moved(terms, axis, reverse, -infinity, at);
  const Tensor most = cummax(stop_gradient(terms), axis, {reverse});
  const Tensor before = moved(most, axis, reverse, -infinity, at);
  // Infinities are equal to themselves, but their difference is NaN.
  const Tensor factors = where(before == most, 1, exp(before - most));
  const Tensor base = where(isfinite(most), most, 0);
  const Tensor sums = linear_scan(factors, exp(terms - base), axis, {reverse});
  return cast(base + log(sums), real);
}

}  // namespace

Tensor cumlogsumexp(const Operand& x, int64_t axis, RunningOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(x, at);
  const int64_t plain = axis_of(tensor, axis, "cumlogsumexp", at);
  static constexpr char kSelf = 0;
  const auto run = [&](const detail::Tensors& given) {
    return running_logsumexp(given[0], plain, options, at);
  };
  const auto what =
      detail::Composition(&kSelf).add(plain).add(options.exclusive).add(options.reverse);
  return detail::composed(what, {tensor}, run, at);
}

}  // namespace tidemark

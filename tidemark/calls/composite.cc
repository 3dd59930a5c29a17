// Ops made of other ops. They have no node of their own, so they need no gradient, no kernel and no
// test beyond their value.
#include <cmath>

#include "tidemark/calls/complex.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/calls/random.h"
#include "tidemark/calls/take_class.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/draws.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

using detail::DrawsToKeep;
using detail::tensor_of;
using detail::type_of;

Tensor as_float(const Tensor& x) { return is_differentiable(x.dtype()) ? x : cast(x, DType::f32); }
// The square of the size, which is real.
Tensor squared_size(const Tensor& x) {
  if (!is_complex(x.dtype())) return square(x);
  return sum(square(view_as_real(x)), -1);
}

// Composites of several steps compute 16-bit floats in f32 throughout, so that no intermediate
// value overflows or rounds at 16 bits.
Tensor widened(const Tensor& x) { return is_low_precision(x.dtype()) ? cast(x, DType::f32) : x; }
Tensor narrowed(const Tensor& y, DType given) {
  return is_low_precision(given) ? cast(y, given) : y;
}

// How many elements are reduced into one.
Dim folded_count(const Tensor& x, const AxisList& axes) {
  Dim count = 1;
  for (const int64_t axis : axes) count = count * x.shape()[axis];
  return count;
}

// The square root of a sum of squares, with slope 0 where all of them are 0. There the slope of
// sqrt is infinite, and its product with the slope 0 of a square would be NaN.
Tensor root_of(const Tensor& squares) {
  const Tensor none = squares == 0;
  return where(none, 0, sqrt(where(none, 1, squares)));
}

Axes axes_of(const AxisList& list) { return std::vector<int64_t>(list.begin(), list.end()); }

}  // namespace

Tensor ReduceFunction::operator()(const Operand& x, const Axes& axes, Keep keep, Source at) const {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(x, at);
  const AxisList list = plain_axes(axes, name, type_of(tensor, at), at);
  detail::Composition what(this);
  what.add(keep == Keep::yes);
  for (const int64_t axis : list) what.add(axis);
  const auto run = [&](const detail::Tensors& given) {
    return narrowed(body(widened(given[0]), list, keep), given[0].dtype());
  };
  return detail::composed(what, {tensor}, run, at);
}

namespace detail {

// Integers are added up exactly, in i64, before they are divided. Those of 64 bits may have a sum
// that 64 bits do not hold: they are added up in f64, which gives the same as long as it is exact.
Tensor mean_of(const Tensor& x, const AxisList& axes, Keep keep) {
  if (x.dtype() == DType::i64 || x.dtype() == DType::u64)
    return divide(cast(sum(cast(x, DType::f64), axes_of(axes), keep), DType::f32),
                  folded_count(x, axes));
  return divide(sum(x, axes_of(axes), keep), folded_count(x, axes));
}

Tensor var_of(const Tensor& x, const AxisList& axes, Keep keep) {
  const Tensor real = as_float(x);
  return mean_of(squared_size(real - mean_of(real, axes, Keep::yes)), axes, keep);
}

Tensor std_of(const Tensor& x, const AxisList& axes, Keep keep) {
  return root_of(var_of(x, axes, keep));
}

// The maximum is subtracted first, unless it is infinite. The result does not depend on it, so it
// gets no gradient. Its computed gradient would be a rounding error that grows with the number of
// elements and goes to the largest one alone.
Tensor logsumexp_of(const Tensor& x, const AxisList& axes, Keep keep) {
  const Tensor wide = as_float(x);
  if (folded_count(wide, axes) == 0) return log(sum(wide, axes_of(axes), keep));
  const Tensor largest = max(stop_gradient(wide), axes_of(axes), keepdims);
  const Tensor finite = where(isfinite(largest), largest, 0);
  const Tensor total = log(sum(exp(wide - finite), axes_of(axes), keepdims)) + finite;
  return keep == Keep::yes ? total : squeeze(total, axes_of(axes));
}

Tensor norm_of(const Tensor& x, const AxisList& axes, Keep keep) {
  return root_of(sum(squared_size(as_float(x)), axes_of(axes), keep));
}

}  // namespace detail

namespace {

// A normalisation over the last axis: `body` of the input, scaled.
Tensor normalised(const Operand& x, const NormOptions& options,
                  Tensor (*body)(const Tensor& x, double epsilon), Source at) {
  const SourceScope scope(at);
  std::vector<Tensor> operands = {tensor_of(x, at)};
  for (const auto* each : {&options.scale, &options.bias})
    if (*each) operands.push_back(tensor_of(**each, at));
  const auto run = [body, epsilon = options.epsilon, has_scale = options.scale.has_value(),
                    has_bias = options.bias.has_value()](const std::vector<Tensor>& given) {
    Tensor result = body(as_float(widened(given[0])), epsilon);
    if (has_scale) result = std::move(result) * given[1];
    if (has_bias) result = std::move(result) + given.back();
    return narrowed(result, given[0].dtype());
  };
  detail::Composition what(reinterpret_cast<const void*>(body));
  what.add(options.epsilon).add(options.scale.has_value()).add(options.bias.has_value());
  return detail::as_one_op(what, std::move(operands), run, at);
}

}  // namespace

Tensor layer_norm(const Operand& x, const NormOptions& options, Source at) {
  const auto body = [](const Tensor& wide, double epsilon) {
    const Tensor centred = wide - mean(wide, -1, keepdims);
    return centred * rsqrt(mean(square(centred), -1, keepdims) + epsilon);
  };
  return normalised(x, options, body, at);
}

Tensor rms_norm(const Operand& x, const NormOptions& options, Source at) {
  const auto body = [](const Tensor& wide, double epsilon) {
    return wide * rsqrt(mean(square(wide), -1, keepdims) + epsilon);
  };
  return normalised(x, options, body, at);
}

Tensor embedding(const Operand& table, const Operand& ids, Source at) {
  return gather(table, ids, 0, at);
}

Tensor attention(const Operand& q, const Operand& k, const Operand& v, AttentionOptions options,
                 Source at) {
  const SourceScope scope(at);
  const Tensor query = tensor_of(q, at), key = tensor_of(k, at), value = tensor_of(v, at);
  if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2) {
    throw UserError(cat("attention: needs [..., tokens, features], got ", type_of(query, at), ", ",
                        type_of(key, at), ", ", type_of(value, at)),
                    at, "add the missing axis: td::expand_dims(x, 0)");
  }
  // An additive mask is 0 where a key is kept; converted to bool it would mean the opposite.
  if (options.mask && options.mask->dtype() != DType::boolean)
    throw UserError(
        cat("attention: the mask is ", type_of(*options.mask, at), ", not bool"), at,
        "true keeps a key: pass mask == 0 for a mask that is added to scores, mask != 0 otherwise");
  const device::FloatEnvironment ieee;
  const double scale =
      options.scale.value_or(1.0 / std::sqrt(static_cast<double>(int64_t{query.shape()[-1]})));
  Tensor scores = matmul(query, key, {.transpose_b = true}) * scale;
  constexpr double out = -std::numeric_limits<double>::infinity();
  Tensor keep;
  if (options.causal)
    keep = arange(scores.shape()[-1]) <= expand_dims(arange(scores.shape()[-2]), 1);
  if (!options.mask) {
    if (options.causal) scores = where(keep, std::move(scores), out);
    return matmul(softmax(std::move(scores)), value);
  }
  keep = options.causal ? logical_and(keep, *options.mask) : *options.mask;
  // A query whose keys are all masked gives zeros. It attends to all keys equally, which keeps its
  // gradients finite, and its row of the result is then set to zero.
  const Tensor sees = keep.rank() == 0 ? keep : any(keep, -1, keepdims);
  const Tensor unseen = cast(where(sees, out, 0.0), scores.dtype());
  scores = where(keep, std::move(scores), unseen);
  return where(sees, matmul(softmax(std::move(scores)), value), 0);
}

Tensor mse(const Operand& y_true, const Operand& y_pred, Source at) {
  const SourceScope scope(at);
  const Tensor wanted = tensor_of(y_true, at), given = tensor_of(y_pred, at);
  // Broadcasting [64, 1] against [64] would silently compare every pair.
  if (wanted.shape() != given.shape()) {
    throw UserError(
        cat("mse: ", type_of(wanted, at), " and ", type_of(given, at), " differ in shape"), at,
        "reshape one of them: td::reshape(y, other.shape())");
  }
  static constexpr char kSelf = 0;
  const auto run = [](const detail::Tensors& both) {
    return narrowed(mean(square(widened(both[1]) - widened(both[0]))),
                    promote(both[0].dtype(), both[1].dtype()));
  };
  return detail::composed(detail::Composition(&kSelf), {wanted, given}, run, at);
}

Tensor sparse_softmax_cross_entropy(const Operand& labels, const Operand& logits, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(logits, at);
  const Tensor wanted = tensor_of(labels, at);
  if (wanted.rank() + 1 != given.rank()) {
    throw UserError(cat("sparse_softmax_cross_entropy: labels ", type_of(wanted, at),
                        " need one axis less than logits ", type_of(given, at)),
                    at, "labels are class numbers, one for each row of logits");
  }
  const auto run = [at](const std::vector<Tensor>& given) {
    const Tensor scores = as_float(widened(given[0]));
    const Tensor picked = detail::take_class(scores, expand_dims(given[1], -1), at);
    return narrowed(mean(logsumexp(scores, -1, keepdims) - picked), given[0].dtype());
  };
  static constexpr char kSelf = 0;
  return detail::as_one_op(detail::Composition(&kSelf), {given, wanted}, run, at);
}

Tensor dropout(const Operand& x, const DropoutOptions& options, Source at) {
  const SourceScope scope(at);
  if (!(options.rate >= 0 && options.rate < 1))
    throw UserError(cat("dropout: the rate must be in [0, 1), got ", options.rate), at,
                    "it is the fraction of elements that become zero");
  const device::FloatEnvironment ieee;
  const Tensor tensor = as_float(tensor_of(x, at));
  DrawsToKeep draws;
  const Tensor keep =
      random::bernoulli(tensor.shape(), {.p = 1 - options.rate, .key = options.key});
  static constexpr char kSelf = 0;
  const double factor = 1 / (1 - options.rate);
  const auto run = [&](const detail::Tensors& given) {
    return where(given[0], given[1] * factor, 0);
  };
  Tensor dropped =
      detail::composed(detail::Composition(&kSelf).add(factor), {keep, tensor}, run, at);
  draws.keep();
  return dropped;
}

}  // namespace tidemark

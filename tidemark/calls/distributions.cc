#include "tidemark/calls/distributions.h"

#include <cmath>
#include <numbers>

#include "tidemark/base/error.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/draw_by_element.h"
#include "tidemark/calls/ops.h"
#include "tidemark/calls/ordered.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/draws.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::random {
namespace {

using detail::Composition;
using detail::DrawsToKeep;
using detail::tensor_of;
using detail::Tensors;

// Held by a function of several draws: if it fails, the generator is as before.
struct Scope {
  explicit Scope(Source at) : lines(at) {}
  Tensor kept(Tensor drawn) {
    draws.keep();
    return drawn;
  }
  SourceScope lines;
  device::FloatEnvironment ieee;
  DrawsToKeep draws;
};

// The key of one of several draws.
std::optional<Key> part(const std::optional<Key>& key, int64_t number) {
  if (!key) return {};
  return key->fold_in(number);
}

// 16-bit floats are drawn in f32.
DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

void check_float(DType dtype, const char* name, Source at) {
  if (!is_float(dtype))
    throw UserError(cat("random::", name, ": draws floats, not ", dtype), at,
                    "name one: {.dtype = td::f32}");
}
void check_whole(DType dtype, const char* name, Source at) {
  if (!is_integer(dtype))
    throw UserError(cat("random::", name, ": draws integers, not ", dtype), at,
                    "name one: {.dtype = td::i64}");
}
void check_positive(double value, const char* name, const char* option, Source at) {
  if (!(value > 0))
    throw UserError(cat("random::", name, ": .", option, " must be positive, got ", value), at,
                    "give a number above 0");
}

// A parameter as f64, of the shape of the draws.
Tensor parameter(const Operand& given, const Shape& shape, Source at) {
  const Tensor wide = cast(stop_gradient(tensor_of(given, at)), DType::f64);
  return wide.shape() == shape ? wide : broadcast_to(wide, shape);
}

// In (0, infinity): uniform draws may be 0, whose logarithm is not finite, and stand for the
// interval up to the next.
Tensor exponential_of(const Tensor& uniform) {
  const double least = uniform.dtype() == DType::f64 ? 0x1p-54 : 0x1p-25;
  return maximum(-log1p(-uniform), least);
}

}  // namespace

Tensor exponential(const Shape& shape, ExponentialDrawOptions options, Source at) {
  check_float(options.dtype, "exponential", at);
  check_positive(options.rate, "exponential", "rate", at);
  Scope scope(at);
  const Tensor u = uniform(shape, {.dtype = wide(options.dtype), .key = options.key}, at);
  static constexpr char kSelf = 0;
  const auto run = [&](const Tensors& given) {
    return cast(exponential_of(given[0]) / options.rate, options.dtype);
  };
  const auto what = Composition(&kSelf).add(options.rate).add(int64_t(options.dtype));
  return scope.kept(detail::composed(what, {u}, run, at));
}

Tensor gumbel(const Shape& shape, DrawOptions options, Source at) {
  check_float(options.dtype, "gumbel", at);
  Scope scope(at);
  const Tensor u = uniform(shape, {.dtype = wide(options.dtype), .key = options.key}, at);
  static constexpr char kSelf = 0;
  const auto run = [&](const Tensors& given) {
    return cast(-log(exponential_of(given[0])), options.dtype);
  };
  const auto what = Composition(&kSelf).add(int64_t(options.dtype));
  return scope.kept(detail::composed(what, {u}, run, at));
}

Tensor laplace(const Shape& shape, LaplaceOptions options, Source at) {
  check_float(options.dtype, "laplace", at);
  check_positive(options.scale, "laplace", "scale", at);
  Scope scope(at);
  // The side and the distance are drawn apart, so that neither loses digits to the other.
  const DType dtype = wide(options.dtype);
  const Tensor u = uniform(shape, {.dtype = dtype, .key = part(options.key, 0)}, at);
  const Tensor side = bernoulli(shape, {.key = part(options.key, 1)}, at);
  static constexpr char kSelf = 0;
  const auto run = [&](const Tensors& given) {
    const Tensor far = exponential_of(given[0]);
    const Tensor drawn = options.mean + options.scale * where(given[1], far, -far);
    return cast(drawn, options.dtype);
  };
  const auto what =
      Composition(&kSelf).add(options.mean).add(options.scale).add(int64_t(options.dtype));
  return scope.kept(detail::composed(what, {u, side}, run, at));
}

namespace {

double below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// The x with a normal distribution's p below it, p at most 1/2 plus rounding: a rational first
// guess and Newton steps on the logarithm, which converge in the far tail too.
Tensor normal_quantile(const Tensor& p) {
  const Tensor t = sqrt(-2.0 * log(p));
  Tensor x = -t + (2.30753 + 0.27061 * t) / (1.0 + 0.99229 * t + 0.04481 * square(t));
  for (int i = 0; i < 4; ++i) {
    const Tensor mass = 0.5 * erfc(-x * (1 / std::numbers::sqrt2));
    const Tensor density = exp(-0.5 * square(x)) * (1 / std::sqrt(2 * std::numbers::pi));
    x = x - mass / density * log(mass / p);
  }
  return x;
}

// Where the numbers of f32 are dense enough: not far from the middle, nor between close bounds.
bool is_near(const TruncatedNormalOptions& options) {
  const double root = 1 / std::numbers::sqrt2;
  return options.dtype != DType::f64 && options.low >= -4 && options.high <= 4 &&
         std::erf(options.high * root) - std::erf(options.low * root) > 0.01;
}

// Of uniform draws, the normal ones within the bounds. The side with the smaller probabilities is
// computed, where they have all their digits.
Tensor far_normal(const Tensor& u, const TruncatedNormalOptions& options) {
  const bool turned = options.low + options.high > 0;
  const double low = turned ? -options.high : options.low;
  const double high = turned ? -options.low : options.high;
  const Tensor p = below(low) + u * (below(high) - below(low));
  // Above the middle, by symmetry.
  const Tensor is_above = p > 0.5;
  const Tensor tail = clip(where(is_above, 1.0 - p, p), 1e-300, 0.5);
  const Tensor quantile = normal_quantile(tail);
  const Tensor x = clip(where(is_above, -quantile, quantile), low, high);
  return turned ? -x : x;
}

constexpr double kFurthest = 36.9;  // Standard deviations.

}  // namespace

Tensor truncated_normal(const Shape& shape, TruncatedNormalOptions options, Source at) {
  check_float(options.dtype, "truncated_normal", at);
  check_positive(options.stddev, "truncated_normal", "stddev", at);
  // No draw is as far out as this, of probability 1e-299.
  options.low = std::max(options.low, -kFurthest);
  options.high = std::min(options.high, kFurthest);
  if (!(options.low < options.high))
    throw UserError(cat("random::truncated_normal: cannot draw from [", options.low, ", ",
                        options.high, "] standard deviations"),
                    at, "low must be less than high, and within 36.9 standard deviations");
  Scope scope(at);
  const auto what = [&](const void* self) {
    return Composition(self)
        .add(options.low)
        .add(options.high)
        .add(options.mean)
        .add(options.stddev)
        .add(int64_t(options.dtype));
  };
  if (is_near(options)) {
    const double root = 1 / std::numbers::sqrt2;
    const UniformOptions between = {.low = std::erf(options.low * root),
                                    .high = std::erf(options.high * root),
                                    .key = options.key};
    static constexpr char kNear = 0;
    const auto run = [&](const Tensors& given) {
      const Tensor x = clip(erfinv(given[0]) * std::numbers::sqrt2, options.low, options.high);
      return cast(options.mean + options.stddev * x, options.dtype);
    };
    return scope.kept(detail::composed(what(&kNear), {uniform(shape, between, at)}, run, at));
  }
  const Tensor u = uniform(shape, {.dtype = DType::f64, .key = options.key}, at);
  static constexpr char kFar = 0;
  const auto run = [&](const Tensors& given) {
    return cast(options.mean + options.stddev * far_normal(given[0], options), options.dtype);
  };
  return scope.kept(detail::composed(what(&kFar), {u}, run, at));
}

namespace {

// Logarithms: draws of a small alpha are below the smallest float.
Tensor log_gamma_draw(const Operand& alpha, const Shape& shape, const std::optional<Key>& key,
                      Source at) {
  return detail::draw_by_element(ops::Drawn::log_gamma, parameter(alpha, shape, at), key, at);
}

}  // namespace

Tensor gamma(const Operand& alpha, const Shape& shape, DrawOptions options, Source at) {
  check_float(options.dtype, "gamma", at);
  Scope scope(at);
  const Tensor drawn = log_gamma_draw(alpha, shape, options.key, at);
  static constexpr char kSelf = 0;
  const auto run = [&](const Tensors& given) { return cast(exp(given[0]), options.dtype); };
  const auto what = Composition(&kSelf).add(int64_t(options.dtype));
  return scope.kept(detail::composed(what, {drawn}, run, at));
}

Tensor beta(const Operand& a, const Operand& b, const Shape& shape, DrawOptions options,
            Source at) {
  check_float(options.dtype, "beta", at);
  Scope scope(at);
  const Tensor x = log_gamma_draw(a, shape, part(options.key, 0), at);
  const Tensor y = log_gamma_draw(b, shape, part(options.key, 1), at);
  static constexpr char kSelf = 0;
  const auto run = [&](const Tensors& given) {
    return cast(sigmoid(given[0] - given[1]), options.dtype);
  };
  const auto what = Composition(&kSelf).add(int64_t(options.dtype));
  return scope.kept(detail::composed(what, {x, y}, run, at));
}

Tensor poisson(const Operand& rate, const Shape& shape, WholeDrawOptions options, Source at) {
  check_whole(options.dtype, "poisson", at);
  Scope scope(at);
  const Tensor drawn =
      detail::draw_by_element(ops::Drawn::poisson, parameter(rate, shape, at), options.key, at);
  return scope.kept(cast(drawn, options.dtype));
}

namespace {

// The class below whose running sum of probabilities a uniform number lies: many draws of a row
// take the bytes of the row and of the draws, not of a table of both. In f64, so that rare classes
// among many come as often as they should.
Tensor drawn_by_sums(const Tensor& logits, const Shape& shape, const std::optional<Key>& key,
                     Source at) {
  const Tensor sums = cumsum(softmax(cast(logits, DType::f64)), -1);
  const Tensor whole = gather(sums, constant({-1}), -1);
  const Tensor u = uniform(shape, {.dtype = DType::f64, .key = key}, at);
  const Tensor drawn = searchsorted(sums, u * whole, {.right = true});
  // A product may round up to the whole sum, which is the last class of any probability.
  return minimum(drawn, searchsorted(sums, whole));
}

}  // namespace

// Of one draw a row, the largest of logits with independent Gumbel draws is a class with its
// probability.
Tensor categorical(const Operand& logits, CategoricalOptions options, Source at) {
  Scope scope(at);
  const Tensor given = stop_gradient(tensor_of(logits, at));
  if (given.rank() == 0 || !is_float(given.dtype()))
    throw UserError(cat("random::categorical: logits are ", given.dtype(), given.shape(),
                        ", not floats [..., classes]"),
                    at, "give the logarithms of probabilities: td::log(p)");
  if (options.count && *options.count < 0)
    throw UserError(cat("random::categorical: .count is ", *options.count), at,
                    "give the number of draws of each row");
  const Tensor scores = cast(given, wide(given.dtype()));
  Shape shape = scores.shape();
  if (options.count) {
    shape.set(shape.rank() - 1, *options.count);
    return scope.kept(drawn_by_sums(scores, shape, options.key, at));
  }
  const Tensor noise = gumbel(shape, {.dtype = scores.dtype(), .key = options.key}, at);
  return scope.kept(cast(argmax(scores + noise, -1), DType::i64));
}

Tensor multinomial(int64_t trials, const Operand& probabilities, KeyOptions options, Source at) {
  if (trials < 0)
    throw UserError(cat("random::multinomial: cannot make ", trials, " trials"), at,
                    "give 0 or more");
  Scope scope(at);
  const Tensor given = tensor_of(probabilities, at);
  const Tensor drawn = categorical(log(given), {.count = trials, .key = options.key}, at);
  const Tensor is_class = expand_dims(drawn, -1) == arange(given.shape()[-1]);
  return scope.kept(sum(cast(is_class, DType::i64), -2));
}

Tensor integers(const Operand& low, const Operand& high, const Shape& shape,
                WholeDrawOptions options, Source at) {
  check_whole(options.dtype, "integers", at);
  Scope scope(at);
  const Tensor from = parameter(low, shape, at), to = parameter(high, shape, at);
  const Tensor u = uniform(shape, {.dtype = DType::f64, .key = options.key}, at);
  // A product may round up to the bound itself.
  const Tensor drawn = minimum(from + floor(u * (to - from)), to - 1.0);
  return scope.kept(cast(drawn, options.dtype));
}

Tensor bernoulli(const Operand& p, const Shape& shape, KeyOptions options, Source at) {
  Scope scope(at);
  return scope.kept(uniform(shape, {.key = options.key}, at) <
                    broadcast_to(tensor_of(p, at), shape));
}

Tensor permutation(const Tensor& x, ShuffleOptions options, Source at) {
  Scope scope(at);
  if (x.rank() == 0)
    throw UserError("random::permutation: a scalar has no axis to permute", at,
                    "give a tensor with an axis");
  const int64_t axis = options.axis < 0 ? options.axis + x.rank() : options.axis;
  if (axis < 0 || axis >= x.rank())
    throw UserError(cat("random::permutation: axis ", options.axis, " of ", x.shape()), at,
                    cat("axes go from 0 to ", x.rank() - 1));
  const Tensor order = permutation(int64_t{x.shape()[axis]}, {.key = options.key}, at);
  return scope.kept(gather(x, order, axis, at));
}

}  // namespace tidemark::random

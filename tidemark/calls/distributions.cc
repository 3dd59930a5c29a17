#include "tidemark/calls/distributions.h"

#include <cmath>
#include <numbers>

#include "tidemark/base/error.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/calls/ordered.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/draws.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::random {
namespace {

using detail::DrawsToKeep;
using detail::tensor_of;

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
  return broadcast_to(cast(stop_gradient(tensor_of(given, at)), DType::f64), shape);
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
  return scope.kept(cast(exponential_of(u) / options.rate, options.dtype));
}

Tensor gumbel(const Shape& shape, DrawOptions options, Source at) {
  check_float(options.dtype, "gumbel", at);
  Scope scope(at);
  const Tensor u = uniform(shape, {.dtype = wide(options.dtype), .key = options.key}, at);
  return scope.kept(cast(-log(exponential_of(u)), options.dtype));
}

Tensor laplace(const Shape& shape, LaplaceOptions options, Source at) {
  check_float(options.dtype, "laplace", at);
  check_positive(options.scale, "laplace", "scale", at);
  Scope scope(at);
  // The side and the distance are drawn apart, so that neither loses digits to the other.
  const DType dtype = wide(options.dtype);
  const Tensor far =
      exponential_of(uniform(shape, {.dtype = dtype, .key = part(options.key, 0)}, at));
  const Tensor side = bernoulli(shape, {.key = part(options.key, 1)}, at);
  const Tensor drawn = options.mean + options.scale * where(side, far, -far);
  return scope.kept(cast(drawn, options.dtype));
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

}  // namespace

Tensor truncated_normal(const Shape& shape, TruncatedNormalOptions options, Source at) {
  check_float(options.dtype, "truncated_normal", at);
  check_positive(options.stddev, "truncated_normal", "stddev", at);
  if (!(options.low < options.high && options.low > -37 && options.high < 37))
    throw UserError(cat("random::truncated_normal: cannot draw from [", options.low, ", ",
                        options.high, "] standard deviations"),
                    at, "low must be less than high, both within 37 standard deviations");
  Scope scope(at);
  // The side with the smaller probabilities is computed, where they have all their digits.
  const bool turned = options.low + options.high > 0;
  const double low = turned ? -options.high : options.low;
  const double high = turned ? -options.low : options.high;
  const Tensor u = uniform(shape, {.dtype = DType::f64, .key = options.key}, at);
  const Tensor p = below(low) + u * (below(high) - below(low));
  // Above the middle, by symmetry.
  const Tensor is_above = p > 0.5;
  const Tensor tail = clip(where(is_above, 1.0 - p, p), 1e-300, 0.5);
  const Tensor quantile = normal_quantile(tail);
  const Tensor x = clip(where(is_above, -quantile, quantile), low, high);
  const Tensor drawn = options.mean + options.stddev * (turned ? -x : x);
  return scope.kept(cast(drawn, options.dtype));
}

namespace {

// Proposals of a rejection are made a fixed number of times, so that a draw is one program without
// a loop. At least 0.95 of the gamma's and 0.8 of the Poisson's are accepted each time; a draw that
// all of them reject, less than one of 1e9, is alpha - 1/3 or the rate rounded down.
constexpr int kGammaRounds = 8, kPoissonRounds = 14;

// A cube of a normal, by Marsaglia and Tsang; alpha at least 1, f64.
Tensor gamma_above_one(const Tensor& alpha, const std::optional<Key>& key, Source at) {
  const Tensor d = alpha - 1.0 / 3;
  const Tensor c = rsqrt(9.0 * d);
  Tensor drawn = d, is_open = full(alpha.shape(), true);
  for (int round = 0; round < kGammaRounds; ++round) {
    const Tensor x = normal(alpha.shape(), {.dtype = DType::f64, .key = part(key, 2 * round)}, at);
    const Tensor u =
        uniform(alpha.shape(), {.dtype = DType::f64, .key = part(key, 2 * round + 1)}, at);
    const Tensor root = 1.0 + c * x;
    const Tensor v = maximum(root, 1e-30) * square(maximum(root, 1e-30));
    const Tensor fits =
        logical_and(root > 0, log(maximum(u, 0x1p-54)) < 0.5 * square(x) + d * (1.0 - v + log(v)));
    drawn = where(logical_and(is_open, fits), d * v, drawn);
    is_open = logical_and(is_open, logical_not(fits));
  }
  return drawn;
}

// The logarithm of a draw: those of a small alpha are below the smallest float.
Tensor log_gamma_draw(const Tensor& alpha, const std::optional<Key>& key, Source at) {
  const Tensor is_small = alpha < 1;
  const Tensor drawn = gamma_above_one(where(is_small, alpha + 1.0, alpha), part(key, 0), at);
  const Tensor u = uniform(alpha.shape(), {.dtype = DType::f64, .key = part(key, 1)}, at);
  return log(drawn) + where(is_small, -exponential_of(u) / alpha, 0.0);
}

}  // namespace

Tensor gamma(const Operand& alpha, const Shape& shape, DrawOptions options, Source at) {
  check_float(options.dtype, "gamma", at);
  Scope scope(at);
  const Tensor drawn = exp(log_gamma_draw(parameter(alpha, shape, at), options.key, at));
  return scope.kept(cast(drawn, options.dtype));
}

Tensor beta(const Operand& a, const Operand& b, const Shape& shape, DrawOptions options,
            Source at) {
  check_float(options.dtype, "beta", at);
  Scope scope(at);
  const Tensor x = log_gamma_draw(parameter(a, shape, at), part(options.key, 0), at);
  const Tensor y = log_gamma_draw(parameter(b, shape, at), part(options.key, 1), at);
  return scope.kept(cast(sigmoid(x - y), options.dtype));
}

namespace {

// log(k!), k not below 0: Stirling's series from k + 8 on, less the factors in between.
Tensor log_factorial(const Tensor& k) {
  Tensor product = k + 1.0;
  for (int i = 2; i <= 7; ++i) product = product * (k + static_cast<double>(i));
  const Tensor x = k + 8.0;
  const Tensor inverse = 1.0 / x, square_inverse = square(inverse);
  const Tensor series =
      inverse * (1.0 / 12 - square_inverse * (1.0 / 360 - square_inverse * (1.0 / 1260)));
  return (x - 0.5) * log(x) - x + 0.5 * std::log(2 * std::numbers::pi) + series - log(product);
}

constexpr double kLargeRate = 10;

// Below that rate: the number of partial sums of probabilities that one uniform draw exceeds. The
// chance of more than 50 is below 1e-18.
Tensor poisson_of_small(const Tensor& rate, const Tensor& u) {
  Tensor mass = exp(-rate), sum = mass, count = zeros(rate.shape(), DType::f64);
  for (int k = 1; k <= 50; ++k) {
    count = count + cast(u >= sum, DType::f64);
    mass = mass * rate * (1.0 / k);
    sum = sum + mass;
  }
  return count;
}

// Above it: transformed rejection with squeeze (Hörmann 1993).
Tensor poisson_of_large(const Tensor& rate, const std::optional<Key>& key, Source at) {
  const Tensor b = 0.931 + 2.53 * sqrt(rate), a = 0.02483 * b - 0.059;
  const Tensor log_scale = log(1.1239 + 1.1328 / (b - 3.4));
  const Tensor squeeze = 0.9277 - 3.6224 / (b - 2.0);
  Tensor drawn = floor(rate), is_open = full(rate.shape(), true);
  for (int round = 0; round < kPoissonRounds; ++round) {
    const auto draw = [&](int64_t number) {
      return uniform(rate.shape(), {.dtype = DType::f64, .key = part(key, number)}, at);
    };
    const Tensor u = draw(2 * round) - 0.5, v = maximum(draw(2 * round + 1), 0x1p-54);
    const Tensor near = maximum(0.5 - abs(u), 0x1p-54);
    const Tensor k = floor((2.0 * a / near + b) * u + rate + 0.43);
    const Tensor counted = maximum(k, 0.0);
    const Tensor is_likely = log(v) + log_scale - log(a / square(near) + b) <=
                             counted * log(rate) - rate - log_factorial(counted);
    const Tensor fits = logical_and(
        k >= 0, logical_or(logical_and(near >= 0.07, v <= squeeze),
                           logical_and(logical_or(near >= 0.013, v <= near), is_likely)));
    drawn = where(logical_and(is_open, fits), k, drawn);
    is_open = logical_and(is_open, logical_not(fits));
  }
  return drawn;
}

}  // namespace

Tensor poisson(const Operand& rate, const Shape& shape, WholeDrawOptions options, Source at) {
  check_whole(options.dtype, "poisson", at);
  Scope scope(at);
  const Tensor expected = parameter(rate, shape, at);
  const Tensor u = uniform(shape, {.dtype = DType::f64, .key = part(options.key, 0)}, at);
  const Tensor few = poisson_of_small(minimum(expected, kLargeRate), u);
  const Tensor many = poisson_of_large(maximum(expected, kLargeRate), part(options.key, 1), at);
  return scope.kept(cast(where(expected < kLargeRate, few, many), options.dtype));
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

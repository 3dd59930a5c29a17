#include "tidemark/nn/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/base/error.h"
#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

MultiHeadAttention::Projection declared(const char* part, const MultiHeadAttentionOptions& options,
                                        Source at) {
  const auto variable = [&](const char* name, const Initializer& initializer) {
    return Variable::unshaped(
        initializer,
        {.name = detail::parameter_name(options.name, cat(part, "/", name).c_str()),
         .dtype = options.dtype.variable},
        at);
  };
  MultiHeadAttention::Projection projection{variable("kernel", options.kernel_initializer), {}};
  if (options.use_bias) projection.bias = variable("bias", initializers::zeros);
  return projection;
}

// Swaps the axes of tokens and heads: [..., a, b, size] becomes [..., b, a, size].
Tensor swapped(const Tensor& x) {
  std::string from, to;
  for (int64_t axis = 0; axis < x.rank() - 3; ++axis) from += static_cast<char>('a' + axis);
  to = from;
  return einsum(cat(from, "xyz->", to, "yxz"), x);
}

// [..., groups, shared, tokens, size] as [..., heads, tokens, size].
Shape together_heads(const Tensor& x, int64_t heads) {
  Shape shape;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (axis == x.rank() - 4) continue;
    shape.push_back(axis == x.rank() - 3 ? Dim(heads) : x.shape()[axis]);
  }
  return shape;
}

// A slope for each head: powers of 2 from 2^(-8 / heads) to 2^-8, [heads, 1, 1].
Tensor slopes(int64_t heads, DType dtype) {
  const Tensor number = arange(1, heads + 1, 1, dtype);
  return reshape(pow(2.0, number * (-8.0 / static_cast<double>(heads))), {heads, 1, 1});
}

}  // namespace

Tensor rotary(const Tensor& x, const Operand& first, double base, Source at) {
  const SourceScope scope(at);
  if (x.rank() < 2 || x.shape()[-1] % 2 != 0)
    throw UserError(cat("nn::rotary: ", x.dtype(), x.shape(), " has no pairs of elements"), at,
                    "give it [..., tokens, size] with an even size");
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const int64_t half = int64_t{x.shape()[-1]} / 2;
  const Tensor position = cast(arange(x.shape()[-2]) + cast(first, DType::i32), dtype);
  const Tensor power = arange(0, half, 1, dtype) * (-std::log(base) / static_cast<double>(half));
  const Tensor angle = expand_dims(position, 1) * exp(power);
  const Tensor turn = cos(angle), side = sin(angle);
  const std::vector<Tensor> part = split(cast(x, dtype), 2, -1);
  const Tensor turned =
      concat({part[0] * turn - part[1] * side, part[1] * turn + part[0] * side}, -1);
  return cast(turned, x.dtype());
}

MultiHeadAttention::MultiHeadAttention(int64_t heads, int64_t key_size,
                                       MultiHeadAttentionOptions options, Source at)
    : query(declared("query", options, at)),
      key(declared("key", options, at)),
      value(declared("value", options, at)),
      output(declared("output", options, at)),
      heads_(heads),
      key_size_(key_size),
      options_(std::move(options)) {
  if (heads <= 0 || key_size <= 0)
    detail::refuse(kKind, options_.name,
                   cat("cannot have ", heads, " heads with keys of ", key_size),
                   "both must be positive", at);
  if (key_heads() <= 0 || heads % key_heads() != 0)
    detail::refuse(kKind, options_.name,
                   cat(heads, " heads cannot share ", key_heads(), " heads of keys"),
                   "the number of heads must be a multiple of .key_heads", at);
  if (options_.rotary && key_size % 2 != 0)
    detail::refuse(kKind, options_.name, cat("cannot rotate keys of ", key_size),
                   "give keys an even size for .rotary", at);
  (void)detail::taken(options_.kernel_initializer);
}

Tensor MultiHeadAttention::projected(const Projection& projection, const Tensor& x, int64_t units,
                                     Source at) const {
  detail::build_kernel(projection.kernel, x, units, {kKind, options_.name}, at);
  detail::build_vector(projection.bias, units, at);
  return detail::linear(x, projection.kernel, projection.bias, {}, at);
}

// [..., heads, tokens, size]
Tensor MultiHeadAttention::heads_of(const Projection& projection, const Tensor& x, int64_t count,
                                    int64_t size, Source at) const {
  const Tensor all = projected(projection, x, count * size, at);
  Shape apart = all.shape();
  apart.set(apart.rank() - 1, count);
  apart.push_back(size);
  return swapped(reshape(all, apart));
}

MultiHeadAttention::Heads MultiHeadAttention::heads(const Tensor& from, const Tensor& memory,
                                                    Source at) const {
  for (const Tensor* given : {&from, &memory})
    if (given->rank() < 2)
      detail::refuse(kKind, options_.name,
                     cat("the input ", given->dtype(), given->shape(), " has no axis of tokens"),
                     "give it [..., tokens, features]: td::expand_dims(x, 0)", at);
  return {heads_of(query, from, heads_, key_size_, at),
          heads_of(key, memory, key_heads(), key_size_, at),
          heads_of(value, memory, key_heads(), options_.value_size.value_or(key_size_), at)};
}

// The results of all heads, projected to the output.
Tensor MultiHeadAttention::joined(const Tensor& mixed, Source at) const {
  const Tensor by_token = swapped(mixed);
  Shape together = by_token.shape();
  together.erase(together.rank() - 1);
  together.set(together.rank() - 1, heads_ * options_.value_size.value_or(key_size_));
  const int64_t units =
      options_.output_size ? *options_.output_size : int64_t{query.kernel.shape(at)[0]};
  const Tensor result = projected(output, reshape(by_token, together), units, at);
  return options_.dropout > 0 && is_training() ? dropout(result, {.rate = options_.dropout})
                                               : result;
}

// Attention whose queries stand at the positions `first`, `first` + 1, ... of the keys. Heads of
// queries that share a head of keys are an axis of their own, along which keys broadcast.
Tensor MultiHeadAttention::weighted(const Heads& of, const std::optional<Tensor>& mask,
                                    const Tensor& first) const {
  const bool drops = options_.weight_dropout > 0 && is_training();
  const int64_t shared = heads_ / key_heads();
  std::optional<Tensor> keep = mask;
  Tensor q = of.query, k = of.key, v = of.value;
  if (shared > 1) {
    Shape grouped = q.shape();
    grouped.set(grouped.rank() - 3, key_heads());
    Shape axes;
    for (int64_t axis = 0; axis < grouped.rank(); ++axis) {
      axes.push_back(grouped[axis]);
      if (axis == grouped.rank() - 3) axes.push_back(shared);
    }
    q = reshape(q, axes);
    k = expand_dims(k, -3);
    v = expand_dims(v, -3);
    if (keep && keep->rank() >= 3) {
      Shape apart;
      for (int64_t axis = 0; axis < keep->rank(); ++axis) {
        const bool is_heads = axis == keep->rank() - 3;
        const bool is_one = keep->shape()[axis] == 1;
        apart.push_back(is_heads && !is_one ? Dim(key_heads()) : keep->shape()[axis]);
        if (is_heads) apart.push_back(is_one ? Dim(1) : Dim(shared));
      }
      keep = reshape(*keep, apart);
    }
  }
  Tensor mixed;
  if (!options_.alibi && !drops) {
    mixed = attention(q, k, v, {.mask = keep});
  } else {
    Tensor scores =
        matmul(q, k, {.transpose_b = true}) * (1.0 / std::sqrt(static_cast<double>(key_size_)));
    if (options_.alibi) {
      const Tensor at = expand_dims(first + arange(q.shape()[-2]), 1);
      const Tensor distance = cast(abs(at - arange(k.shape()[-2])), scores.dtype());
      Tensor slope = slopes(heads_, scores.dtype());
      if (shared > 1) slope = reshape(slope, {key_heads(), shared, 1, 1});
      scores = scores - slope * distance;
    }
    // Of f16, -1e30 would be -inf, and the gradient of a query without a key NaN.
    if (keep) scores = where(*keep, scores, scores.dtype() == DType::f16 ? -6e4 : -1e30);
    Tensor weights = softmax(scores);
    if (keep) weights = where(*keep, weights, 0);  // A query may have no key at all.
    if (drops) weights = dropout(weights, {.rate = options_.weight_dropout});
    mixed = matmul(weights, v);
  }
  return shared > 1 ? reshape(mixed, together_heads(mixed, heads_)) : mixed;
}

Tensor MultiHeadAttention::attend(const Tensor& from, const Tensor& memory,
                                  const std::optional<Tensor>& mask, Source at) const {
  Heads of = heads(from, memory, at);
  if (options_.rotary) {
    of.query = rotary(of.query, 0, *options_.rotary, at);
    of.key = rotary(of.key, 0, *options_.rotary, at);
  }
  const bool is_plain =
      key_heads() == heads_ && !options_.alibi && !(options_.weight_dropout > 0 && is_training());
  if (is_plain)
    return joined(attention(of.query, of.key, of.value, {.causal = options_.causal, .mask = mask}),
                  at);
  std::optional<Tensor> keep = mask;
  if (options_.causal) {
    const Tensor earlier =
        arange(of.key.shape()[-2]) <= expand_dims(arange(of.query.shape()[-2]), 1);
    keep = mask ? logical_and(earlier, *mask) : earlier;
  }
  return joined(weighted(of, keep, cast(0, DType::i32)), at);
}

Tensor MultiHeadAttention::call(const Tensor& x, Source at) const { return attend(x, x, {}, at); }

Tensor MultiHeadAttention::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Tensor MultiHeadAttention::operator()(const Tensor& from, const Tensor& memory,
                                      const std::optional<Tensor>& mask, Source at) const {
  const detail::LayerScope scope(kKind, options_.name, at);
  const detail::PolicyScope policy(options_.dtype);
  return attend(policy.input(from), policy.input(memory), mask, at);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const KVCache& cache, Source at) const {
  const detail::LayerScope scope(kKind, options_.name, at);
  const detail::PolicyScope policy(options_.dtype);
  if (!options_.causal)
    detail::refuse(kKind, options_.name, "a cache of earlier tokens needs causal attention",
                   "make the layer with {.causal = true}", at);
  const Tensor own = policy.input(x);
  Heads of = heads(own, own, at);
  const Tensor first = cache.length.value(at);
  if (options_.rotary) {
    of.query = rotary(of.query, first, *options_.rotary, at);
    of.key = rotary(of.key, first, *options_.rotary, at);
  }
  const KVCache::Both all = cache.add(of.key, of.value, at);
  const Tensor position = first + arange(of.query.shape()[-2]);
  const Tensor keep = arange(cache.capacity()) <= expand_dims(position, 1);
  return joined(weighted({of.query, all.keys, all.values}, keep, first), at);
}

}  // namespace tidemark::nn

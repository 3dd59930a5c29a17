#include "tidemark/nn/attention.h"

#include <vector>

#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
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
         .dtype = options.dtype},
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

}  // namespace

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
}

Tensor MultiHeadAttention::projected(const Projection& projection, const Tensor& x, int64_t units,
                                     Source at) const {
  detail::build_kernel(projection.kernel, x, units, {kKind, options_.name}, at);
  detail::build_vector(projection.bias, units, at);
  return detail::linear(x, projection.kernel, projection.bias, {}, at);
}

// [..., heads, tokens, size]
Tensor MultiHeadAttention::heads_of(const Projection& projection, const Tensor& x, int64_t size,
                                    Source at) const {
  const Tensor all = projected(projection, x, heads_ * size, at);
  Shape apart = all.shape();
  apart.set(apart.rank() - 1, heads_);
  apart.push_back(size);
  return swapped(reshape(all, apart));
}

Tensor MultiHeadAttention::attend(const Tensor& from, const Tensor& memory,
                                  const std::optional<Tensor>& mask, Source at) const {
  for (const Tensor* given : {&from, &memory})
    if (given->rank() < 2)
      detail::refuse(kKind, options_.name,
                     cat("the input ", given->dtype(), given->shape(), " has no axis of tokens"),
                     "give it [..., tokens, features]: td::expand_dims(x, 0)", at);
  const int64_t value_size = options_.value_size.value_or(key_size_);
  const Tensor mixed = swapped(attention(
      heads_of(query, from, key_size_, at), heads_of(key, memory, key_size_, at),
      heads_of(value, memory, value_size, at), {.causal = options_.causal, .mask = mask}));
  Shape together = mixed.shape();
  together.erase(together.rank() - 1);
  together.set(together.rank() - 1, heads_ * value_size);
  const int64_t units =
      options_.output_size ? *options_.output_size : int64_t{query.kernel.shape(at)[0]};
  const Tensor result = projected(output, reshape(mixed, together), units, at);
  return options_.dropout > 0 && is_training() ? dropout(result, {.rate = options_.dropout})
                                               : result;
}

Tensor MultiHeadAttention::call(const Tensor& x, Source at) const { return attend(x, x, {}, at); }

Tensor MultiHeadAttention::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Tensor MultiHeadAttention::operator()(const Tensor& from, const Tensor& memory,
                                      const std::optional<Tensor>& mask, Source at) const {
  const detail::LayerScope scope(kKind, options_.name, at);
  return attend(from, memory, mask, at);
}

}  // namespace tidemark::nn

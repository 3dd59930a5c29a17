// Multi-head attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/nn/dense.h"
#include "tidemark/nn/kv_cache.h"

namespace tidemark::nn {

struct MultiHeadAttentionOptions {
  bool causal = false;                      // A token attends to itself and earlier ones.
  std::optional<int64_t> value_size = {};   // Of each head; default: the size of keys.
  std::optional<int64_t> output_size = {};  // Default: the features of the query.
  // Heads of keys and values, each of which serves several heads of queries (grouped-query
  // attention); default: as many as heads. One is multi-query attention.
  std::optional<int64_t> key_heads = {};
  // Rotates queries and keys by their positions (RoPE), with this base; 10'000 is usual.
  std::optional<double> rotary = {};
  // Lowers scores by the distance of tokens, with a slope for each head (ALiBi).
  bool alibi = false;
  double dropout = 0;         // Applied to the result, in training mode.
  double weight_dropout = 0;  // Applied to the weights of keys, in training mode.
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  Policy dtype = global_policy();
  std::string name = {};
};

// On [..., tokens, features]: each head has its own projections to queries, keys and values; the
// results of all heads are projected to the output.
class MultiHeadAttention : public detail::SharedIdentity {
 public:
  MultiHeadAttention(int64_t heads, int64_t key_size, MultiHeadAttentionOptions options = {},
                     Source at = Source::here());
  // Self-attention.
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  // Cross-attention: keys and values come from `memory`. The mask is bool and broadcasts to [...,
  // heads, queries, keys]: false masks a key.
  Tensor operator()(const Tensor& query, const Tensor& memory,
                    const std::optional<Tensor>& mask = {}, Source at = Source::here()) const;
  // Causal self-attention of tokens that follow those in the cache, to which they are added.
  Tensor operator()(const Tensor& x, const KVCache& cache, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }

  // The parameters of a projection.
  struct Projection {
    Variable kernel;
    std::optional<Variable> bias;
  };
  Projection query, key, value, output;
  TIDEMARK_FIELDS(query, key, value, output)

  static constexpr const char* kKind = "nn::MultiHeadAttention";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  struct Heads {
    Tensor query, key, value;  // [..., heads, tokens, size]
  };
  Heads heads(const Tensor& from, const Tensor& memory, Source at) const;
  Tensor joined(const Tensor& mixed, Source at) const;
  Tensor attend(const Tensor& from, const Tensor& memory, const std::optional<Tensor>& mask,
                Source at) const;
  Tensor weighted(const Heads& of, const std::optional<Tensor>& mask, const Tensor& first) const;
  Tensor projected(const Projection& projection, const Tensor& x, int64_t units, Source at) const;
  Tensor heads_of(const Projection& projection, const Tensor& x, int64_t count, int64_t size,
                  Source at) const;
  int64_t key_heads() const { return options_.key_heads.value_or(heads_); }

  int64_t heads_, key_size_;
  MultiHeadAttentionOptions options_;
};

// Rotary position embedding of [..., tokens, size], with an even size: element i of the first half
// and element i of the second half are turned by the angle position * base^(-2 i / size). Positions
// count from `first`.
Tensor rotary(const Tensor& x, const Operand& first = 0, double base = 10'000,
              Source at = Source::here());

}  // namespace tidemark::nn

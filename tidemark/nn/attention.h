// Attention with several heads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/nn/dense.h"

namespace tidemark::nn {

struct MultiHeadAttentionOptions {
  bool causal = false;                      // A token sees itself and those before it.
  std::optional<int64_t> value_size = {};   // Of each head; default: the size of keys.
  std::optional<int64_t> output_size = {};  // Default: the features of the query.
  double dropout = 0;                       // Of the result, in train mode.
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform;
  DType dtype = DType::f32;
  std::string name = {};
};

// [..., tokens, features]: each head attends with queries, keys and values of its own, and what all
// of them give is projected to the output.
class MultiHeadAttention : public detail::Identified {
 public:
  MultiHeadAttention(int64_t heads, int64_t key_size, MultiHeadAttentionOptions options = {},
                     Source at = Source::here());
  // To itself.
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  // To others: keys and values are made of `memory`. The mask is bool and broadcasts to [...,
  // heads, queries, keys]: false leaves out.
  Tensor operator()(const Tensor& query, const Tensor& memory,
                    const std::optional<Tensor>& mask = {}, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }

  // What a projection has.
  struct Projection {
    Variable kernel;
    std::optional<Variable> bias;
  };
  Projection query, key, value, output;
  TIDEMARK_FIELDS(query, key, value, output)

  static constexpr const char* kKind = "nn::MultiHeadAttention";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  Tensor attend(const Tensor& from, const Tensor& memory, const std::optional<Tensor>& mask,
                Source at) const;
  Tensor projected(const Projection& projection, const Tensor& x, int64_t units, Source at) const;
  Tensor heads_of(const Projection& projection, const Tensor& x, int64_t size, Source at) const;

  int64_t heads_, key_size_;
  MultiHeadAttentionOptions options_;
};

}  // namespace tidemark::nn

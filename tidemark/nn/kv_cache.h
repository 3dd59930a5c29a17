// KVCache: keys and values of earlier tokens, for generating text token by token.
//
//   td::nn::MultiHeadAttention attention(8, 64, {.causal = true, .rotary = 10'000});
//   td::nn::KVCache cache(1024);
//   td::Tensor first = attention(prompt, cache);    // [n, any number of tokens, features]
//   td::Tensor next = attention(token, cache);      // [n, 1, features]
//
// A handle: a copy is the same cache. Its bytes are those of `capacity` tokens, allocated at the
// first use and written in place, in eager code and in functions. How many tokens it holds is a
// value of each call: a function is traced once for all lengths, and its plan has all bytes.
#pragma once

#include <cstdint>
#include <string>

#include "tidemark/api/fields.h"
#include "tidemark/api/variable.h"

namespace tidemark::nn {

struct KVCacheOptions {
  DType dtype = DType::f32;  // Of the tokens kept; bf16 takes half the bytes.
  std::string name = {};
};

class KVCache {
 public:
  explicit KVCache(int64_t capacity, KVCacheOptions options = {}, Source at = Source::here());

  int64_t capacity() const { return capacity_; }
  // Forgets all tokens, or all but the first `kept`. Nothing is freed or allocated.
  void reset(const Operand& kept = 0, Source at = Source::here()) const;

  // [capacity, ..., heads, size]: tokens first, so that new ones are rows that are written in
  // place. They take their shape from the first use.
  Variable keys, values;
  Variable length;  // i32: how many tokens it holds.
  TIDEMARK_FIELDS(keys, values, length)

  // Internal. Adds tokens, [..., heads, tokens, size], and returns all `capacity` of them in that
  // order of axes, of which those from `length` on are to be masked.
  struct Both {
    Tensor keys, values;
  };
  Both add(const Tensor& new_keys, const Tensor& new_values, Source at) const;

 private:
  int64_t capacity_;
};

}  // namespace tidemark::nn

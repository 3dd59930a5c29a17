// Draws from further distributions, made of uniform and normal ones (calls/random.h). Like those
// they depend only on the key and the position of the element. Parameters that are tensors
// broadcast to the shape; gradients treat draws as constants.
#pragma once

#include <cstdint>
#include <optional>

#include "tidemark/calls/random.h"

namespace tidemark::random {

struct DrawOptions {
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct ExponentialDrawOptions {
  double rate = 1;
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct LaplaceOptions {
  double mean = 0, scale = 1;
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct TruncatedNormalOptions {
  double mean = 0, stddev = 1;
  double low = -2, high = 2;  // In standard deviations from the mean.
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct WholeDrawOptions {
  DType dtype = DType::i64;
  std::optional<Key> key = {};
};
struct CategoricalOptions {
  std::optional<int64_t> count =
      {};  // Draws of each row, on a new last axis; default one, without.
  std::optional<Key> key = {};
};
struct ShuffleOptions {
  int64_t axis = 0;
  std::optional<Key> key = {};
};
struct KeyOptions {
  std::optional<Key> key = {};
};

// Of density rate * exp(-rate * x).
Tensor exponential(const Shape& shape, ExponentialDrawOptions options = {},
                   Source at = Source::here());
// -log of an exponential: the largest of many draws.
Tensor gumbel(const Shape& shape, DrawOptions options = {}, Source at = Source::here());
// Exponential on both sides of the mean.
Tensor laplace(const Shape& shape, LaplaceOptions options = {}, Source at = Source::here());
// Normal within [mean + low * stddev, mean + high * stddev].
Tensor truncated_normal(const Shape& shape, TruncatedNormalOptions options = {},
                        Source at = Source::here());
// Of density x^(alpha - 1) exp(-x) / gamma(alpha); alpha is above 0.
Tensor gamma(const Operand& alpha, const Shape& shape, DrawOptions options = {},
             Source at = Source::here());
// Of density proportional to x^(a - 1) (1 - x)^(b - 1); a and b are above 0.
Tensor beta(const Operand& a, const Operand& b, const Shape& shape, DrawOptions options = {},
            Source at = Source::here());
// How many events happen where `rate` are expected, which is not below 0.
Tensor poisson(const Operand& rate, const Shape& shape, WholeDrawOptions options = {},
               Source at = Source::here());
// A class of each row of logits [..., classes], with probability softmax(logits): i64. Takes
// the bytes of one draw for each logit.
Tensor categorical(const Operand& logits, CategoricalOptions options = {},
                   Source at = Source::here());
// How often each class comes in `trials` draws with these probabilities, which are scaled to add up
// to 1: [..., classes], i64.
Tensor multinomial(int64_t trials, const Operand& probabilities, KeyOptions options = {},
                   Source at = Source::here());
// Whole numbers in [low, high), bounds for each element: up to 2^53 apart.
Tensor integers(const Operand& low, const Operand& high, const Shape& shape,
                WholeDrawOptions options = {}, Source at = Source::here());
// True with a probability for each element, by a key.
Tensor bernoulli(const Operand& p, const Shape& shape, KeyOptions options,
                 Source at = Source::here());
// The slices of x along an axis, in random order.
Tensor permutation(const Tensor& x, ShuffleOptions options = {}, Source at = Source::here());

}  // namespace tidemark::random

// Random tensors. A draw is a function of its key and of position alone: the same bits for any
// number of threads, in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/tensor/tensor.h"

namespace tidemark::random {

class Key {
 public:
  explicit Key(uint64_t seed);
  // Independent keys, made from this one.
  std::vector<Key> split(int count) const;
  Key fold_in(const Operand& data) const;
  uint64_t value() const { return value_; }
  // While tracing, a key made of a traced number: known only at the run. Else holds nothing.
  const Tensor& traced() const { return traced_; }

 private:
  uint64_t value_;
  Tensor traced_;
};

// Where draws without a key come from: each takes the next key of this generator. Initializers of
// Variables have a sequence of their own in it, so that when they run changes no other draw.
void seed(uint64_t seed);
// Where this generator stands, i64[3]: set again, draws go on from there as they did the first
// time.
Tensor state(Source at = Source::here());
void set_state(const Tensor& state, Source at = Source::here());

struct NormalOptions {
  double mean = 0, stddev = 1;
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct UniformOptions {
  double low = 0, high = 1;
  DType dtype = DType::f32;
  std::optional<Key> key = {};
};
struct IntegersOptions {
  int64_t low = 0, high = 2;  // high is left out.
  DType dtype = DType::i32;
  std::optional<Key> key = {};
};
struct BernoulliOptions {
  double p = 0.5;
  std::optional<Key> key = {};
};
struct PermutationOptions {
  std::optional<Key> key = {};
};

Tensor normal(const Shape& shape, NormalOptions options = {}, Source at = Source::here());
Tensor uniform(const Shape& shape, UniformOptions options = {}, Source at = Source::here());
Tensor integers(const Shape& shape, IntegersOptions options, Source at = Source::here());
// Bool: true with probability p.
Tensor bernoulli(const Shape& shape, BernoulliOptions options = {}, Source at = Source::here());
// With probabilities of its own for each element: p is a number or broadcasts to the shape.
Tensor bernoulli(const Operand& p, const Shape& shape, Source at = Source::here());
// The numbers from 0 to n - 1 in a drawn order, i64.
Tensor permutation(int64_t n, PermutationOptions options = {}, Source at = Source::here());

}  // namespace tidemark::random

namespace tidemark {

struct DropoutOptions {
  double rate = 0.5;
  std::optional<random::Key> key = {};
};
// Each element zero with probability `rate`, the others scaled so that the mean stays.
Tensor dropout(const Operand& x, const DropoutOptions& options = {}, Source at = Source::here());

}  // namespace tidemark

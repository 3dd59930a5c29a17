// Random tensors. A draw depends only on its key and the position of the element: the bits are the
// same for any number of threads.
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
  // While tracing, a key derived from a traced number, known only at run time. Otherwise empty.
  const Tensor& traced() const { return traced_; }

 private:
  uint64_t value_;
  Tensor traced_;
};

// Seeds the global generator: each draw without a key takes its next key. Initializers of Variables
// use a separate sequence, so that the time at which they run does not affect other draws.
void seed(uint64_t seed);
// The state of the global generator, i64[3]. Restoring it repeats the draws that followed.
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
  int64_t low = 0, high = 2;  // high is not included.
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
// With a probability for each element: p is a number or broadcasts to the shape.
Tensor bernoulli(const Operand& p, const Shape& shape, Source at = Source::here());
// The numbers from 0 to n - 1 in random order, i64.
Tensor permutation(int64_t n, PermutationOptions options = {}, Source at = Source::here());

}  // namespace tidemark::random

namespace tidemark {

struct DropoutOptions {
  double rate = 0.5;
  std::optional<random::Key> key = {};
};
// Each element set to zero with probability `rate`; the others are scaled to keep the mean.
Tensor dropout(const Operand& x, const DropoutOptions& options = {}, Source at = Source::here());

}  // namespace tidemark

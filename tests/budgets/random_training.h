// Small training functions that nobody wrote: a few layers with skips and values that are read
// several times, and the gradients of a loss by all weights.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark::testing {

struct RandomTraining {
  using Tensors = std::vector<Tensor>;
  // Gives the loss, then the gradients by all arguments but the first.
  Function<Tensors(const Tensors&)> function;
  Tensors arguments;  // The data, then the weights.

  Tensors specs() const;
};

// Of up to 12 ops before the loss. All follows from the seed.
RandomTraining random_training(uint64_t seed, FunctionOptions options = {});

}  // namespace tidemark::testing

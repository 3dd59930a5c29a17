// Functions of any size: what tracing, planning and compiling them costs must grow in proportion to
// it. Timed by bench/compile_cost, counted by tests.
#pragma once

#include <span>

#include "tidemark/tidemark.h"

namespace tidemark::bench {

struct GrowingFunction {
  const char* name;
  int64_t nodes_each;  // How many nodes one more of its size is.
  std::vector<Tensor> (*make)(const Tensor& x, int64_t size);
};

// They take f32[8].
std::span<const GrowingFunction> growing_functions();

}  // namespace tidemark::bench

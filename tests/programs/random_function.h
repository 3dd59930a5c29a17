// Functions nobody thought of, written on the public API: the same code runs at once, or is traced.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark::testing {

// What a function does follows from the seed and the ranks of its arguments, never from their
// sizes, so that these can stay open.
struct RandomFunction {
  uint64_t seed = 0;
  // Steps that are left out: their operand stands in for what they would make.
  std::vector<bool> skipped;

  explicit RandomFunction(uint64_t from);
  int64_t steps() const { return static_cast<int64_t>(skipped.size()); }

  // x: f32[n, 6], y: f32[n]. Writes `state`, f32[]; prints and checks.
  std::vector<Tensor> operator()(const Tensor& x, const Tensor& y, const Variable& state) const;
};

}  // namespace tidemark::testing

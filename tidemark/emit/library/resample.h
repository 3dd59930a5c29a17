// Resampling along one axis of a dense array, viewed as [outer, axis, inner].
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidemark/loops/sampling.h"
#include "tidemark/types/dtype.h"

namespace tidemark::library {

struct Resample {
  DType dtype = DType::f32;  // f32 or f64.
  int64_t outer = 1, inner = 1;
  int64_t from = 1, to = 1;  // Sizes of the axis, positive.
  Sampling sampling = Sampling::linear;
  bool antialias = false;
  bool transposed = false;
};

// The bytes of the table of weights.
int64_t resample_scratch_bytes(const Resample& resample);

// out[o, i, n] = sum of weight(i, j) * in[o, j, n] in increasing j; each product and sum is
// rounded. `scratch` is aligned to 64.
void resample(const Resample& resample, const std::byte* in, std::byte* out, std::byte* scratch);

}  // namespace tidemark::library

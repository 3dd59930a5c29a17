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

// Images, [n, h, w, c], resampled along their height and then along their width, with the same bits
// but a row at a time.
struct ResampleImages {
  DType dtype = DType::f32;  // f32 or f64.
  int64_t n = 1, h = 1, w = 1, c = 1;
  int64_t to_h = 1, to_w = 1;
  Sampling sampling = Sampling::linear;
  bool antialias = false;
};
int64_t resample_images_scratch_bytes(const ResampleImages& images, int threads);
void resample_images(const ResampleImages& images, int threads, const std::byte* in, std::byte* out,
                     std::byte* scratch);

}  // namespace tidemark::library

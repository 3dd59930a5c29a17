// The inner loops of `random.h`, once for each instruction set.
#pragma once

#include <cstdint>

namespace tidemark::library {

// Draws that rejections leave over are tried again together, out of so many.
constexpr int kRejectionBlock = 256;

struct RandomKernels {
  void (*bits)(uint64_t key, int64_t begin, int64_t count, uint32_t* out);
  void (*bits64)(uint64_t key, int64_t begin, int64_t count, uint64_t* out);
  void (*uniform_f32)(uint64_t key, int64_t begin, int64_t count, float* out, float low,
                      float high);
  void (*uniform_f64)(uint64_t key, int64_t begin, int64_t count, double* out, double low,
                      double high);
  void (*normal_f32)(uint64_t key, int64_t begin, int64_t count, float* out, float mean,
                     float stddev);
  void (*normal_f64)(uint64_t key, int64_t begin, int64_t count, double* out, double mean,
                     double stddev);
  void (*integers_i32)(uint64_t key, int64_t begin, int64_t count, int32_t* out, int32_t low,
                       uint64_t size);
  void (*integers_i64)(uint64_t key, int64_t begin, int64_t count, int64_t* out, int64_t low,
                       uint64_t size);
  // 1 where the 32-bit word is below `threshold`, which may be 2^32.
  void (*bernoulli)(uint64_t key, int64_t begin, int64_t count, uint8_t* out, uint64_t threshold);
  // At most kRejectionBlock draws, by a parameter each.
  void (*log_gamma)(uint64_t key, int64_t begin, int count, const double* alpha, double* out);
  void (*poisson)(uint64_t key, int64_t begin, int count, const double* rate, double* out);
};

namespace baseline {
extern const RandomKernels random_kernels;
}
namespace avx2 {
extern const RandomKernels random_kernels;
}
namespace avx512 {
extern const RandomKernels random_kernels;
}

}  // namespace tidemark::library

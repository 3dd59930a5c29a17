// The functions of `loops/math.h` over arrays, compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace tidemark::test {

enum class Function : uint8_t { exp, expm1, log, log1p, log2, log10, sin, cos, tanh, erf, erfc };

struct MathBatch {
  void (*unary_f32)(Function function, const float* in, float* out, int64_t count);
  void (*unary_f64)(Function function, const double* in, double* out, int64_t count);
  void (*power_f32)(const float* x, const float* y, float* out, int64_t count);
  void (*power_f64)(const double* x, const double* y, double* out, int64_t count);
};

namespace baseline {
extern const MathBatch math_batch;
}
namespace avx2 {
extern const MathBatch math_batch;
}
namespace avx512 {
extern const MathBatch math_batch;
}

}  // namespace tidemark::test

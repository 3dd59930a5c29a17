// The inner loops of `resample.h`, once for each instruction set.
#pragma once

#include <cstdint>

namespace tidemark::library {

// One term: a weight, and the row of the input, in elements from the first.
struct WeightedRow {
  int64_t at = 0;
  double weight = 0;
};

// The outputs of one entry of `outer`: row i is the sum of terms [first[i], first[i + 1]).
template <class T>
struct WeightedRows {
  const T* in = nullptr;
  T* out = nullptr;
  int64_t inner = 1;
  const WeightedRow* terms = nullptr;
  const int64_t* first = nullptr;
  int64_t begin = 0, end = 0;  // Rows to compute.
};

struct ResampleKernels {
  void (*rows_f32)(const WeightedRows<float>& rows);
  void (*rows_f64)(const WeightedRows<double>& rows);
};

namespace baseline {
extern const ResampleKernels resample_kernels;
}
namespace avx2 {
extern const ResampleKernels resample_kernels;
}
namespace avx512 {
extern const ResampleKernels resample_kernels;
}

}  // namespace tidemark::library

// The inner loops of `fft.h`, once for each instruction set.
#pragma once

#include <cstdint>

namespace tidemark::library {

// The factors of a length, in the order in which they are taken.
struct FourierFactors {
  int64_t length = 1;
  int count = 0;
  int8_t factors[64] = {};
};

// Complex numbers as two arrays.
template <class T>
struct Split {
  T* re = nullptr;
  T* im = nullptr;
};

template <class T>
struct FourierKernels {
  // Transforms `lanes` rows that lie side by side: element k of row l is at k * lanes + l. Both
  // arrays are used; returns the one that holds the result. `roots` are exp(-2 pi i j / length).
  Split<T> (*transform)(const FourierFactors& factors, Split<T> roots, Split<T> x, Split<T> y,
                        int64_t lanes);
  // x[k, l] = x[k, l] * by[k], for k < count.
  void (*multiply)(Split<T> x, Split<T> by, int64_t count, int64_t lanes);
};

namespace baseline {
extern const FourierKernels<float> fft_f32;
extern const FourierKernels<double> fft_f64;
}  // namespace baseline
namespace avx2 {
extern const FourierKernels<float> fft_f32;
extern const FourierKernels<double> fft_f64;
}  // namespace avx2
namespace avx512 {
extern const FourierKernels<float> fft_f32;
extern const FourierKernels<double> fft_f64;
}  // namespace avx512

}  // namespace tidemark::library

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

// Pair k of row l is at first + k * pair_step + l * row_step.
template <class T>
struct FourierRows {
  T* first = nullptr;
  int64_t pair_step = 2, row_step = 0;
  int64_t pairs = 0, rows = 0;
};

template <class T>
struct FourierKernels {
  // Transforms `lanes` rows that lie side by side: element k of row l is at k * lanes + l. Both
  // arrays are used; returns the one that holds the result. `roots` are exp(-2 pi i j / length).
  Split<T> (*transform)(const FourierFactors& factors, Split<T> roots, Split<T> x, Split<T> y,
                        int64_t lanes);
  // x[k, l] = x[k, l] * by[k], for k < count.
  void (*multiply)(Split<T> x, Split<T> by, int64_t count, int64_t lanes);
  // Between rows of pairs in memory and the first lanes. What is stored is multiplied by `scale`.
  void (*load)(const FourierRows<const T>& from, Split<T> x, int64_t lanes);
  void (*store)(const FourierRows<T>& to, Split<T> x, T scale, int64_t lanes);
  // Takes the transform of reals, two of them in each number, apart: the first `half` numbers
  // become half + 1. `turns` are exp(-pi i k / half).
  void (*apart)(Split<T> x, Split<T> turns, int64_t half, int64_t lanes);
  // The inverse: half + 1 numbers, of which the first and the last count as reals, become `half`.
  void (*together)(Split<T> x, Split<T> turns, int64_t half, int64_t lanes);
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

// The inner loops of `fft.h`, once for each instruction set.
#pragma once

#include <cstdint>

namespace tidemark::library {

// A row by itself whose first factor is 8 has vectors along p in its first pass, so that its turns
// are vectors: for each k, the real and the imaginary parts of 16 p's. If these are no multiple of
// 16, the last block overlaps the one before.
constexpr int64_t kFirstsTogether = 16, kFirstsBlock = 7 * 2 * kFirstsTogether;
constexpr int64_t first_of_block(int64_t begin, int64_t m) {
  return begin + kFirstsTogether < m ? begin : m - kFirstsTogether;
}

// The factors of a length, in the order in which they are taken.
struct FourierFactors {
  int64_t length = 1;
  int count = 0;
  int8_t factors[64] = {};

  static bool is_sum(int radix) { return radix == 7 || radix > 8; }
  bool has_sums() const {
    for (int i = 0; i < count; ++i) {
      if (is_sum(factors[i])) return true;
    }
    return false;
  }

  // A pass of radix r multiplies number k of place p < m by root k p of its length, m r: its turns
  // are these for each p and 0 < k < r. Those of the last are 1, which is left out, and sums for
  // primes take theirs from the table of all roots.
  int64_t turns_of(int pass, bool is_alone) const {
    const int r = factors[pass];
    if (pass + 1 == count || is_sum(r)) return 0;
    int64_t m = length;
    for (int i = 0; i <= pass; ++i) m /= factors[i];
    if (pass > 0 || !is_alone) return m * (r - 1) * 2;
    return (m + kFirstsTogether - 1) / kFirstsTogether * kFirstsBlock;
  }
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

// What the transforms of a length share.
template <class T>
struct FourierTables {
  FourierFactors factors;
  Split<T> roots;            // exp(-2 pi i j / length), if there are sums.
  const T* turns = nullptr;  // Of one pass after the other.
  bool is_alone = false;     // Each row by itself, the first pass with vectors along it.
};

// Where a transform takes its numbers from and where it leaves them; no `first`: in the arrays.
// Swapped, re and im change places before and after, which makes the transform that of the other
// direction. What is stored is multiplied by `scale`.
template <class T>
struct FourierEnds {
  FourierRows<const T> from = {};
  FourierRows<T> to = {};
  T scale = 1;
  bool swapped = false;
};

template <class T>
struct FourierKernels {
  // Transforms `lanes` rows that lie side by side: element k of row l is at k * lanes + l. Both
  // arrays are used; returns the one that holds the result, unless that is elsewhere.
  Split<T> (*transform)(const FourierTables<T>& tables, const FourierEnds<T>& ends, Split<T> x,
                        Split<T> y, int64_t lanes);
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

// Fourier transforms of pairs (re, im), ours: kernels do not allocate, so that the scratch is a
// formula of the sizes, and a row has the same bits whatever runs beside it.
//
// Lengths whose prime factors are at most 13 are transformed factor by factor in Stockham's order,
// which needs no permutation. Other lengths are a convolution with a chirp (Bluestein), by
// transforms of a power of two. Several rows are transformed side by side, a vector of rows at a
// time.
#pragma once

#include <cstdint>

#include "tidemark/types/dtype.h"

namespace tidemark::library {

// The transform of reals is its first count / 2 + 1 numbers; the others are their conjugates. With
// an even number of reals, pairs of neighbours are transformed as complex numbers.
enum class FourierKind : uint8_t { complex, of_reals, to_reals };

// Rows of `count` pairs, [outer, count, inner, 2], dense. Of reals, rows of `count` to or from
// count / 2 + 1 pairs, and `inner` is 1. The imaginary parts that the transform of reals has not
// are written as 0, and not read.
struct Fourier {
  DType dtype = DType::f32;
  FourierKind kind = FourierKind::complex;
  int64_t outer = 1, count = 1, inner = 1;
  bool inverse = false;  // To reals: it is one.
  bool adjoint = false;  // The transposed sums of the other direction, of reals.
  double scale = 1;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;  // May be `from`, but for reals.
};

int64_t fft_scratch_bytes(const Fourier& work, int threads);
void fft(const Fourier& work, int threads, std::byte* scratch);

}  // namespace tidemark::library

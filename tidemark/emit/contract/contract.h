// Matrix products and convolutions, with an exact definition of their bits.
//
// Every output is a sum over k of products a(k) * b(k), computed as follows:
//
//   - k is cut in consecutive blocks of 256, counted from 0;
//   - each block is a chain t = fma(a(k), b(k), t) from t = 0 in increasing k;
//   - block results are added in order: c = ((t0 + t1) + t2) + ...
//
// in f32, or in f64 for f64. So the bits depend only on the operands' values: not on m, n, the
// batch, strides, threads, tiles or instruction set. f16 and bf16 are widened exactly, accumulate
// in f32 and round once at the end. Integers wrap. If k is 0 the result is 0. The payload of a NaN
// is not defined.
//
// Kernels never allocate: the caller queries the size of the scratch and provides it. Work is split
// over `device::parallel_for` along m and n, never along k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidemark/types/dtype.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

// A matrix in memory. Strides are in elements, of any sign; zero repeats an element.
struct MatrixRef {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, column_stride = 1;
};

// The entries of a batch of products, as strided axes, like the leading axes of arrays.
struct Batch {
  using Axes = SmallVec<int64_t, 6>;
  Axes extents;  // None: one entry, at `data`.
  Axes a, b, c;  // From one index of an axis to the next, in elements; zero repeats a matrix.

  int64_t count() const;
  // Where the matrices of an entry begin, in elements from `data`.
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets at(int64_t entry) const;
};

// c = a b, of one dtype (any but boolean). `c` has column stride 1, overlaps neither operand, and
// its batch entries do not overlap one another.
struct Contraction {
  int64_t m = 0, n = 0, k = 0;
  MatrixRef a;  // m x k
  MatrixRef b;  // k x n
  MatrixRef c;  // m x n
  // Block results are added to the content of c: c = ((c + t0) + t1) + ... Only for f32 and f64.
  bool add = false;
  Batch batch = {};  // Of one entry or more.
};

// The most scratch bytes that `contract` uses with this many threads. Does not read the operands.
int64_t contract_scratch_bytes(const Contraction& contraction, int threads);

// Runs on at most `threads` threads, the number that scratch was sized for. `scratch` is aligned to
// 64 and may be null if its size is 0.
void contract(const Contraction& contraction, int threads, std::byte* scratch);

// c = the distances of the rows of a from the columns of b: the square root of the sum over k of
// the squares of a(k) - b(k), each difference rounded, the squares added up as products are. f32 or
// f64, nothing is added to c.
int64_t distances_scratch_bytes(const Contraction& contraction, int threads);
void distances(const Contraction& contraction, int threads, std::byte* scratch);

// c(row, column) = the sum over k of a(row, k) * (from(row, column) - b(k, column)), each
// difference rounded, the products added up as those of matrices are. f32 or f64, nothing is added
// to c.
struct WeightedDifferences {
  Contraction of;
  MatrixRef from;          // m x n
  Batch::Axes from_batch;  // As the axes of the batch.
};
int64_t weighted_differences_scratch_bytes(const WeightedDifferences& work, int threads);
void weighted_differences(const WeightedDifferences& work, int threads, std::byte* scratch);

// out(i, z, y, x, o) = sum over (kz, ky, kx, c) of in(i, z * stride_d - pad_front + kz *
// dilation_d, y * stride_h - pad_top + ky * dilation_h, x * stride_w - pad_left + kx * dilation_w,
// c) * weight(kz, ky, kx, c, o), images in NDHWC; a flat image has one frame. This is a contraction
// whose k is (((kz * kh) + ky) * kw + kx) * (c_in / groups) + c.
//
// The pixels of an axis may lie `spread` apart: pixel i is at i * spread, and there is nothing
// between pixels. So the gradient by the image is a convolution too, of the gradient spread by the
// strides.
//
// Padding adds no terms: a tap that meets no pixel is skipped, so an infinite weight there gives no
// NaN. It keeps its place in k, so blocks of 256 fall on the same taps for every output.
struct Convolution {
  int64_t n = 0, h = 0, w = 0, c_in = 0;
  int64_t kh = 0, kw = 0, c_out = 0;
  int64_t out_h = 0, out_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  DType dtype = DType::f32;
  const std::byte* in = nullptr;
  int64_t in_n = 0, in_h = 0, in_w = 0;  // Strides in elements; that of channels is 1.
  const std::byte* weight = nullptr;     // [kd][kh][kw][c_in / groups][c_out], contiguous.
  std::byte* out = nullptr;              // [n][out_d][out_h][out_w][c_out], contiguous.
  int64_t d = 1, kd = 1, out_d = 1;
  int64_t stride_d = 1, pad_front = 0, dilation_d = 1;
  int64_t in_d = 0;
  int64_t spread_d = 1, spread_h = 1, spread_w = 1;
};

int64_t convolve_scratch_bytes(const Convolution& convolution, int threads);
void convolve(const Convolution& convolution, int threads, std::byte* scratch);

// The same sums for interleaved images: in_n is 1, or 0 where all images are one. Channels are
// `in_c` apart, and weights have arbitrary strides except for outputs, which are contiguous. This
// is the layout of the gradient by the kernel, where the batch takes the role of channels and
// channels that of images. f32 or f64, pixels that are not spread. Needs no scratch.
//
// Groups are of images and of outputs, not of channels: the result has n / groups images, and each
// output is that of the images of its group.
//
// `by_channel`: k is ((c * kd + kz) * kh + ky) * kw + kx, and a block ends with its channel, or
// with the last of several channels that fit into a block (channels_of_block): a sum over the
// channels can then be computed in parts. With few taps that changes nothing.
struct ConvolutionAcross {
  Convolution of;
  int64_t in_c = 0;
  int64_t weight_h = 0, weight_w = 0, weight_c = 0;
  int64_t weight_d = 0;
  bool by_channel = false;
  bool add = false;            // Block results are added to the content of `out`.
  bool kernel_layout = false;  // `out` is [out_d][out_h][out_w][n / groups][c_out].
};
void convolve_across(const ConvolutionAcross& convolution, int threads);

// The gradient of a convolution by its kernel, given that by its output: to(kz, ky, kx, c, o) = sum
// over (i, z, y, x) of by(i, z, y, x, o) * in(i, z * stride_d - pad_front + kz * dilation_d, ..., c
// of the group of o). The batch takes the role of the channels: sums go image by image, as those of
// ConvolutionAcross by channel. `of` states the convolution, but for `weight` and `out`; pixels are
// not spread.
struct KernelGradient {
  Convolution of;  // Of f32 or f64, or with one channel in and out of each group of any float.
  const std::byte* by = nullptr;
  int64_t by_n = 0, by_d = 0, by_h = 0, by_w = 0;  // As in_n, ...; that of channels is 1.
  std::byte* to = nullptr;                         // [kd][kh][kw][c_in / groups][c_out].
};
int64_t kernel_gradient_scratch_bytes(const KernelGradient& gradient, int threads);
void kernel_gradient(const KernelGradient& gradient, int threads, std::byte* scratch);

}  // namespace tidemark

// The inner kernels of contractions, one set for each instruction set.
//
// A tile is a few rows by a few vectors of the output, held in registers over one block of k:
//
//             b: one row of a panel, `vectors` wide
//             +----+----+----+----+
//   a(0) ->   |    |    |    |    |
//   a(1) ->   |    |    |    |    |     c(r, v) = fma(a(r), b(v), c(r, v))
//    ...      |    |    |    |    |
//             +----+----+----+----+
//
// A is read in place, one broadcast per row and step, so it needs no packing whatever its strides.
// B is read a row at a time, from a packed panel or in place. In the latter case the tile can also
// write a packed copy for the tiles below it, at no extra cost since the row is in registers.
//
// The files that define these sets are compiled for their instruction set, and have no symbols that
// the linker could merge into code for other CPUs.
#pragma once

#include <cstdint>

#include "tidemark/loops/product_block.h"

namespace tidemark::contraction {

inline constexpr int64_t kBlock = kProductBlock;
inline constexpr int kMaxRows = 8;
inline constexpr int kMaxVectors = 4;
inline constexpr int kPrefetchSteps = 16;  // One line of floats.
inline constexpr int kPrefetchRows = 4;    // Of next_b, unless a tile asks for others.

// A range of k along which A and B have constant strides. A convolution has one for each run of
// taps; a matrix product has one per block.
struct Segment {
  int64_t a = 0;       // Elements from Tile::a.
  int64_t b = 0;       // Elements from Tile::b.
  int64_t length = 0;  // Steps of k.
};

// One block of k for one tile, or a part of a block: then chains wait in c.
template <class T>
struct Tile {
  const T* a = nullptr;
  int64_t a_row = 0, a_step = 1;
  const T* b = nullptr;
  int64_t b_step = 0;
  const Segment* segments = nullptr;
  int64_t segment_count = 0;
  // If not 0, A and B are moved by jumps as well, after every `run` steps of a segment.
  int64_t run = 0;
  int64_t a_jump = 0, b_jump = 0;
  const T* from = nullptr;  // Null, or the chains as an earlier part of the block has left them.
  int64_t from_row = 0;
  T* packed = nullptr;  // Null, or where rows of B are left, whole vectors, zeros beyond the edge.
  T* c = nullptr;
  int64_t c_row = 0;
  int last_lanes = 0;  // Columns in the last vector.
  bool add = false;    // Add to c rather than store: every block but the first.
  // Addresses to prefetch; they are never read and may be invalid. One line of each of `rows` rows,
  // a_next_row apart, every kPrefetchSteps.
  const T* next_a = nullptr;
  int64_t a_next_row = 0;
  const T* const* next_b = nullptr;  // Null, or by segment: null, or rows, b_next_step apart.
  int64_t b_next_step = 0;
  int64_t b_next_rows = kPrefetchRows;  // Every kPrefetchSteps of a segment.
};

// Copies a strided matrix into rows of T, widening, with zeros up to `padded_columns`.
template <class T>
struct BlockCopy {
  T* to = nullptr;
  int64_t to_row = 0;
  const void* from = nullptr;
  int64_t row_stride = 0, column_stride = 0;
  int64_t rows = 0, columns = 0, padded_columns = 0;
};

// c = sum over k of a(row, k) * x(k) for rows whose k is contiguous. c has any stride.
template <class T>
struct RowsTimesVector {
  const T* a = nullptr;
  int64_t a_row = 0;
  const T* x = nullptr;
  int64_t x_step = 0;
  T* c = nullptr;
  int64_t c_step = 0;
  int64_t rows = 0, k = 0;
};

// c = sum over k of x(k) * b(k, column) for contiguous columns. `partial` has room for `columns`,
// rounded up to whole vectors.
template <class T>
struct VectorTimesColumns {
  const T* x = nullptr;
  int64_t x_step = 0;
  const T* b = nullptr;
  int64_t b_row = 0;
  T* c = nullptr;
  T* partial = nullptr;
  int64_t columns = 0, k = 0;
};

// Groups have 1, 2, 4, ... channels in, and as many out.
inline constexpr int kGroupSizes = 4;
constexpr int64_t group_size(int number) { return int64_t{1} << number; }

// One tap of a depthwise convolution, in elements.
struct DepthwiseTap {
  int64_t in = 0;      // From Depthwise::in.
  int64_t weight = 0;  // From Depthwise::weight.
};

// Taps of a row that share loads of pixels: the width of most kernels.
inline constexpr int kDepthwiseRun = 3;

// Output pixels in a line that see the same taps: out(pixel, channel) = sum over taps and the
// channels c of the group of in(pixel, c) * weight(c, channel), at most kBlock terms, with
// contiguous channels. A tap of the weights has a row for each c.
struct Depthwise {
  const void* in = nullptr;
  int64_t in_pixel = 0;
  const void* weight = nullptr;
  const DepthwiseTap* taps = nullptr;
  int64_t tap_count = 0;
  bool in_runs = false;        // Taps come in runs of kDepthwiseRun, in_pixel apart.
  const void* next = nullptr;  // Pixels to prefetch, in_pixel apart; never read.
  void* out = nullptr;
  int64_t out_pixel = 0;
  int64_t pixels = 0, channels = 0;
};

// Sums of a few taps over pixels in a line: sum(tap, c, channel) += in(pixel, tap, c) * by(pixel,
// channel) for each channel c of the group, one chain for each sum. `weight` of a tap is the place
// of its sums, a row of `sums_row` for each c, which have room for whole vectors of channels.
template <class T>
struct DepthwiseSums {
  const void* in = nullptr;
  int64_t in_pixel = 0;
  const void* by = nullptr;
  int64_t by_pixel = 0;
  const DepthwiseTap* taps = nullptr;
  int64_t tap_count = 0;
  T* sums = nullptr;
  int64_t sums_row = 0;
  int64_t pixels = 0, channels = 0;
};

// One block of k of squared distances: c(row, column) = sum over k of the square of a(row, k) +
// b(k, column), for as many rows as the kernel has. B is packed in whole vectors, with its signs
// turned.
template <class T>
struct DistanceTile {
  const T* a = nullptr;
  int64_t a_row = 0, a_step = 1;
  const T* b = nullptr;
  T* c = nullptr;
  int64_t c_row = 0;
  int64_t k = 0;
  int last_lanes = 0;
  bool add = false;  // As that of Tile.
};
inline constexpr int kDistanceRows = 6;

// One block of k of weighted differences: c(row, column) = sum over k of a(row, k) * (from(row,
// column) + b(k, column)), for as many rows as the kernel has. B is as that of DistanceTile; `from`
// has whole vectors too, row after row.
template <class T>
struct DifferenceTile {
  DistanceTile<T> of;
  const T* from = nullptr;
};
inline constexpr int kDifferenceRows = 3;

// All kernels of one instruction set for accumulation in T.
template <class T>
struct KernelSet {
  int lanes = 1;
  int max_vectors = 1;
  int max_rows[kMaxVectors] = {};                            // By vectors - 1.
  void (*tile[kMaxVectors][kMaxRows])(const Tile<T>&) = {};  // By vectors - 1, rows - 1.
  // The same where the last vector has at most `narrow_lanes` columns and B is not packed; 0:
  // never.
  int narrow_lanes = 0;
  void (*narrow_tile[kMaxVectors][kMaxRows])(const Tile<T>&) = {};
  void (*copy)(const BlockCopy<T>&) = nullptr;      // From T.
  void (*copy_f16)(const BlockCopy<T>&) = nullptr;  // These four only for float.
  void (*copy_bf16)(const BlockCopy<T>&) = nullptr;
  void (*round_f16)(const T* from, uint16_t* to, int64_t count) = nullptr;
  void (*round_bf16)(const T* from, uint16_t* to, int64_t count) = nullptr;
  void (*distances[kMaxVectors])(const DistanceTile<T>&) = {};  // kDistanceRows; by vectors - 1.
  void (*distances_of_row[kMaxVectors])(const DistanceTile<T>&) = {};  // One row.
  void (*differences[kMaxVectors])(const DifferenceTile<T>&) = {};     // kDifferenceRows.
  void (*differences_of_row[kMaxVectors])(const DifferenceTile<T>&) = {};
  // By number of the group's size; null where it is more than the lanes of a vector.
  void (*depthwise[kGroupSizes])(const Depthwise&) = {};      // Elements of T.
  void (*depthwise_f16[kGroupSizes])(const Depthwise&) = {};  // These two only for float.
  void (*depthwise_bf16[kGroupSizes])(const Depthwise&) = {};
  void (*depthwise_sums[kGroupSizes])(const DepthwiseSums<T>&) = {};      // Of floats.
  void (*depthwise_sums_f16[kGroupSizes])(const DepthwiseSums<T>&) = {};  // Only for float.
  void (*depthwise_sums_bf16[kGroupSizes])(const DepthwiseSums<T>&) = {};
  void (*rows_times_vector)(const RowsTimesVector<T>&) = nullptr;
  void (*vector_times_columns)(const VectorTimesColumns<T>&) = nullptr;
};

extern const KernelSet<float> kAvx512F32, kAvx2F32, kBaselineF32;
extern const KernelSet<double> kAvx512F64, kAvx2F64, kBaselineF64;
extern const KernelSet<int32_t> kAvx512I32, kAvx2I32, kBaselineI32;

// The set for device::isa().
template <class T>
const KernelSet<T>& kernel_set();

}  // namespace tidemark::contraction

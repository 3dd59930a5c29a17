// Arithmetic shared by products and convolutions for dividing work.
#pragma once

#include <cstdint>

#include "tidemark/types/dtype.h"

namespace tidemark::contraction {

// Whether sums of this dtype are computed by the tiles of tile.h.
// Sums and products that wrap have the same bits with a sign and without: u32 takes i32's kernels.
constexpr bool is_whole32(DType dtype) { return dtype == DType::i32 || dtype == DType::u32; }
constexpr bool has_tiles(DType dtype) { return is_float(dtype) || is_whole32(dtype); }

constexpr int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// The bytes of one part of scratch, rounded up to whole cache lines.
constexpr int64_t add_bytes(int64_t bytes) { return divide_up(bytes, 64) * 64; }

// Divides rows over as few tiles as possible, whose heights differ by at most one row.
struct RowSplit {
  int64_t count = 0, least = 0, taller = 0;
  int64_t rows(int64_t tile) const { return least + (tile < taller ? 1 : 0); }
  int64_t first(int64_t tile) const { return least * tile + (tile < taller ? tile : taller); }
};
constexpr RowSplit split_rows(int64_t rows, int64_t tallest) {
  const int64_t count = divide_up(rows, tallest);
  return {.count = count, .least = rows / count, .taller = rows % count};
}

// How many steps of k of a panel with rows of this many bytes fit into the L2 cache: all, or a
// multiple of the block.
int64_t panel_depth(int64_t row_bytes, int64_t k);

}  // namespace tidemark::contraction

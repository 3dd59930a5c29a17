// Small sums that products and convolutions share when they cut up their work.
#pragma once

#include <cstdint>

namespace tidemark::contraction {

constexpr int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// Bytes of one part of scratch, so that the next begins on a line of its own.
constexpr int64_t add_bytes(int64_t bytes) { return divide_up(bytes, 64) * 64; }

// Rows shared out over as few tiles as can hold them, none more than one row taller than another.
struct RowSplit {
  int64_t count = 0, least = 0, taller = 0;
  int64_t rows(int64_t tile) const { return least + (tile < taller ? 1 : 0); }
  int64_t first(int64_t tile) const { return least * tile + (tile < taller ? tile : taller); }
};
constexpr RowSplit split_rows(int64_t rows, int64_t tallest) {
  const int64_t count = divide_up(rows, tallest);
  return {.count = count, .least = rows / count, .taller = rows % count};
}

// How many steps of k a panel with rows of this many bytes keeps in the second-level cache: all, or
// a multiple of the block.
int64_t panel_depth(int64_t row_bytes, int64_t k);

}  // namespace tidemark::contraction

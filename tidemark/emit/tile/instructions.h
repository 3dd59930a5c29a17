// The vector instructions of the interpreter: one loop per op and dtype, compiled once for each
// instruction set from the same source, and the folds.
#pragma once

#include <cstdint>

#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/tile/tile_function.h"
#include "tidemark/loops/nest.h"

namespace tidemark::tile {

// The folds of one monoid and dtype. The reduction orders are those of `nest.h`.
struct FoldFunctions {
  // Folds n elements into 64 lanes; the first belongs to lane 0.
  void (*lanes)(const void* x, void* lanes, int64_t n) = nullptr;
  // Combines the 64 lanes into one value. The lanes are lost.
  void (*tree)(void* lanes, void* out) = nullptr;
  // Folds each of `rows` contiguous rows of at most 4096 columns to one value.
  void (*rows)(const void* x, void* out, int64_t rows, int64_t columns) = nullptr;
  // Folds `steps` contiguous rows into one row of cells, in order.
  void (*steps)(const void* x, void* cells, int64_t steps, int64_t columns) = nullptr;
};

FoldFunctions fold_functions(Monoid monoid, DType dtype, device::Isa isa);

// The functions of each instruction set; null if the op is not of that kind.
namespace baseline {
TileFunction arithmetic(ExprOp op, DType operand);
TileFunction elementary(ExprOp op, DType operand);
TileFunction cast(DType dtype, DType operand);
FoldFunctions fold(Monoid monoid, DType dtype);
}  // namespace baseline
namespace avx2 {
TileFunction arithmetic(ExprOp op, DType operand);
TileFunction elementary(ExprOp op, DType operand);
TileFunction cast(DType dtype, DType operand);
FoldFunctions fold(Monoid monoid, DType dtype);
}  // namespace avx2
namespace avx512 {
TileFunction arithmetic(ExprOp op, DType operand);
TileFunction elementary(ExprOp op, DType operand);
TileFunction cast(DType dtype, DType operand);
FoldFunctions fold(Monoid monoid, DType dtype);
}  // namespace avx512

}  // namespace tidemark::tile

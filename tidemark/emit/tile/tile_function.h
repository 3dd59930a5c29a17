// Single instructions of the vector interpreter, for callers with few elements.
#pragma once

#include <cstdint>

#include "tidemark/device/cpu/features.h"
#include "tidemark/loops/nest.h"

namespace tidemark {

// Applies one op to n contiguous elements. `out` may be one of the operands, or apart from all.
using TileFunction = void (*)(const void* const* in, void* out, int64_t n);

// The instruction for `op` with a result of `dtype` and operands of `operand` (of a select: the two
// values). Null where the op does not exist for them (`is_defined` in `loops/expr.h`) or has no
// operands.
TileFunction tile_function(ExprOp op, DType dtype, DType operand);
TileFunction tile_function(ExprOp op, DType dtype, DType operand, device::Isa isa);

}  // namespace tidemark

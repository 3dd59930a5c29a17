// Loop nests run by a precompiled vector interpreter: ready at once, a few times slower than
// machine code made for the nest, and the same bits.
#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark {

// A kernel that evaluates the nest a block of elements at a time, each op by one instruction. With
// args.extents set it checks every access, and throws InternalError at one that leaves its buffer.
std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest);
std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest, device::Isa isa);

// A loop on few numbers, the same way.
std::unique_ptr<Kernel> make_tile_recurrence(const Recurrence& recurrence, device::Isa isa);

// Applies one op to n contiguous elements. `out` may be one of the operands, or apart from all.
using TileFunction = void (*)(const void* const* in, void* out, int64_t n);

// The instruction for `op` with a result of `dtype` and operands of `operand` (of a select: the two
// values). Null where the op does not exist for them (`is_defined` in `loops/expr.h`) or has no
// operands.
TileFunction tile_function(ExprOp op, DType dtype, DType operand);
TileFunction tile_function(ExprOp op, DType dtype, DType operand, device::Isa isa);

}  // namespace tidemark

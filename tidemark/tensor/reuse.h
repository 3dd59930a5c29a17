// In-place execution: results that take the memory of rvalue operands. Internal to the library.
#pragma once

#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

// An rvalue operand whose memory the result may take: dense, of the result's size, not shared. A
// small view of a large allocation is not taken, since the result would keep all of it alive.
bool can_take(const Operand& operand, DType dtype, const Shape& shape);

// The result over that operand's memory. The operand keeps it until the op is done, so that an op
// that fails for lack of memory changes nothing.
ArrayRef place_of(const Operand& operand, DType dtype);
Tensor take_over(const Operand& operand, DType dtype, Source at);

}  // namespace tidemark::detail

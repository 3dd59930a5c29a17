// The bytes of dying operands as those of results. Internal to the library.
#pragma once

#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

// A dying operand whose bytes the result may take: dense, of the result's size, held by nobody
// else. A small part of large bytes is not taken: the result would keep all of them.
bool can_take(const Operand& operand, DType dtype, const Shape& shape);

// Where the result of such an operand goes. The operand keeps its bytes until the op is done: one
// that fails for want of memory changes nothing.
ArrayRef place_of(const Operand& operand, DType dtype);
Tensor take_over(const Operand& operand, DType dtype, Source at);

}  // namespace tidemark::detail

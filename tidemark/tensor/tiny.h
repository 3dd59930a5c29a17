// A fast path for pointwise calls on few elements, where overhead dominates. Internal to the
// library.
#pragma once

#include "tidemark/tensor/call.h"

namespace tidemark::detail {

// Handles dense tensors of one dtype and shape, optionally with a plain number or an operand that
// broadcasts along leading axes. Returns false if the call is not of this kind.
bool run_tiny(const OpCall& call, Tensor& result);

}  // namespace tidemark::detail

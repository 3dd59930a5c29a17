// Pointwise calls on few elements, for which nothing but the elements should cost time. Internal to
// the library.
#pragma once

#include "tidemark/tensor/call.h"

namespace tidemark::detail {

// Dense tensors of one dtype and shape, or with a number or with rows that repeat beside one; few
// elements, one step: straight to the elements. False where a call is not of this kind.
bool run_tiny(const OpCall& call, Tensor& result);

}  // namespace tidemark::detail

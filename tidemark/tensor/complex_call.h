// Calls on complex tensors: each becomes calls on the real and imaginary parts, so that kernels,
// gradients, plans and batching compute with reals alone (docs/decisions/0033-complex-dtypes.md).
// Internal to the library.
#pragma once

#include "tidemark/tensor/call.h"
#include "tidemark/tensor/complex_parts.h"

namespace tidemark::detail {

inline bool takes_complex(const OpCall& call) {
  for (const Operand* const operand : call.operands)
    if (is_complex(*operand)) return true;
  return false;
}
// Whether the op has complex operands as they are: the two views, transfers and prints.
bool knows_complex(const OpDef& op);

// The result of a call that has a complex operand and does not know complex numbers.
Tensor complex_call(const OpCall& call);
// The same of an elementwise op.
Tensor complex_pointwise(const OpCall& call);

}  // namespace tidemark::detail

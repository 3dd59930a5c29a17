// Operands of losses and metrics as tensors, and their types as text for messages.
#pragma once

#include <string>

#include "tidemark/api/tensor.h"
#include "tidemark/base/text.h"

namespace tidemark::nn {

inline Tensor tensor_of(const Operand& operand) {
  if (operand.tensor() != nullptr) return *operand.tensor();
  if (operand.kind() == 3)
    return Tensor(std::complex<double>(operand.real(), operand.imag()), operand.at());
  return operand.kind() == 2 ? Tensor(operand.real(), operand.at())
                             : Tensor(operand.whole(), operand.at());
}

inline std::string type_text(const Tensor& x) { return cat(x.dtype(), x.shape()); }

}  // namespace tidemark::nn

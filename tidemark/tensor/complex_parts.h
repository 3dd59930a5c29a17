// Complex tensors as pairs of reals (docs/decisions/0033-complex-dtypes.md). Internal to the
// library.
#pragma once

#include <optional>

#include "tidemark/tensor/call.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

inline bool is_complex(const Operand& operand) {
  const Tensor* const tensor = operand.tensor();
  if (tensor == nullptr) return operand.kind() == 3;
  const TensorState* const state = TensorState::of(*tensor);
  return state != nullptr && tidemark::is_complex(state->array.dtype);
}

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
// The dtype that all operands of a call become, but for a condition.
DType common_dtype(const OpCall& call);

// A number or a tensor in a complex dtype, or a complex one in any dtype.
Tensor complex_cast(const Operand& x, DType dtype, Source at);

Tensor view_as_real(const Tensor& z, Source at);
Tensor view_as_complex(const Tensor& pairs, Source at);
// Pairs of the operand in the dtype of the parts; of a real number, with imaginary parts of 0.
Tensor pairs_of(const Operand& x, DType part, Source at);

// Real and imaginary parts; `im` is empty where a number is real.
struct Parts {
  Tensor re, im;
};
// The parts in a real dtype: views, if that is their own.
Parts parts_of(const Operand& x, DType part, Source at);
// Parts of pairs, as views.
Parts halves_of(const Tensor& pairs, Source at);
// Broadcast against each other, side by side.
Tensor joined(const Parts& parts, Source at);

// The views and copies that parts are made with.
Tensor bind_one(const NamedOp& op, const Tensor& x, const Attrs& attrs, Source at);
Tensor with_last_axis(const Tensor& x, Source at);
Tensor without_axis(const Tensor& x, int64_t axis, Source at);
// `count` elements from `begin` on along one axis, as a view.
Tensor range_of(const Tensor& x, int64_t axis, int64_t begin, Dim count, Source at);
Tensor concat_along(std::span<const Tensor> list, int64_t axis, Source at);
Tensor broadcast(const Tensor& x, const Shape& shape, Source at);

}  // namespace tidemark::detail

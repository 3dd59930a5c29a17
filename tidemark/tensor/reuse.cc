#include "tidemark/tensor/reuse.h"

namespace tidemark::detail {

bool can_take(const Operand& operand, DType dtype, const Shape& shape) {
  if (!operand.is_dying() || operand.tensor() == nullptr) return false;
  const TensorState* state = TensorState::of(*operand.tensor());
  return state != nullptr && is_sole(*state) && size_of(state->array.dtype) == size_of(dtype) &&
         state->array.shape == shape && state->array.is_contiguous() &&
         state->storage->bytes <= 2 * granted_bytes(state->array.size() * size_of(dtype));
}

ArrayRef place_of(const Operand& operand, DType dtype) {
  ArrayRef place = TensorState::of(*operand.tensor())->array;
  place.dtype = dtype;
  return place;
}

Tensor take_over(const Operand& operand, DType dtype, Source at) {
  // The operand was passed as an rvalue, so its owner expects it to be emptied.
  TensorState* state = TensorState::take(const_cast<Tensor&>(*operand.tensor()));
  state->array.dtype = dtype;
  state->weak = false;
  state->tape_id = 0;
  state->at = at.resolve();
  return TensorState::adopt(state);
}

}  // namespace tidemark::detail

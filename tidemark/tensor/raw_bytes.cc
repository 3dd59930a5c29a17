#include "tidemark/tensor/raw_bytes.h"

#include <cstring>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

Tensor unwritten(DType dtype, const Shape& shape, Source at) {
  return make_tensor(dtype, shape, at);
}

std::byte* writable_bytes(Tensor& tensor) {
  TensorState* state = TensorState::of(tensor);
  TIDEMARK_CHECK(state != nullptr && state->storage->writable && is_sole(*state),
                 "bytes that somebody else may read are written");
  return state->array.data;
}

const std::byte* dense_bytes(const Tensor& tensor, Source at) {
  const ArrayRef& array = array_of(tensor, at);
  return array.is_contiguous() ? array.data : nullptr;
}

void copy_bytes(const Tensor& from, std::byte* to, Source at) {
  const ArrayRef& array = array_of(from, at);
  if (array.size() == 0) return;
  if (array.is_contiguous()) {
    std::memcpy(to, array.data, static_cast<size_t>(array.size() * size_of(array.dtype)));
    return;
  }
  compile::run_copy(array, {.data = to,
                            .dtype = array.dtype,
                            .shape = array.shape,
                            .strides = contiguous_strides(array.shape)});
}

}  // namespace tidemark::detail

#include "tidemark/tensor/placement.h"

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/memory.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

Tensor packed(const Tensor& tensor, Source at) {
  const ArrayRef& array = array_of(tensor, at);
  if (array.is_contiguous()) return tensor;
  Tensor result = make_tensor(array.dtype, array.shape, at);
  compile::run_copy(array, TensorState::of(result)->array);
  return result;
}

void copy_elements(const Tensor& from, const Tensor& to, Source at) {
  const ArrayRef &source = placed_array_of(from, at), &target = placed_array_of(to, at);
  const int32_t memory = TensorState::of(to)->memory();
  if (memory == device::kHostMemory) return compile::run_copy(source, target);
  const int64_t bytes = target.size() * size_of(target.dtype);
  if (bytes > 0) device::memory(memory).copy_within(target.data, source.data, bytes);
}

Tensor copied_to(const Tensor& tensor, int32_t memory, Source at, ByteClass byte_class) {
  const ArrayRef& shown = placed_array_of(tensor, at);
  const int32_t from = TensorState::of(tensor)->memory();
  const Tensor copy = make_tensor_in(memory, shown.dtype, shown.shape, at, byte_class);
  if (from == memory) {
    copy_elements(tensor, copy, at);
    return copy;
  }
  const int64_t bytes = shown.size() * size_of(shown.dtype);
  std::byte* const to = TensorState::of(copy)->array.data;
  if (bytes == 0) return copy;
  if (from == device::kHostMemory) {
    const Tensor dense = packed(tensor, at);
    device::memory(memory).copy_in(to, TensorState::of(dense)->array.data, bytes);
  } else if (memory == device::kHostMemory) {
    device::memory(from).copy_out(to, shown.data, bytes);
  } else {
    return copied_to(copied_to(tensor, device::kHostMemory, at), memory, at, byte_class);
  }
  return copy;
}

}  // namespace tidemark::detail

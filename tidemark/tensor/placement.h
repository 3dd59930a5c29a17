// Copies of tensors: dense ones, and into, out of and within other memories than the host's.
// Internal to the library.
#pragma once

#include "tidemark/device/storage.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// The same elements one after another: the tensor itself where they are.
Tensor packed(const Tensor& tensor, Source at);
// A copy in the memory of this number, dense; of a tensor there already, another.
Tensor copied_to(const Tensor& tensor, int32_t memory, Source at,
                 ByteClass byte_class = ByteClass::temporaries);
// Element by element to a tensor of the same type in the same memory.
void copy_elements(const Tensor& from, const Tensor& to, Source at);

}  // namespace tidemark::detail

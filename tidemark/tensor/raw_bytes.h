// Tensors as bytes, for files and datasets. Internal to the library; users have td::constant,
// td::borrow and Tensor::span.
#pragma once

#include <cstddef>

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// A dense, uninitialised tensor: the caller writes it before it is read.
Tensor unwritten(DType dtype, const Shape& shape, Source at);
// A pointer to its elements. The tensor must be dense and not shared.
std::byte* writable_bytes(Tensor& tensor);
// A pointer to its elements if they are contiguous, else null.
const std::byte* dense_bytes(const Tensor& tensor, Source at);
// All elements in row-major order, size_bytes() of them.
void copy_bytes(const Tensor& from, std::byte* to, Source at);

}  // namespace tidemark::detail

// Tensors as bytes, for those who fill or read them whole: files and datasets. Internal to the
// library; users have td::constant, td::borrow and Tensor::span.
#pragma once

#include <cstddef>

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// Dense, and not initialised: whoever makes one writes it before anybody reads.
Tensor unwritten(DType dtype, const Shape& shape, Source at);
// Where its elements lie. The tensor is dense and the caller holds its only handle.
std::byte* writable_bytes(Tensor& tensor);
// Where its elements lie, if one after another; else null.
const std::byte* dense_bytes(const Tensor& tensor, Source at);
// All elements in row-major order, size_bytes() of them.
void copy_bytes(const Tensor& from, std::byte* to, Source at);

}  // namespace tidemark::detail

// Tensors as bytes of a file, and back; internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tidemark/api/tensor.h"
#include "tidemark/io/file.h"

namespace tidemark::io {

// The tensor with its elements one after another: itself, or a copy where it is a strided view.
Tensor in_row_order(const Tensor& tensor, Source at);
// The bytes of such a tensor.
std::span<const std::byte> bytes_of(const Tensor& dense, Source at);

struct StoredTensor {
  DType dtype = DType::f32;
  Shape shape = {};
  int64_t offset = 0;  // Of its bytes in the file. That they are all there has been checked.
  bool big_endian = false;
};
// No copy where the file is mapped and the bytes lie as the elements need it; else read into bytes
// of the tensor's own. Bools are looked at: anything but 0 and 1 is refused.
Tensor stored_tensor(const InputFile& file, const std::shared_ptr<const Mapping>& mapping,
                     const StoredTensor& stored);

// Bytes put down as they come in a stream: the last byte first where the file is big-endian.
void to_host_order(std::span<std::byte> bytes, const StoredTensor& stored);
// `offset` is where the bytes stand, for the error.
void check_bools(std::span<const std::byte> bytes, int64_t offset, const FileCall& call);

}  // namespace tidemark::io

// Conversion between tensors and bytes of a file; internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tidemark/api/tensor.h"
#include "tidemark/io/file.h"

namespace tidemark::io {

// The tensor itself if it is contiguous, else a contiguous copy.
Tensor in_row_order(const Tensor& tensor, Source at);
// The bytes of such a tensor.
std::span<const std::byte> bytes_of(const Tensor& dense, Source at);

struct StoredTensor {
  DType dtype = DType::f32;
  Shape shape = {};
  int64_t offset = 0;  // The position of its bytes in the file, already checked.
  bool big_endian = false;
};
// Without a copy if the file is mapped and the bytes are aligned, else read into the tensor's own
// memory. A bool other than 0 and 1 is refused.
Tensor stored_tensor(const InputFile& file, const std::shared_ptr<const Mapping>& mapping,
                     const StoredTensor& stored);

// Copies bytes from a stream, and swaps them if the file is big-endian.
void to_host_order(std::span<std::byte> bytes, const StoredTensor& stored);
// `offset` is the position of the bytes, for errors.
void check_bools(std::span<const std::byte> bytes, int64_t offset, const FileCall& call);

}  // namespace tidemark::io

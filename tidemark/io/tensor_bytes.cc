#include "tidemark/io/tensor_bytes.h"

#include <algorithm>
#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/types/stored.h"

namespace tidemark::io {

Tensor in_row_order(const Tensor& tensor, Source at) {
  // Merging axes first avoids the copy of views that are contiguous. Files have no gradient.
  return reshape(stop_gradient(tensor, at), {tensor.size()}, at);
}

std::span<const std::byte> bytes_of(const Tensor& dense, Source at) {
  return visit_stored(dense.dtype(), [&]<class T>(T) -> std::span<const std::byte> {
    return std::as_bytes(dense.span<const T>(at));
  });
}

void to_host_order(std::span<std::byte> bytes, const StoredTensor& stored) {
  const auto width = static_cast<size_t>(size_of(part_dtype(stored.dtype)));
  if (!stored.big_endian || width == 1) return;
  for (size_t i = 0; i < bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i),
                 bytes.begin() + static_cast<ptrdiff_t>(i + width));
}

void check_bools(std::span<const std::byte> bytes, int64_t offset, const FileCall& call) {
  const auto wrong =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong == bytes.end()) return;
  call.bad(offset + (wrong - bytes.begin()),
           cat("a bool is ", std::to_integer<int>(*wrong), ", not 0 or 1"),
           "save it as u8, and compare: x != 0");
}

namespace {

Tensor borrowed(const std::shared_ptr<const Mapping>& mapping, const StoredTensor& stored,
                Source at) {
  return visit_stored(stored.dtype, [&]<class T>(T) {
    const auto* const data = reinterpret_cast<const T*>(mapping->data() + stored.offset);
    const std::span<const T> elements(data, static_cast<size_t>(stored.shape.size()));
    // The callback holds the mapping until the last tensor is gone.
    return borrow(elements, stored.shape, [mapping] {}, at);
  });
}

}  // namespace

Tensor stored_tensor(const InputFile& file, const std::shared_ptr<const Mapping>& mapping,
                     const StoredTensor& stored) {
  const Source at = file.call().at;
  const auto check = [&](std::span<const std::byte> bytes) {
    if (stored.dtype == boolean) check_bools(bytes, stored.offset, file.call());
  };
  const int64_t width = size_of(stored.dtype);
  if (mapping != nullptr && !stored.big_endian && stored.offset % width == 0 &&
      stored.shape.size() > 0) {
    check({mapping->data() + stored.offset, static_cast<size_t>(stored.shape.size() * width)});
    return borrowed(mapping, stored, at);
  }
  return from_callback(
      stored.shape, stored.dtype,
      [&](std::span<std::byte> bytes) {
        file.read(stored.offset, bytes);
        to_host_order(bytes, stored);
        check(bytes);
      },
      at);
}

}  // namespace tidemark::io

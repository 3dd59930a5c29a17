#include "tidemark/compile/workspace.h"

#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/device/storage.h"

namespace tidemark::compile {

constinit thread_local WorkspacePart* WorkspacePart::current_ = nullptr;

Workspace::Workspace(int64_t bytes)
    : bytes_(granted_bytes(bytes)), part_(WorkspacePart::current()) {
  if (part_ == nullptr) {
    cell_ = device::allocate(bytes, {.byte_class = ByteClass::workspace});
    data_ = cell_->storage.data;
    return;
  }
  // While preparing, it is an address that is never read, but offsets are added to it.
  data_ = part_->data_ != nullptr ? part_->data_ + part_->taken_ : kNowhere;
  part_->taken_ += bytes_;
  TIDEMARK_CHECK(part_->data_ == nullptr || part_->taken_ <= part_->bytes_, "a step takes ",
                 part_->taken_, " bytes of workspace, planned are ", part_->bytes_);
  part_->most_ = std::max(part_->most_, part_->taken_);
}

void Workspace::give_back() {
  if (cell_ != nullptr) device::release(cell_->storage);
  if (part_ != nullptr) part_->taken_ -= bytes_;
}

ArrayRef dense_layout(const TensorType& type) {
  return {kNowhere, type.dtype, type.shape, contiguous_strides(type.shape)};
}

int64_t Temporary::bytes(DType dtype, const Shape& shape) {
  return granted_bytes(shape.size() * size_of(dtype));
}

Temporary::Temporary(DType dtype, Shape shape) : memory_(shape.size() * size_of(dtype)) {
  ref_.data = memory_.data();
  ref_.dtype = dtype;
  ref_.strides = contiguous_strides(shape);
  ref_.shape = std::move(shape);
}

}  // namespace tidemark::compile

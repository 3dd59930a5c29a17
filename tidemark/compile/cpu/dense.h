// Operands as kernels want them: without gaps, and in one dtype.
#pragma once

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// A dense operand: the operand itself, or a copy.
class Dense {
 public:
  explicit Dense(const ArrayRef& array) : Dense(array, array.dtype) {}
  Dense(const ArrayRef& array, DType dtype) : ref_(array) {
    if (array.is_contiguous() && array.dtype == dtype) return;
    copy_ = Workspace(array.size() * size_of(dtype));
    ref_.data = copy_.data();
    ref_.dtype = dtype;
    ref_.strides = contiguous_strides(array.shape);
    run_copy(array, ref_);
  }
  const ArrayRef& ref() const { return ref_; }
  // The bytes of the copy.
  static int64_t bytes(const ArrayRef& array) { return bytes(array, array.dtype); }
  static int64_t bytes(const ArrayRef& array, DType dtype) {
    const bool is_dense = array.is_contiguous() && array.dtype == dtype;
    return is_dense ? 0 : granted_bytes(array.size() * size_of(dtype));
  }

 private:
  ArrayRef ref_;
  Workspace copy_;
};

}  // namespace tidemark::compile

// A strided array in memory that is owned elsewhere. Kernels, views and the reference interpreter
// work on it.
#pragma once

#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark {

struct ArrayRef {
  std::byte* data = nullptr;  // The element at index 0 of every axis.
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;  // In elements; zero repeats one element, negative walks backwards.

  int64_t rank() const { return shape.rank(); }
  int64_t size() const { return shape.size(); }
  bool is_contiguous() const {
    int64_t expected = 1;
    for (int64_t axis = rank() - 1; axis >= 0; --axis) {
      const int64_t extent = shape[axis];
      if (extent == 0) return true;
      if (extent != 1 && strides[static_cast<size_t>(axis)] != expected) return false;
      expected *= extent;
    }
    return true;
  }
};

// The pairs of a complex array as an array of reals, with one more axis.
inline ArrayRef pairs_of(const ArrayRef& array) {
  ArrayRef pairs{array.data, part_dtype(array.dtype), array.shape, {}};
  pairs.shape.push_back(2);
  for (const int64_t stride : array.strides) pairs.strides.push_back(2 * stride);
  pairs.strides.push_back(1);
  return pairs;
}

// The real (0) or the imaginary (1) parts of a complex array.
inline ArrayRef parts_of(const ArrayRef& array, int which) {
  const DType dtype = part_dtype(array.dtype);
  ArrayRef parts{array.data + which * size_of(dtype), dtype, array.shape, {}};
  for (const int64_t stride : array.strides) parts.strides.push_back(2 * stride);
  return parts;
}

}  // namespace tidemark

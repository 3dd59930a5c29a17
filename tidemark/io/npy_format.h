// The head of an .npy file: what NumPy writes before the elements; internal to io/.
//
// Magic, version, length, and a Python dict as text:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tidemark/io/file.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark::io {

struct NpyHead {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;  // The first axis lies densest.
  Shape shape = {};
  int64_t bytes = 0;       // Of the head itself: where the elements begin.
  int64_t data_bytes = 0;  // Of the elements. That the head says so does not mean they are there.

  // The elements lie in the row-major order of this shape, which is the reverse in Fortran's order.
  Shape stored_shape() const;
};

// As many bytes as tell how long the head is.
inline constexpr int64_t kNpyStartBytes = 12;
// How long the head is, by its start: all of the file where that has fewer bytes than above.
// `file_bytes` is how many there are to read; a longer head is refused.
int64_t npy_head_bytes(std::span<const std::byte> start, int64_t file_bytes, const FileCall& call);
NpyHead parse_npy_head(std::span<const std::byte> head, const FileCall& call);

// With as many blanks that the elements begin at a multiple of 64 bytes.
std::string npy_head(DType dtype, const Shape& shape, const FileCall& call);

}  // namespace tidemark::io

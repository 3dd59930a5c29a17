// The header of an .npy file; internal to io/.
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
  bool fortran_order = false;  // The first axis varies fastest.
  Shape shape = {};
  int64_t bytes = 0;       // The size of the header: the elements follow it.
  int64_t data_bytes = 0;  // Of the elements, according to the header; the file may have fewer.

  // The row-major shape of the elements in the file: the reverse of `shape` in Fortran order.
  Shape stored_shape() const;
};

// The number of bytes that determine the length of the header.
inline constexpr int64_t kNpyStartBytes = 12;
// The length of the header, from its first bytes. A header longer than `file_bytes` is refused.
int64_t npy_head_bytes(std::span<const std::byte> start, int64_t file_bytes, const FileCall& call);
NpyHead parse_npy_head(std::span<const std::byte> head, const FileCall& call);

// Padded with blanks such that the elements begin at a multiple of 64 bytes.
std::string npy_head(DType dtype, const Shape& shape, const FileCall& call);

}  // namespace tidemark::io

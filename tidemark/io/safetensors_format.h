// The header of a safetensors file: eight bytes of length, then JSON; internal to io/.
//
//   {"__metadata__":{"step":"7"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tidemark/io/file.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark::io {

struct SafetensorsEntry {
  std::string name = {};
  DType dtype = DType::f32;
  Shape shape = {};
  int64_t begin = 0, end = 0;  // Counted from the end of the header.
};

struct SafetensorsHead {
  std::vector<SafetensorsEntry> tensors = {};  // In the order of the file.
  std::map<std::string, std::string> metadata = {};
  int64_t bytes = 0;  // The size of the header with its length: the tensors follow it.
};

inline constexpr int64_t kSafetensorsStartBytes = 8;
// The size of the header with its length, from the bytes of the length.
int64_t safetensors_head_bytes(std::span<const std::byte> start, int64_t file_bytes,
                               const FileCall& call);
// Checks that the tensors fill the rest of the file: each byte after the header belongs to one
// tensor.
SafetensorsHead parse_safetensors_head(std::span<const std::byte> head, int64_t file_bytes,
                                       const FileCall& call);

// Assigns offsets by element size, the largest first, then by name, so that all tensors are
// aligned.
void place_tensors(std::vector<SafetensorsEntry>& tensors);
// Padded with blanks such that the tensors begin at a multiple of 64 bytes.
std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const FileCall& call);

}  // namespace tidemark::io

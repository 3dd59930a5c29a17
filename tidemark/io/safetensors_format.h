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
  std::vector<SafetensorsEntry> tensors = {};  // By place.
  std::map<std::string, std::string> metadata = {};
  int64_t bytes = 0;  // Of the header, its length included: where tensors begin.
};

inline constexpr int64_t kSafetensorsStartBytes = 8;
// How long the header is with its length, of which these are the bytes.
int64_t safetensors_head_bytes(std::span<const std::byte> start, int64_t file_bytes,
                               const FileCall& call);
// What is accepted lies in the file: each byte behind the header belongs to one tensor.
SafetensorsHead parse_safetensors_head(std::span<const std::byte> head, int64_t file_bytes,
                                       const FileCall& call);

// Sets where each tensor goes: by the size of its elements, the largest first, then by name, so
// that all are aligned.
void place_tensors(std::vector<SafetensorsEntry>& tensors);
// With as many blanks that the tensors begin at a multiple of 64 bytes.
std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const FileCall& call);

}  // namespace tidemark::io

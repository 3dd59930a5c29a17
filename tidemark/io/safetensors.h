// safetensors: tensors by name in one file, which is mapped. See docs/files.md.
#pragma once

#include <map>
#include <string>

#include "tidemark/api/tensor.h"
#include "tidemark/io/npy.h"

namespace tidemark::io {

// The tensors of a file by name, and its metadata.
struct Safetensors : std::map<std::string, Tensor> {
  std::map<std::string, std::string> metadata = {};
};

struct SafetensorsOptions {
  std::map<std::string, std::string> metadata = {};
};

// Maps the file. Only tensors that are not aligned are copied; files of save_safetensors have none.
Safetensors load_safetensors(const std::string& path, LoadOptions options = {},
                             Source at = Source::here());
// Writes one tensor after another without a copy, except of views that are not dense. The save is
// atomic: if it fails or is killed, the file is unchanged.
void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const SafetensorsOptions& options = {}, Source at = Source::here());

}  // namespace tidemark::io

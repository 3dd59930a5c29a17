// safetensors: tensors by name in one file that is mapped, not read. docs/files.md tells more.
#pragma once

#include <map>
#include <string>

#include "tidemark/api/tensor.h"
#include "tidemark/io/npy.h"

namespace tidemark::io {

// The tensors of a file by name, and what else its writer said.
struct Safetensors : std::map<std::string, Tensor> {
  std::map<std::string, std::string> metadata = {};
};

struct SafetensorsOptions {
  std::map<std::string, std::string> metadata = {};
};

// Mapped: takes no bytes but for tensors that do not lie as their elements need it, which are
// copied. save_safetensors leaves none of these.
Safetensors load_safetensors(const std::string& path, LoadOptions options = {},
                             Source at = Source::here());
// One tensor after another: takes no bytes but for a view that is not dense. Whole or not at all: a
// save that fails, or is killed, leaves the file as it was.
void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const SafetensorsOptions& options = {}, Source at = Source::here());

}  // namespace tidemark::io

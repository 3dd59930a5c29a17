// Reading and writing safetensors files piece by piece: shared by load_safetensors,
// save_safetensors and checkpoints. Internal to io/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/io/file.h"
#include "tidemark/io/safetensors_format.h"
#include "tidemark/io/save.h"
#include "tidemark/io/tensor_bytes.h"

namespace tidemark::io {

class SafetensorsFile {
 public:
  // Mapped, unless a copy was requested.
  SafetensorsFile(FileCall call, bool copy);

  const SafetensorsHead& head() const { return head_; }
  const InputFile& file() const { return file_; }
  const std::shared_ptr<const Mapping>& mapping() const { return mapping_; }
  Tensor tensor(const SafetensorsEntry& entry) const;

 private:
  InputFile file_;
  SafetensorsHead head_;
  std::shared_ptr<const Mapping> mapping_;
};

// The entries have name, dtype and shape. Requests each tensor when it is written, and releases it
// before the next.
void write_safetensors(const FileCall& call, std::vector<SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<Tensor(const std::string& name)>& tensor);

}  // namespace tidemark::io

// A safetensors file open for reading, and one written piece by piece: what load_safetensors,
// save_safetensors and checkpoints share; internal to io/.
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
  // Mapped, unless it is to be copied.
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

// The entries say name, dtype and shape. Asks for each tensor when its turn comes, and lets it go
// before the next.
void write_safetensors(const FileCall& call, std::vector<SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<Tensor(const std::string& name)>& tensor);

}  // namespace tidemark::io

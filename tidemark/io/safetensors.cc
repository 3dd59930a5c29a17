#include "tidemark/io/safetensors.h"

#include <algorithm>
#include <vector>

#include "tidemark/io/safetensors_file.h"

namespace tidemark::io {

SafetensorsFile::SafetensorsFile(FileCall call, bool copy) : file_(std::move(call)) {
  std::vector<std::byte> head(static_cast<size_t>(std::min(kSafetensorsStartBytes, file_.bytes())));
  file_.read(0, head);
  head.resize(static_cast<size_t>(safetensors_head_bytes(head, file_.bytes(), file_.call())));
  file_.read(0, head);
  head_ = parse_safetensors_head(head, file_.bytes(), file_.call());
  if (!copy) mapping_ = file_.map();
  file_.check_size();
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  return stored_tensor(
      file_, mapping_,
      {.dtype = entry.dtype, .shape = entry.shape, .offset = head_.bytes + entry.begin});
}

void write_safetensors(const FileCall& call, std::vector<SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<Tensor(const std::string& name)>& tensor) {
  place_tensors(entries);
  const std::string head = safetensors_head(entries, metadata, call);
  SavedFile file(call);
  file.write(head);
  for (const SafetensorsEntry& entry : entries) {
    const Tensor dense = in_row_order(tensor(entry.name), call.at);
    file.write(bytes_of(dense, call.at));
  }
  file.commit();
}

Safetensors load_safetensors(const std::string& path, LoadOptions options, Source at) {
  const SourceScope scope(at);
  const SafetensorsFile file({"load_safetensors", path, at}, options.copy);
  Safetensors result;
  result.metadata = file.head().metadata;
  for (const SafetensorsEntry& entry : file.head().tensors)
    result.emplace(entry.name, file.tensor(entry));
  return result;
}

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const SafetensorsOptions& options, Source at) {
  const SourceScope scope(at);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({.name = name, .dtype = tensor.dtype(), .shape = tensor.shape()});
  write_safetensors({"save_safetensors", path, at}, std::move(entries), options.metadata,
                    [&](const std::string& name) { return tensors.at(name); });
}

}  // namespace tidemark::io

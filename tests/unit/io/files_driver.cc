// files_driver FROM TO ...: loads each FROM, mapped and copied, which must be the same, and saves
// it as TO, by the ends of the names. For the comparison with other programs: other_programs.py.
#include <iostream>
#include <map>
#include <string>

#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using Tensors = std::map<std::string, td::Tensor>;

Tensors load(const std::string& path, td::io::LoadOptions options) {
  if (path.ends_with(".npy")) return {{"", td::io::load_npy(path, options)}};
  if (path.ends_with(".npz")) return td::io::load_npz(path, options);
  return td::io::load_safetensors(path, options);
}

void save(const std::string& path, const Tensors& tensors) {
  if (path.ends_with(".npy")) return td::io::save_npy(path, tensors.at(""));
  if (path.ends_with(".npz")) return td::io::save_npz(path, tensors);
  td::io::save_safetensors(path, tensors, {.metadata = {{"writer", "files_driver \"é\"\n"}}});
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i + 1 < count; i += 2) {
    const Tensors mapped = load(words[i], {}), copied = load(words[i], {.copy = true});
    for (const auto& [name, tensor] : mapped) {
      if (td::identical(tensor, copied.at(name))) continue;
      std::cerr << words[i] << ": " << name << " differs where it is copied\n";
      return 1;
    }
    save(words[i + 1], mapped);
  }
  return 0;
}

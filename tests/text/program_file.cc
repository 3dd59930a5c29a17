#include "tests/text/program_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tidemark {

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TIDEMARK_PROGRAMS))
    if (entry.path().extension() == ".tm") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string program_path(const std::string& name) { return TIDEMARK_PROGRAMS "/" + name + ".tm"; }

ProgramFile read_program_file(const std::string& name) {
  constexpr std::string_view kMark = "---- after ";
  ProgramFile file;
  std::ifstream in(program_path(name), std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kMark)) {
      file.sections.push_back({line.substr(kMark.size()), ""});
    } else {
      std::string& text = file.sections.empty() ? file.program : file.sections.back().text;
      text += line + '\n';
    }
  }
  return file;
}

}  // namespace tidemark

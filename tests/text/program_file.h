// A program and what passes make of it, as the files of this folder hold them: the program, then
// for each pass a line `---- after PASS` and the program it makes of the one before.
#pragma once

#include <string>
#include <vector>

namespace tidemark {

struct ProgramFile {
  struct Section {
    std::string pass;
    std::string text;
  };
  std::string program;
  std::vector<Section> sections;
};

// All files of this folder, without ".tm", in the order of the alphabet.
std::vector<std::string> program_names();
std::string program_path(const std::string& name);
ProgramFile read_program_file(const std::string& name);

}  // namespace tidemark

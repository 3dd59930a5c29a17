// Programs in files: `tidemark show`, `tidemark plan` and `tidemark run` read them alike.
#pragma once

#include <string>

#include "tidemark/ir/graph.h"

namespace tidemark::tools {

// What stands in a file. Throws UserError where it cannot be read.
std::string read_text(const std::string& path, const char* command);
// Throws UserError: the file cannot be read, or the text breaks a rule.
Graph read_program(const std::string& path, const char* command);

}  // namespace tidemark::tools

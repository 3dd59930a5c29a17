// Programs in files: `tidemark show`, `tidemark plan` and `tidemark run` read them alike.
#pragma once

#include <string>

#include "tidemark/ir/graph.h"

namespace tidemark::tools {

// Throws UserError: the file cannot be read, or the text breaks a rule.
Graph read_program(const std::string& path, const char* command);

}  // namespace tidemark::tools

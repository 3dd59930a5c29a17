// Programs in files: `tidemark show`, `tidemark plan` and `tidemark run` read them alike.
#pragma once

#include <optional>
#include <string>

#include "tidemark/ir/graph.h"

namespace tidemark::tools {

// What stands in a file. Throws UserError where it cannot be read.
std::string read_text(const std::string& path, const char* command);
// Whether a size is left open in the text of a program, and the text with a number in its place: of
// all of them, or of those with a name (`?batch`).
bool has_open_size(const std::string& text, const std::optional<std::string>& name = {});
std::string with_size(const std::string& text, int64_t size,
                      const std::optional<std::string>& name = {});
// Throws UserError: the file cannot be read, or the text breaks a rule.
Graph read_program(const std::string& path, const char* command);

}  // namespace tidemark::tools

#include "tools/program_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/ops/text.h"

namespace tidemark::tools {

std::string read_text(const std::string& path, const char* command) {
  std::ifstream in(path, std::ios::binary);
  TextStream text;
  // A folder opens, and fails at the first byte.
  if (in) in.peek();
  if (!in && !in.eof())
    throw UserError(cat(command, ": cannot read '", path, "': ", std::strerror(errno)));
  text << in.rdbuf();
  return text.str();
}

Graph read_program(const std::string& path, const char* command) {
  return parse_graph(read_text(path, command), path);
}

}  // namespace tidemark::tools

#include "tools/program_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tidemark/base/error.h"
#include "tidemark/ops/text.h"

namespace tidemark::tools {

Graph read_program(const std::string& path, const char* command) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  // A folder opens, and fails at the first byte.
  if (in) in.peek();
  if (!in && !in.eof())
    throw UserError(cat(command, ": cannot read '", path, "': ", std::strerror(errno)));
  text << in.rdbuf();
  return parse_graph(text.str(), path);
}

}  // namespace tidemark::tools

#include "tools/program_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

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

namespace {

// A ? in a comment or in quotes is none.
std::vector<size_t> open_sizes(const std::string& text) {
  std::vector<size_t> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') i = std::min(text.find('\n', i), text.size());
    if (i < text.size() && text[i] == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    if (i < text.size() && text[i] == '?') found.push_back(i);
  }
  return found;
}

}  // namespace

bool has_open_size(const std::string& text) { return !open_sizes(text).empty(); }

std::string with_size(const std::string& text, int64_t size) {
  std::string made;
  size_t begin = 0;
  for (const size_t at : open_sizes(text)) {
    made += cat(std::string_view(text).substr(begin, at - begin), size);
    begin = at + 1;
  }
  return made + text.substr(begin);
}

Graph read_program(const std::string& path, const char* command) {
  return parse_graph(read_text(path, command), path);
}

}  // namespace tidemark::tools

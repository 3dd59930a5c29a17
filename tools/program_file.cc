#include "tools/program_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/ops/text/text.h"

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

struct OpenSize {
  size_t begin = 0, end = 0;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A ? in a comment or in quotes is none.
std::vector<OpenSize> open_sizes(const std::string& text, const std::optional<std::string>& name) {
  std::vector<OpenSize> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') i = std::min(text.find('\n', i), text.size());
    if (i < text.size() && text[i] == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    if (i >= text.size() || text[i] != '?') continue;
    size_t end = i + 1;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view own = std::string_view(text).substr(i + 1, end - i - 1);
    if (!name || own == *name) found.push_back({i, end});
  }
  return found;
}

}  // namespace

bool has_open_size(const std::string& text, const std::optional<std::string>& name) {
  return !open_sizes(text, name).empty();
}

std::string with_size(const std::string& text, int64_t size,
                      const std::optional<std::string>& name) {
  std::string made;
  size_t begin = 0;
  for (const OpenSize& each : open_sizes(text, name)) {
    made += cat(std::string_view(text).substr(begin, each.begin - begin), size);
    begin = each.end;
  }
  return made + text.substr(begin);
}

Graph read_program(const std::string& path, const char* command) {
  return parse_graph(read_text(path, command), path);
}

}  // namespace tidemark::tools

#include "tidemark/api/structure.h"

#include <cstdio>

namespace tidemark::detail {

std::string key_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + '"';
}

std::string key_text(Dim size) { return cat(size); }
std::string key_text(const Shape& shape) { return cat(shape); }
std::string key_text(DType dtype) { return name(dtype); }

std::string float_key_text(long double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*Lg", digits, value);
  return text;
}

std::string Path::text() const {
  const std::string before = parent_ != nullptr ? parent_->text() : std::string();
  switch (kind_) {
    case Kind::root:
      return std::string(name_);
    case Kind::argument:
      return cat(name_, number_);
    case Kind::field:
      return before.empty() ? std::string(name_) : cat(before, ".", name_);
    case Kind::item:
      return cat(before, "[", number_, "]");
    case Kind::key:
      return cat(before, "[", key_text(name_), "]");
  }
  return before;
}

}  // namespace tidemark::detail

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

void Path::add_to(std::string& text) const {
  if (parent_ != nullptr) parent_->add_to(text);
  switch (kind_) {
    case Kind::root:
      text += name_;
      break;
    case Kind::argument:
      (text += name_) += std::to_string(number_);
      break;
    case Kind::field:
      if (!text.empty()) text += '.';
      text += name_;
      break;
    case Kind::item:
      ((text += '[') += std::to_string(number_)) += ']';
      break;
    case Kind::key:
      ((text += '[') += key_text(name_)) += ']';
      break;
  }
}

}  // namespace tidemark::detail

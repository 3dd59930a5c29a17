#include "tidemark/structure/structure.h"

#include <algorithm>
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

std::string key_change(std::string_view before, std::string_view after) {
  const auto differ = std::ranges::mismatch(before, after);
  const auto same = static_cast<size_t>(differ.in1 - before.begin());
  // Neither key can be a prefix of the other: a container is in the key before its parts.
  if (same == before.size() || same == after.size()) return {};
  const size_t line = before.substr(0, same).rfind('\n') + 1;  // npos + 1 is 0.
  const auto rest = [line](std::string_view key) {
    return key.substr(line, key.find('\n', line) - line);
  };
  const std::string_view old_line = rest(before), new_line = rest(after);
  const size_t value = old_line.find(": ") + 2;
  return cat(old_line, " became ", new_line.substr(value));
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

// JSON: quoting strings for output, and a parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark {

// The text as a JSON string, with its quotes. Control characters are escaped, and bytes that are
// not valid UTF-8 become U+FFFD, so any name can be written.
std::string json_quoted(std::string_view text);

// A parsed value. Objects keep the order of their members.
struct JsonValue {
  enum class Kind : uint8_t { null, boolean, number, text, list, object } kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<JsonValue> items;  // Of a list, or the values of an object.
  std::vector<std::string> names;

  // A member of an object, or null where there is none.
  const JsonValue* find(std::string_view name) const;
};

// Throws UserError: "<name>:<line>: a string does not end", with what is wrong.
JsonValue parse_json(std::string_view text, const std::string& name);

}  // namespace tidemark

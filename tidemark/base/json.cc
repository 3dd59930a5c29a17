#include "tidemark/base/json.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"

namespace tidemark {
namespace {

// Parsing recurses, and deeper nesting could overflow the stack.
constexpr int kDeepest = 200;

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  JsonValue whole() {
    JsonValue value = parse(0);
    skip_space();
    if (at_ != text_.size()) fail("unexpected text after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<int64_t>(at_), '\n');
    throw UserError(cat(name_, ":", line + 1, ": ", problem));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  char peek() {
    skip_space();
    if (at_ == text_.size()) fail("unexpected end of the text");
    return text_[at_];
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(cat("expected '", c, "', found '", text_[at_], "'"));
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  JsonValue parse(int depth) {
    if (depth > kDeepest) fail(cat("values are nested deeper than ", kDeepest));
    JsonValue value;
    switch (peek()) {
      case '{':
        parse_object(value, depth);
        break;
      case '[':
        parse_list(value, depth);
        break;
      case '"':
        value.kind = JsonValue::Kind::text;
        value.text = parse_text();
        break;
      default:
        parse_word(value);
    }
    return value;
  }

  void parse_object(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::object;
    ++at_;
    if (take('}')) return;
    do {
      if (peek() != '"') fail("a member has no name");
      value.names.push_back(parse_text());
      expect(':');
      value.items.push_back(parse(depth + 1));
    } while (take(','));
    expect('}');
  }

  void parse_list(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::list;
    ++at_;
    if (take(']')) return;
    do value.items.push_back(parse(depth + 1));
    while (take(','));
    expect(']');
  }

  void parse_word(JsonValue& value) {
    if (take_word("null")) return;
    value.boolean = take_word("true");
    if (value.boolean || take_word("false")) {
      value.kind = JsonValue::Kind::boolean;
      return;
    }
    const char* const begin = text_.data() + at_;
    const bool may_begin = *begin == '-' || (*begin >= '0' && *begin <= '9');
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value.number);
    if (!may_begin || error != std::errc()) fail("expected a value");
    value.kind = JsonValue::Kind::number;
    at_ += static_cast<size_t>(end - begin);
  }

  std::string parse_text() {
    std::string out;
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) fail("a string does not end");
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail("a string has a control character in it");
      if (c == '\\')
        parse_escape(out);
      else
        out += c;
    }
    ++at_;
    return out;
  }

  void parse_escape(std::string& out) {
    constexpr std::string_view written = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (++at_ >= text_.size()) fail("a string does not end");
    if (const size_t which = written.find(text_[at_]); which != written.npos) {
      out += meant[which];
      return;
    }
    if (text_[at_] != 'u') fail(cat("'\\", text_[at_], "' is not an escape sequence"));
    uint32_t character = parse_hex();
    const bool is_pair =
        character >= 0xD800 && character < 0xDC00 && text_.substr(at_ + 1).starts_with("\\u");
    if (is_pair) {
      at_ += 2;
      character = 0x10000 + ((character - 0xD800) << 10) + ((parse_hex() - 0xDC00) & 0x3FF);
    }
    append_utf8(out, character >= 0xD800 && character < 0xE000 ? 0xFFFD : character);
  }

  // Reads the four digits behind `at_`, and stops at the last of them.
  uint32_t parse_hex() {
    uint32_t number = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4)
      fail("\\u needs four hexadecimal digits");
    at_ += 4;
    return number;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t bytes = utf8_character_bytes(text.substr(i));
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else if (bytes == 0) {
      append_utf8(out, 0xFFFD);
    } else {
      out.append(text.substr(i, bytes));
    }
    i += std::max<size_t>(bytes, 1);
  }
  return out + '"';
}

const JsonValue* JsonValue::find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return &items[i];
  return nullptr;
}

JsonValue parse_json(std::string_view text, const std::string& name) {
  return Parser(text, name).whole();
}

}  // namespace tidemark

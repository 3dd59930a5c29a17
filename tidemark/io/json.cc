#include "tidemark/io/json.h"

#include <charconv>

namespace tidemark::io {
namespace {

void add_utf8(std::string& to, uint32_t code) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

// The bytes of the character that begins here; 0 where none does.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than needed, halves of pairs, and beyond the last character.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return bytes;
}

}  // namespace

size_t find_not_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

void JsonReader::bad(const std::string& problem, std::string_view remedy) const {
  call_.bad(offset(), problem, remedy);
}

void JsonReader::skip_blanks() {
  while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\t' ||
                                  text_[next_] == '\n' || text_[next_] == '\r'))
    ++next_;
}

bool JsonReader::take(char c) {
  skip_blanks();
  if (next_ == text_.size() || text_[next_] != c) return false;
  ++next_;
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) bad(cat("the header's JSON needs '", c, "' here"));
}

bool JsonReader::more(bool& first, char end) {
  if (take(end)) return false;
  if (!first) expect(',');
  first = false;
  return true;
}

void JsonReader::expect_end() {
  skip_blanks();
  if (next_ != text_.size()) bad("the header goes on behind its JSON");
}

std::string JsonReader::string() {
  skip_blanks();
  if (peek() != '"') bad("the header's JSON needs a string here");
  ++next_;
  std::string result;
  while (true) {
    const size_t end = text_.find_first_of("\"\\", next_);
    if (end == std::string_view::npos) bad("a string of the header does not end");
    const std::string_view plain = text_.substr(next_, end - next_);
    for (size_t i = 0; i < plain.size(); ++i)
      if (static_cast<unsigned char>(plain[i]) < 0x20)
        call_.bad(offset() + static_cast<int64_t>(i), "a string of the header has a control byte");
    if (const size_t wrong = find_not_utf8(plain); wrong != std::string_view::npos)
      call_.bad(offset() + static_cast<int64_t>(wrong), "a string of the header is no UTF-8");
    result += plain;
    next_ = end + 1;
    if (text_[end] == '"') return result;
    add_escape(result);
  }
}

void JsonReader::add_escape(std::string& to) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const char c = peek();
  const size_t known = c == '\0' ? std::string_view::npos : kNames.find(c);
  if (known != std::string_view::npos) {
    to += kMeant[known];
    ++next_;
    return;
  }
  if (c != 'u') bad("a string of the header has an escape that JSON does not know");
  ++next_;
  uint32_t code = four_digits();
  if (code >= 0xdc00 && code < 0xe000) bad("a string of the header has half of a pair");
  if (code >= 0xd800 && code < 0xdc00) {
    if (text_.substr(next_, 2) != "\\u") bad("a string of the header has half of a pair");
    next_ += 2;
    const uint32_t low = four_digits();
    if (low < 0xdc00 || low >= 0xe000) bad("a string of the header has half of a pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  add_utf8(to, code);
}

uint32_t JsonReader::four_digits() {
  uint32_t code = 0;
  const std::string_view digits = text_.substr(next_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4)
    bad("a string of the header has an escape without four digits");
  next_ += 4;
  return code;
}

int64_t JsonReader::number() {
  skip_blanks();
  int64_t value = 0;
  const char* const begin = text_.data() + next_;
  const bool digit = peek() >= '0' && peek() <= '9';
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (!digit) bad("a size or an offset is no whole number");
  if (error == std::errc::result_out_of_range) bad("a size or an offset does not fit 63 bits");
  if (*begin == '0' && end - begin > 1) bad("a number of the header begins with 0");
  next_ += static_cast<size_t>(end - begin);
  if (peek() == '.' || peek() == 'e' || peek() == 'E')
    bad("a size or an offset is no whole number");
  return value;
}

std::string json_string(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += cat("\\u00", c >> 4, kHex[c & 15]);
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace tidemark::io

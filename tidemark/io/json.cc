#include "tidemark/io/json.h"

#include <charconv>

#include "tidemark/base/utf8.h"

namespace tidemark::io {

size_t find_not_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_character_bytes(text.substr(at));
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
  if (next_ != text_.size()) bad("unexpected text after the header's JSON");
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
      call_.bad(offset() + static_cast<int64_t>(wrong),
                "a string of the header is not valid UTF-8");
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
  if (c != 'u') bad("a string of the header has an unknown escape sequence");
  ++next_;
  uint32_t code = four_digits();
  if (code >= 0xdc00 && code < 0xe000) bad("a string of the header has an unpaired surrogate");
  if (code >= 0xd800 && code < 0xdc00) {
    if (text_.substr(next_, 2) != "\\u") bad("a string of the header has an unpaired surrogate");
    next_ += 2;
    const uint32_t low = four_digits();
    if (low < 0xdc00 || low >= 0xe000) bad("a string of the header has an unpaired surrogate");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(to, code);
}

uint32_t JsonReader::four_digits() {
  uint32_t code = 0;
  const std::string_view digits = text_.substr(next_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4)
    bad("a string of the header has a \\u escape without four hexadecimal digits");
  next_ += 4;
  return code;
}

int64_t JsonReader::number() {
  skip_blanks();
  int64_t value = 0;
  const char* const begin = text_.data() + next_;
  const bool digit = peek() >= '0' && peek() <= '9';
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (!digit) bad("a size or an offset is not a whole number");
  if (error == std::errc::result_out_of_range) bad("a size or an offset does not fit 63 bits");
  if (*begin == '0' && end - begin > 1) bad("a number of the header has a leading 0");
  next_ += static_cast<size_t>(end - begin);
  if (peek() == '.' || peek() == 'e' || peek() == 'E')
    bad("a size or an offset is not a whole number");
  return value;
}

}  // namespace tidemark::io

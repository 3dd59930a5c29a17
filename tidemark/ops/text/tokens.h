// The lexer of the text form of programs. Used by its printer and its parser only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

struct Token {
  // A `mark` is one character; `bad` is a byte that cannot begin a token.
  enum Kind : uint8_t { end, name, value, number, string, mark, bad };
  Kind kind = end;
  std::string_view text;  // As in the text: values with their %, strings with their quotes.
  int64_t line = 1;
  int64_t column = 1;  // In bytes.

  bool is(std::string_view wanted) const {
    return (kind == mark || kind == name) && text == wanted;
  }
};

// Splits a text into tokens; skips blanks, line ends and comments (from # on).
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}
  Token next();

 private:
  void skip_blanks();
  size_t find_end(Token::Kind& kind) const;

  std::string_view text_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  int64_t line_ = 1;
};

// A token for an error message: shortened, with unprintable bytes escaped.
std::string shown(const Token& token);

// Whether a text is one token of the kind `name`.
bool is_name(std::string_view text);

// "with \"quotes\"": unprintable bytes are written \xNN, and kOperandHere \%. `unquoted` is the
// inverse; false if an escape is unknown.
std::string quoted(std::span<const int64_t> codes);
bool unquoted(std::string_view text, std::vector<int64_t>& codes);

}  // namespace tidemark

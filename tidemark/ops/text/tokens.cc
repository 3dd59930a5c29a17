#include "tidemark/ops/text/tokens.h"

#include <charconv>

#include "tidemark/ops/effect.h"

namespace tidemark {
namespace {

// Not std::isdigit, which depends on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

}  // namespace

void Tokens::skip_blanks() {
  bool comment = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') {
      comment = false;
      ++line_;
      line_begin_ = at_ + 1;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

size_t Tokens::find_end(Token::Kind& kind) const {
  size_t end = at_ + 1;
  const auto skip_words = [&] {
    while (end < text_.size() && is_word(text_[end])) ++end;
    return end;
  };
  const char first = text_[at_];
  if (is_letter(first)) {
    kind = Token::name;
    return skip_words();
  }
  if (first == '%') {
    skip_words();
    kind = end > at_ + 1 ? Token::value : Token::bad;
    return end;
  }
  if (is_digit(first) || first == '-') {
    kind = Token::number;
    // "1e-05" and "1e+20": a sign belongs to the exponent before it.
    const auto goes_on = [&] {
      const char c = text_[end], before = text_[end - 1];
      return is_word(c) || c == '.' || ((c == '-' || c == '+') && (before == 'e' || before == 'E'));
    };
    while (end < text_.size() && goes_on()) ++end;
    return end;
  }
  if (first == '"') {
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
    }
    const bool closed = end < text_.size() && text_[end] == '"';
    kind = closed ? Token::string : Token::bad;
    return closed ? end + 1 : end;
  }
  constexpr std::string_view kMarks = "(){}[],:=?";
  kind = kMarks.find(first) != std::string_view::npos ? Token::mark : Token::bad;
  return end;
}

Token Tokens::next() {
  skip_blanks();
  Token token;
  token.line = line_;
  token.column = static_cast<int64_t>(at_ - line_begin_) + 1;
  if (at_ == text_.size()) return token;
  const size_t end = find_end(token.kind);
  token.text = text_.substr(at_, end - at_);
  at_ = end;
  return token;
}

std::string shown(const Token& token) {
  constexpr size_t kShown = 32;
  if (token.kind == Token::end) return "the end of the file";
  std::string text(token.text.substr(0, kShown));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (token.text.size() > kShown) text += "...";
  return "'" + text + "'";
}

bool is_name(std::string_view text) {
  Tokens tokens(text);
  const Token first = tokens.next();
  return first.kind == Token::name && first.text.size() == text.size();
}

std::string quoted(std::span<const int64_t> codes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "\"";
  for (const int64_t code : codes) {
    const auto byte = static_cast<unsigned char>(code);
    if (code == ops::kOperandHere) {
      text += "\\%";
    } else if (code == '"' || code == '\\') {
      (text += '\\') += static_cast<char>(byte);
    } else if (code >= ' ' && code <= '~') {
      text += static_cast<char>(byte);
    } else {
      ((text += "\\x") += kDigits[byte >> 4]) += kDigits[byte & 15];
    }
  }
  return text += '"';
}

bool unquoted(std::string_view text, std::vector<int64_t>& codes) {
  codes.clear();
  const std::string_view inside = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      codes.push_back(static_cast<unsigned char>(inside[i]));
      continue;
    }
    const char escape = inside[++i];  // There is one: the last quote is not escaped.
    if (escape == '"' || escape == '\\') {
      codes.push_back(escape);
    } else if (escape == '%') {
      codes.push_back(ops::kOperandHere);
    } else {
      int64_t byte = 0;
      const std::string_view digits = inside.substr(i + 1, 2);
      const char* begin = digits.data();
      const char* end = begin + digits.size();
      const auto [stop, error] = std::from_chars(begin, end, byte, 16);
      if (escape != 'x' || digits.size() != 2 || error != std::errc() || stop != end || byte < 0)
        return false;
      codes.push_back(byte);
      i += 2;
    }
  }
  return true;
}

}  // namespace tidemark

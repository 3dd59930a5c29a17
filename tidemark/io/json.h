// A strict pull parser for the JSON in the header of a safetensors file; internal to io/.
//
// It builds no tree and does not recurse: the caller says which token must come next, so that
// hostile input cannot exhaust memory or stack. (base/json.h parses any JSON into a tree, with
// numbers as doubles; offsets here have 63 bits, and errors name the byte.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/io/file.h"

namespace tidemark::io {

class JsonReader {
 public:
  // `offset` is the position of the text in the file, for errors.
  JsonReader(std::string_view text, int64_t offset, const FileCall& call)
      : text_(text), offset_(offset), call_(call) {}

  // Skips blanks, and consumes the next character if it is this one.
  bool take(char c);
  void expect(char c);
  // In an object or array that `begin` opened: whether another part follows. Consumes commas and
  // the end. `first` is true before the first part and is set to false.
  bool more(bool& first, char end);
  // A string, its escapes replaced, in UTF-8.
  std::string string();
  // A whole number that is not negative: digits alone.
  int64_t number();
  // Requires that only blanks are left.
  void expect_end();

  [[noreturn]] void bad(const std::string& problem, std::string_view remedy = {}) const;
  // The position in the file.
  int64_t offset() const { return offset_ + static_cast<int64_t>(next_); }

 private:
  void skip_blanks();
  char peek() const { return next_ < text_.size() ? text_[next_] : '\0'; }
  void add_escape(std::string& to);
  uint32_t four_digits();

  std::string_view text_;
  int64_t offset_;
  const FileCall& call_;
  size_t next_ = 0;
};

// The position of the first byte that is not valid UTF-8; npos if there is none.
size_t find_not_utf8(std::string_view text);

}  // namespace tidemark::io

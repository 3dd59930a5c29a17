// As much of JSON as the header of a safetensors file needs, read strictly and one token after
// another; internal to io/.
//
// No tree is built and nothing recurses: who reads says what must come next, so that neither deep
// nesting nor a hostile number takes memory or stack. (base/json.h reads any JSON into a tree, with
// numbers as doubles; offsets here have 63 bits, and errors name the byte.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/io/file.h"

namespace tidemark::io {

class JsonReader {
 public:
  // The text stands at `offset` of the file, for errors.
  JsonReader(std::string_view text, int64_t offset, const FileCall& call)
      : text_(text), offset_(offset), call_(call) {}

  // Whether this character comes next; then it is behind us. Blanks before it are passed over.
  bool take(char c);
  void expect(char c);
  // In an object or array that `begin` opened: whether another part follows. Commas and the end are
  // passed over. `first` is true before the first part and is set to false.
  bool more(bool& first, char end);
  // A string, its escapes replaced, in UTF-8.
  std::string string();
  // A whole number that is not negative: digits alone.
  int64_t number();
  // Only blanks are left.
  void expect_end();

  [[noreturn]] void bad(const std::string& problem, std::string_view remedy = {}) const;
  // Where we are in the file.
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

// The place of the first byte that is no UTF-8; npos where all is.
size_t find_not_utf8(std::string_view text);

}  // namespace tidemark::io

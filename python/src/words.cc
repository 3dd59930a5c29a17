#include "words.h"

#include <cctype>
#include <vector>

namespace tidemark::python {
namespace {

// What has another form in Python, longer phrases before their parts.
struct Phrase {
  std::string_view cpp, python;
};
constexpr Phrase kPhrases[] = {
    {"const auto pause = tape.stop_recording()", "with tape.stop_recording():"},
    {"td::Padding::same", "padding=\"same\""},
    {"td::Unconnected::zero", "\"zero\""},
    {"td::all for the other axes", "`:` for the other axes"},
    {"td::Slice{.end = n}", ":n"},
    {"td::Static<int>", "td.Static"},
    {"td::newaxis", "None"},
    {"td::ellipsis", "`...`"},
    {"{{td::open}}", "[(None,)]"},
    {"td::open", "None"},
    {"pass std::move(x)", "pass td.donate(x)"},
    {"(x = {})", "(del x)"},
    {"(y = {})", "(del y)"},
    {".shape()", ".shape"},
    {"to_vector", "tolist()"},
    {"std::move(a)", "a"},
    {"leave out .budget", "leave out budget"},
    {"shuffle: .buffer", "shuffle: buffer"},
    {": .shuffle(", ": shuffle("},
};

std::string with_phrases(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const Phrase* found = nullptr;
    for (const Phrase& phrase : kPhrases)
      if (found == nullptr && text.substr(i, phrase.cpp.size()) == phrase.cpp) found = &phrase;
    if (found == nullptr) {
      result += text[i++];
    } else {
      result += found->python;
      i += found->cpp.size();
    }
  }
  return result;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_open(char c) { return c == '(' || c == '[' || c == '{'; }
bool is_close(char c) { return c == ')' || c == ']' || c == '}'; }

// The position of the bracket that closes the one at `begin`; npos if there is none.
size_t closing(std::string_view text, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    depth += is_open(text[i]) ? 1 : is_close(text[i]) ? -1 : 0;
    if (depth == 0) return i;
  }
  return std::string_view::npos;
}

// The parts between commas that stand in no inner brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
      while (begin < list.size() && list[begin] == ' ') ++begin;
    } else {
      depth += is_open(list[i]) ? 1 : is_close(list[i]) ? -1 : 0;
    }
  }
  return parts;
}

// One pass over a text. In code, which stands in calls and options, braces are lists and words may
// be literals; in prose braces stay, unless they hold options.
class Rewriter {
 public:
  Rewriter(std::string_view text, bool is_code) : text_(text), is_code_(is_code) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '{' && take_braces()) continue;
      if (is_word(text_[at_]))
        take_word();
      else if (starts_option())
        take_option();
      else
        result_ += text_[at_++];
    }
    return std::move(result_);
  }

 private:
  static std::string code(std::string_view text) { return Rewriter(text, true).run(); }

  // {.name = value} or, in code, {1, 2}; false if the braces are the text's own.
  bool take_braces() {
    const size_t end = closing(text_, at_);
    if (end == std::string_view::npos) return false;
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    const bool has_options = inner.size() > 1 && inner[0] == '.' && is_word(inner[1]);
    const bool is_subscript = !result_.empty() && result_.back() == '[';
    if (!has_options && !is_subscript && !is_code_) return false;
    at_ = end + 1;
    result_ += has_options ? options(inner) : listed(inner);
    return true;
  }

  static std::string options(std::string_view inner) {
    std::string written;
    for (const std::string_view part : parts_of(inner))
      written += (written.empty() ? "" : ", ") + code(part);
    return written;
  }

  // Sizes are a tuple, values a list; pairs of texts, which rename something, a dict.
  std::string listed(std::string_view inner) const {
    const std::vector<std::string_view> parts = parts_of(inner);
    const bool is_dict = !inner.empty() && inner[0] == '{';
    const bool is_list = inner.find('(') != std::string_view::npos;
    std::string written;
    for (const std::string_view part : parts) {
      written += written.empty() ? "" : ", ";
      if (is_dict) {
        const auto pair = parts_of(part.substr(1, part.size() - 2));
        written += code(pair[0]) + ": " + (pair.size() > 1 ? code(pair[1]) : std::string());
      } else {
        written += code(part);
      }
    }
    if (!result_.empty() && result_.back() == '[') return written;  // A subscript.
    if (is_dict) return "{" + written + "}";
    if (is_list) return "[" + written + "]";
    return "(" + written + (parts.size() == 1 && written != "..." ? ",)" : ")");
  }

  // ".save = " as in {.save = ...}, also where no braces stand around it.
  bool starts_option() const {
    if (text_[at_] != '.' || (at_ > 0 && text_[at_ - 1] != ' ')) return false;
    size_t end = at_ + 1;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return end > at_ + 1 && text_.substr(end, 3) == " = ";
  }
  void take_option() {
    for (++at_; is_word(text_[at_]); ++at_) result_ += text_[at_];
    result_ += '=';
    at_ += 3;
  }

  // A word, and the names after it: td::random::normal. A call of one of them holds code.
  void take_word() {
    const size_t begin = at_;
    bool is_path = false;
    while (at_ < text_.size()) {
      if (is_word(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "::" && at_ + 2 < text_.size() &&
                 is_word(text_[at_ + 2])) {
        is_path = true;
        at_ += 2;
      } else {
        break;
      }
    }
    add_word(text_.substr(begin, at_ - begin));
    if (!is_path || at_ == text_.size() || text_[at_] != '(') return;
    const size_t end = closing(text_, at_);
    if (end == std::string_view::npos) return;
    result_ += '(' + code(text_.substr(at_ + 1, end - at_ - 1)) + ')';
    at_ = end + 1;
  }

  void add_word(std::string_view word) {
    if (is_code_ && (word == "true" || word == "false")) {
      result_ += word == "true" ? "True" : "False";
      return;
    }
    const size_t unit = word.rfind("_");
    if (word.ends_with("_B") && std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      result_.append(word.substr(0, unit));
      return;
    }
    if (unit != std::string_view::npos && unit + 4 == word.size() && word.ends_with("iB") &&
        std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      result_.append(word.substr(0, unit)).append(" * td.").append(word.substr(unit + 1));
      return;
    }
    for (size_t i = 0; i < word.size(); ++i) {
      result_ += word[i] == ':' ? '.' : word[i];
      i += word[i] == ':' ? 1 : 0;
    }
  }

  std::string_view text_;
  bool is_code_;
  size_t at_ = 0;
  std::string result_;
};

}  // namespace

std::string in_python(std::string_view text) { return Rewriter(with_phrases(text), false).run(); }

}  // namespace tidemark::python

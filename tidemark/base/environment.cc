#include "tidemark/base/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

// "llvm, tile or checked"
std::string listed(std::span<const std::string_view> choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

[[noreturn]] void refuse(const char* name, std::string_view text, const std::string& allowed) {
  throw UserError(cat(name, " is '", text, "', which is not ", allowed), Source::none(),
                  cat("set it to ", allowed, ", or unset it"));
}

}  // namespace

const char* environment(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

int environment_number(const char* name, int least, int most, int otherwise) {
  const char* const set = environment(name);
  if (set == nullptr) return otherwise;
  const std::string_view text(set);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && number >= least && number <= most) return number;
  refuse(name, text, cat("a number from ", least, " to ", most));
}

int environment_choice(const char* name, std::span<const std::string_view> choices) {
  const char* const text = environment(name);
  if (text == nullptr) return -1;
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) refuse(name, text, listed(choices));
  return static_cast<int>(found - choices.begin());
}

bool environment_switch(const char* name, bool otherwise) {
  constexpr std::string_view kChoices[] = {"0", "1"};
  const int chosen = environment_choice(name, kChoices);
  return chosen < 0 ? otherwise : chosen == 1;
}

}  // namespace tidemark

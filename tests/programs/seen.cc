#include "tests/programs/seen.h"

namespace tidemark::testing {
namespace {

// What a check says, without its line: compiled code names the call before it.
std::string without_line(std::string error) {
  const size_t begin = error.find("\n  at ");
  if (begin != std::string::npos) error.erase(begin, error.find('\n', begin + 1) - begin);
  return error;
}

}  // namespace

Seen seen(const std::function<std::vector<Tensor>()>& run) {
  Seen all;
  set_print_sink([&](std::string_view line) { all.lines += line; });
  try {
    all.results = run();
  } catch (const UserError& error) {
    all.error = error.what();
  }
  set_print_sink({});
  return all;
}

bool is_effect(const std::string& error) {
  return error.starts_with("check_numerics") || error.starts_with("assert_that");
}

std::string difference(const Seen& expected, const Seen& got) {
  if (expected.error.empty() != got.error.empty())
    return cat("error: '", expected.error, "' became '", got.error, "'");
  // Sizes in the text of a type error may be open ones.
  if (is_effect(expected.error) && without_line(expected.error) != without_line(got.error))
    return cat("error: '", expected.error, "' became '", got.error, "'");
  if (expected.error.empty() || is_effect(expected.error)) {
    if (expected.lines != got.lines)
      return cat("lines: the lines\n", expected.lines, "became\n", got.lines);
  }
  for (size_t i = 0; i < got.results.size(); ++i) {
    if (!identical(expected.results[i], got.results[i]))
      return cat("bits: result ", i, " ", expected.results[i], " became ", got.results[i]);
  }
  return "";
}

}  // namespace tidemark::testing

#include "tidemark/base/error.h"

#include <cstring>

namespace tidemark {
namespace {

std::string user_text(const std::string& problem, Source at, std::string_view remedy) {
  std::string text = problem;
  const Source line = at.resolve();
  if (line.known()) text += "\n  at " + line.text();
  // Inside a composite the line of ours that found it follows: it tells which step it was.
  const bool inner = at.known() && (at.line != line.line || std::strcmp(at.file, line.file) != 0);
  if (inner) text += " [" + at.text() + "]";
  if (line.known() && line.layer != 0) text += ", in " + line.layer_path();
  if (!remedy.empty()) text.append("\n  ").append(remedy);
  return text;
}

}  // namespace

Error::Error(const std::string& message, Source at)
    : std::runtime_error(message), at_(at.resolve()) {}

UserError::UserError(const std::string& problem, Source at, std::string_view remedy)
    : Error(user_text(problem, at, remedy), at) {}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(cat(file, ":", line, ": ", condition, " does not hold: ", message,
                          "\n  this is a bug in Tidemark, please report it"));
}

}  // namespace tidemark

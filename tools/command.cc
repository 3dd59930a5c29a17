#include "tools/command.h"

#include "tidemark/base/error.h"

namespace tidemark::tools {

void usage_error(const char* command, const std::string& problem) {
  throw UserError(cat(command, ": ", problem), Source::none(),
                  cat("tidemark ", command, " --help tells more"));
}

void take_file(const char* command, const std::string& argument, std::string& file) {
  if (argument.starts_with("--")) usage_error(command, "there is no option '" + argument + "'");
  if (!file.empty())
    usage_error(command, "one file at a time: '" + file + "' and '" + argument + "'");
  file = argument;
}

void need_file(const char* command, const std::string& file) {
  if (file.empty()) usage_error(command, "which file?");
}

}  // namespace tidemark::tools

// The subcommands of `tidemark`. Each takes the arguments after its own name and returns the exit
// code: 0 done, 1 the answer is no, 2 bad input or usage.
#pragma once

#include <span>
#include <string>

namespace tidemark::tools {

using Arguments = std::span<const std::string>;

struct Command {
  const char* name;
  const char* brief;  // One line for `tidemark --help`.
  int (*run)(Arguments arguments);
};

int tour_command(Arguments arguments);

// "pack: which file?", and that --help tells more.
[[noreturn]] void usage_error(const char* command, const std::string& problem);
// An argument that is none of a command's options: the one file it reads.
void take_file(const char* command, const std::string& argument, std::string& file);
void need_file(const char* command, const std::string& file);

}  // namespace tidemark::tools

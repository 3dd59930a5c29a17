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

}  // namespace tidemark::tools

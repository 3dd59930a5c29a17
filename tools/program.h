// `tidemark plan` and `tidemark run`: what a program needs, and what it gives.
#pragma once

#include <string>

#include "tidemark/api/plan.h"
#include "tools/command.h"

namespace tidemark::tools {

// The plan of a program, with its budgets. Errors name the path.
Plan plan_of_text(const std::string& text, const std::string& path, bool fuse);
// The plan of the program in a file.
Plan plan_of_file(const std::string& path, const char* command, bool fuse);

int plan_command(Arguments arguments);
int run_command(Arguments arguments);

}  // namespace tidemark::tools

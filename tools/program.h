// `tidemark plan` and `tidemark run`: what a program needs, and what it gives.
#pragma once

#include "tools/command.h"

namespace tidemark::tools {

int plan_command(Arguments arguments);
int run_command(Arguments arguments);

}  // namespace tidemark::tools

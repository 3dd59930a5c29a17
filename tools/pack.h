// `tidemark pack`: the planner as a command.
#pragma once

#include "tools/command.h"

namespace tidemark::tools {

int pack_command(Arguments arguments);

}  // namespace tidemark::tools

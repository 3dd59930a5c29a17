// `tidemark show`: a program, and what passes make of it.
#pragma once

#include "tools/command.h"

namespace tidemark::tools {

int show_command(Arguments arguments);

}  // namespace tidemark::tools

// `tidemark report`: plans and runs as a page.
#pragma once

#include "tools/command.h"

namespace tidemark::tools {

int report_command(Arguments arguments);

}  // namespace tidemark::tools

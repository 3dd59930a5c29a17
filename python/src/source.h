// The user's Python line, for everything that takes a Source.
#pragma once

#include "tidemark/base/source.h"

namespace tidemark::python {

// The line of the innermost Python frame whose code is not part of this package. Needs the GIL. Its
// texts live as long as the process.
Source calling_line();

// A line that is not being run. Needs the GIL.
Source line_at(const char* file, unsigned line, const char* function);

}  // namespace tidemark::python

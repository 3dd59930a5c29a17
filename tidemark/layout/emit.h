// The second half of compiling: tasks and kernels for a program that is laid out.
#pragma once

#include "tidemark/layout/layout.h"

namespace tidemark::compile {

// Makes the tasks and their kernels. Where something fails the layout is as it was.
void emit(Layout& layout);

}  // namespace tidemark::compile

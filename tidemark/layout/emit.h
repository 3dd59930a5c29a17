// The second half of compilation: makes the tasks and kernels of a program that has been laid out.
#pragma once

#include "tidemark/layout/layout.h"

namespace tidemark::compile {

// Makes the tasks and their kernels. If this fails, the layout is unchanged.
void emit(Layout& layout);

}  // namespace tidemark::compile

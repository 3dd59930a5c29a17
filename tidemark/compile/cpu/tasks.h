// One op as a task of the CPU: the code of eager execution, on memory that the plan has placed.
#pragma once

#include "tidemark/compile/backend.h"

namespace tidemark::compile {

TaskPlan op_task(const OpWork& work);
// The bytes of workspace it needs.
int64_t op_workspace(const OpWork& work);

}  // namespace tidemark::compile

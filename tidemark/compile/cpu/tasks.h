// One op as a task of the CPU: it runs as eager code does, on memory that a plan has placed.
#pragma once

#include "tidemark/compile/backend.h"

namespace tidemark::compile {

TaskPlan op_task(const OpWork& work);
// What it takes while it runs.
int64_t op_workspace(const OpWork& work);

}  // namespace tidemark::compile

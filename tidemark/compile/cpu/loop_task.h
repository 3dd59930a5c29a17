// A loop on a few numbers as a task of the CPU: one kernel for all of its trips.
#pragma once

#include "tidemark/compile/backend.h"
#include "tidemark/compile/scalar_loop.h"

namespace tidemark::compile {

TaskPlan loop_task(const ScalarLoop& loop, int64_t trips, bool counted);

}  // namespace tidemark::compile

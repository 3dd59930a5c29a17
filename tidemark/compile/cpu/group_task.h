// A fusion group as a task of the CPU: its kernels, cut for threads and caches.
#pragma once

#include "tidemark/compile/backend.h"
#include "tidemark/compile/group.h"

namespace tidemark::compile {

TaskPlan group_task(GroupWork work);

}  // namespace tidemark::compile

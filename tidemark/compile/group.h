// A group as one step: nodes that passes/fuse.cc put together, run as one loop nest.
#pragma once

#include <optional>
#include <span>

#include "tidemark/compile/kernels.h"
#include "tidemark/compile/tasks.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// Places are layouts, of any strides; where the data lie is told at the run, inputs first, then
// results. `shared`: steps around it are on several threads and read or make the same.
TaskPlan group_task(passes::Scheduler& scheduler, const Node& group,
                    std::span<const ArrayRef> inputs, std::span<const ArrayRef> results,
                    bool shared = false);

// One more axis around a group: the trips of a map, and how many bytes each place moves from one to
// the next, inputs first, then results.
struct TripAxis {
  int64_t trips = 1;
  std::vector<int64_t> strides;
};

// All trips as one kernel; `inputs` and `results` are those of the first. Nothing where the trips
// would need copies of their operands, or numbers counted over several axes.
std::optional<TaskPlan> mapped_group_task(passes::Scheduler& scheduler, const Node& group,
                                          std::span<const ArrayRef> inputs,
                                          std::span<const ArrayRef> results, const TripAxis& trips);

// Whether a result may be computed in the bytes of an input, both dense: whoever reads the input
// does so at the element being written, and not after.
bool may_overwrite(passes::Scheduler& scheduler, const Node& group, int32_t input, int32_t result);

}  // namespace tidemark::compile

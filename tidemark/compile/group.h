// A group as one step: nodes that passes/fuse.cc put together, run as one loop nest.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tidemark/compile/geometry.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// A copy to or from a dense place in the workspace, for an operand whose own layout the domain
// cannot see.
struct DenseCopy {
  int32_t operand = 0;
  ArrayRef layout, dense;
  int64_t offset = 0;
};

// A group as a backend gets it: what is computed, over which axes, and where its values lie.
// group_nest.h writes the schedule as loop nests.
struct GroupWork {
  const Graph& graph;
  const passes::Schedule& schedule;  // The scheduler holds it, until all groups are planned.
  LaunchAxes axes = {};
  std::vector<BufferPlace> loads = {},
                           results = {};  // Of the schedule's loads; of the group's results.
  std::vector<DenseCopy> copies_in = {}, copies_out = {};
  int64_t copy_bytes = 0;  // What these take at the beginning of the workspace.
  int threads = 1;
  bool shared = false;  // Steps around it are on several threads and read or make the same.
};

// Places are layouts, of any strides; where the data lie is told to the task, inputs first, then
// results.
GroupWork group_work(passes::Scheduler& scheduler, const Node& group,
                     std::span<const ArrayRef> inputs, std::span<const ArrayRef> results);

// One more axis around a group: the trips of a map, and how many bytes each place moves from one to
// the next, inputs first, then results.
struct TripAxis {
  int64_t trips = 1;
  std::vector<int64_t> strides;
};

// All trips as one kernel; `inputs` and `results` are those of the first. Nothing where the trips
// would need copies of their operands, or numbers counted over several axes.
std::optional<GroupWork> mapped_group_work(passes::Scheduler& scheduler, const Node& group,
                                           std::span<const ArrayRef> inputs,
                                           std::span<const ArrayRef> results,
                                           const TripAxis& trips);

// Whether a result may be computed in the bytes of an input, both dense: whoever reads the input
// does so at the element being written, and not after.
bool may_overwrite(passes::Scheduler& scheduler, const Node& group, int32_t input, int32_t result);

}  // namespace tidemark::compile

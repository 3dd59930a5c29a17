// A fusion group as one step: the nodes that passes/fuse.cc has grouped run as one loop nest.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tidemark/compile/geometry.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// A dense copy in the workspace, of an operand whose layout cannot be addressed by the group's
// axes.
struct DenseCopy {
  int32_t operand = 0;
  ArrayRef layout, dense;
  int64_t offset = 0;
};

// A fusion group as the backend gets it: what is computed, over which axes, and the layout of its
// values. group_nest.h writes the schedule as loop nests.
struct GroupWork {
  const Graph& graph;
  const passes::Schedule& schedule;  // The scheduler holds it, until all groups are planned.
  LaunchAxes axes = {};
  std::vector<BufferPlace> loads = {},
                           results = {};  // Of the schedule's loads, and of the group's results.
  std::vector<DenseCopy> copies_in = {}, copies_out = {};
  int64_t copy_bytes = 0;  // The bytes of the copies, at the beginning of the workspace.
  int threads = 1;
  bool shared = false;  // Steps before or after it run on several threads and share its values.
};

// Layouts may have any strides; the task is given the addresses, inputs first, then results.
GroupWork group_work(passes::Scheduler& scheduler, const Node& group,
                     std::span<const ArrayRef> inputs, std::span<const ArrayRef> results);

// An additional axis around a group: the trips of a map, and the distance in bytes from one trip to
// the next of each input, then of each result.
struct TripAxis {
  int64_t trips = 1;
  std::vector<int64_t> strides;
};

// All trips as one kernel; `inputs` and `results` are those of the first trip. Nothing if the trips
// would need copies of their operands, or index values over several axes.
std::optional<GroupWork> mapped_group_work(passes::Scheduler& scheduler, const Node& group,
                                           std::span<const ArrayRef> inputs,
                                           std::span<const ArrayRef> results,
                                           const TripAxis& trips);

// Whether a result may be written over an input, both dense: every read of the input is at the
// element being written, and not after the write.
bool may_overwrite(passes::Scheduler& scheduler, const Node& group, int32_t input, int32_t result);

}  // namespace tidemark::compile

// Writes a schedule with rematerialization into the graph: copies of the nodes that run again.
#pragma once

#include <vector>

#include "tidemark/fit/region_model.h"
#include "tidemark/fit/timeline.h"
#include "tidemark/ir/graph.h"

namespace tidemark::fit {

// A node that runs again, before a reader of its results.
struct Repeat {
  int32_t node = -1;    // Of the graph before.
  int32_t reader = -1;  // The node before which it runs again.
  int64_t bytes = 0;    // Of the values that it makes again.
  Cost cost;
};

// Returns the nodes that run again, in order. The nodes of the region get other numbers, and the
// graph must be compacted.
std::vector<Repeat> apply(Graph& graph, RegionId region, const RegionModel& model,
                          const Timeline& timeline);

}  // namespace tidemark::fit

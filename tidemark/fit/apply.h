// Writes a schedule with rematerialization into the graph: nodes in another order, and copies of
// those that run again.
#pragma once

#include <vector>

#include "tidemark/fit/region_model.h"
#include "tidemark/fit/timeline.h"
#include "tidemark/ir/graph.h"

namespace tidemark::fit {

// The steps of a schedule in the order in which they run.
std::vector<int32_t> steps_of(const Timeline& timeline);

// One run of a step.
struct Execution {
  int32_t step = -1;
  bool is_again = false;             // It has run before.
  std::vector<int32_t> wanted = {};  // If so, the results that are read, by number.
};
// Of steps in the order in which they run; results that are read before they are made again are
// wanted.
std::vector<Execution> executions_of(const RegionModel& model, const std::vector<int32_t>& steps);

// A node that runs again.
struct Repeat {
  int32_t node = -1;  // Of the graph before.
  int64_t bytes = 0;  // Of the values that it makes again.
  Cost cost;
};

// Returns the nodes that run again, in order. The graph must be compacted afterwards.
std::vector<Repeat> apply(Graph& graph, RegionId region, const RegionModel& model,
                          const std::vector<Execution>& executions);

}  // namespace tidemark::fit

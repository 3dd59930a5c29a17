// Which values depend on which through differentiable ops.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// The results of a node that depend on these inputs.
std::vector<bool> depending_results(const Graph& graph, const Node& node,
                                    const std::vector<bool>& inputs);
// The results of a region that depend on its parameters.
std::vector<bool> depending_results(const Graph& graph, RegionId region,
                                    const std::vector<bool>& parameters);
// The carries of a loop that depend on them, after any number of trips.
std::vector<bool> depending_carries(const Graph& graph, const Node& loop,
                                    const std::vector<bool>& inputs);

}  // namespace tidemark::passes

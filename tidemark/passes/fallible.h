// Nodes that may throw at run time, and index checks that make later ones redundant. Internal to
// passes/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// By position in a region, whose nodes are in topological order: the position of the first node
// that checks the same index, and so fails first; -1 if there is none.
std::vector<int32_t> looked_before(const Graph& graph, const Region& region);

// Inserts `check_index` nodes for index ops of the body that might fail after a Variable was
// written, so that they fail before. `updates` is that of `order`.
void add_index_checks(Graph& graph, std::span<const int32_t> updates);

}  // namespace tidemark::passes

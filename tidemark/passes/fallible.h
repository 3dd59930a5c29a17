// What may throw when it runs, and what an earlier look at an index rules out. Internal to passes/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// By position in a region, whose nodes are in an order they can run in: the position of the first
// node that looks at the same index as this one, and so fails in its place; -1 where there is none.
std::vector<int32_t> looked_before(const Graph& graph, const Region& region);

// Puts `check_index` nodes before index ops of the body that may fail after a Variable was written,
// so that they can fail before. `updates` is that of `order`.
void add_index_checks(Graph& graph, std::span<const int32_t> updates);

}  // namespace tidemark::passes

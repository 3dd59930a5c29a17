// Graph to graph, one file and one function each. compile/pipeline.cc has the order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Puts the nodes of their regions in the place of `call` nodes.
void inline_calls(Graph& graph);

// Puts in place of a node what gives the same bits for less: composed views, products with 1,
// selections whose condition is known. Only rewrites that are exact for all inputs, NaN,
// infinities and -0 included. What is no longer read stays; `remove_dead` drops it.
void simplify(Graph& graph);

// Makes one node of those in a region that compute the same: same op, attributes, inputs and types.
// Nodes with regions and effects stay apart.
void merge(Graph& graph);

// Whether a node does something besides giving results, itself or in a region.
bool has_effect(const Graph& graph, const Node& node);

// Drops nodes nobody reads, inside regions too; effects stay.
void remove_dead(Graph& graph);

// Puts nodes that can share loops into `group` nodes, each of which becomes one kernel; regions of
// control flow too, each by itself. `cache_bytes` is a core's own cache (the second): rows that
// several sweeps go over are to stay in half of it.
//
// There is one rule and no list of patterns: of every value that one kernel writes and another
// reads, the largest first, the two become one where `schedule.h` finds loops for both and no cycle
// arises; then those that read the same value, where one of them writes little. So what is computed
// is computed as often as before, and written and read less.
void fuse(Graph& graph, int64_t cache_bytes);

// Puts the nodes of every region in an order in which few bytes are alive at once: never more than
// in the order they have.
void order(Graph& graph);

struct Pass {
  std::string_view name;
  void (*run)(Graph&) = nullptr;
};

// In the order in which `tidemark show` runs them.
std::span<const Pass> all_passes();
// Null where there is none of this name.
const Pass* find(std::string_view name);

}  // namespace tidemark::passes

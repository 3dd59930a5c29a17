// Graph to graph, one file and one function each. compile/pipeline.cc has the order.
#pragma once

#include <span>
#include <string_view>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Puts in place of a node what gives the same bits for less: composed views, products with 1,
// selections whose condition is known. Only rewrites that are exact for all inputs, NaN,
// infinities and -0 included. What is no longer read stays; `remove_dead` drops it.
void simplify(Graph& graph);

// Makes one node of those in a region that compute the same: same op, attributes, inputs and types.
// Nodes with regions and effects stay apart.
void merge(Graph& graph);

// Drops nodes nobody reads, inside regions too; effects stay.
void remove_dead(Graph& graph);

struct Pass {
  std::string_view name;
  void (*run)(Graph&) = nullptr;
};

// In the order in which `tidemark show` runs them.
std::span<const Pass> all_passes();
// Null where there is none of this name.
const Pass* find(std::string_view name);

}  // namespace tidemark::passes

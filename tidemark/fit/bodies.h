// Bodies of control flow: the bytes that they need, and versions that need fewer.
#pragma once

#include <vector>

#include "tidemark/fit/apply.h"
#include "tidemark/fit/region_model.h"
#include "tidemark/layout/layout.h"

namespace tidemark::fit {

// The scratch that nodes of a graph need in a memory.
passes::Scratch workspace_of(const Graph& graph, const compile::Interface& interface);

// Whether it is control flow. A fusion group is not.
bool has_bodies(const Node& node);

// The bytes that exist only while a node runs: its workspace, or what its bodies have in use.
decltype(ModelOptions::inside) with_bodies(passes::Scratch workspace);

// Lets maps whose number of bodies at once is the compiler's choice run them one after another.
// Returns whether there is such a map.
bool run_bodies_in_turn(Graph& graph);

// Drops values inside the bodies of a control-flow node, so that they need fewer bytes by `excess`
// if possible; `improves`: with as little work as `improve` finds. Returns how many fewer they
// need, and adds what runs again.
int64_t shrink_bodies(Graph& graph, int32_t node, int64_t excess, bool improves,
                      const decltype(ModelOptions::inside)& inside, std::vector<Repeat>& repeats);

}  // namespace tidemark::fit

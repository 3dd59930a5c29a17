// Graph to graph, one file and one function each. compile/pipeline.cc has the order.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Drops nodes nobody reads, inside regions too; effects stay.
void remove_dead(Graph& graph);

}  // namespace tidemark::passes

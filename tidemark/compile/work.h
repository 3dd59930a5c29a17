// The work of a node that is one step: the facts that plans predict from and that runs count by.
#pragma once

#include "tidemark/ir/graph.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// Of an op or a fusion group; nothing for views, literals, and nodes with bodies. One operation for
// each element that is read or written, whichever are more, but for products.
run::StepWork work_of(const Graph& graph, const Node& node);

// Of all nodes of a region, once.
run::StepWork work_of(const Graph& graph, RegionId region);

}  // namespace tidemark::compile

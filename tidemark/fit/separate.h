// Splits fusion groups whose operands would otherwise all have to be alive at once.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark::fit {

// A group that reads many values, such as the sum of a dozen gradients, keeps all of them until it
// runs. Its nodes by themselves read each value as soon as it is there.
bool has_large_sums(const Graph& graph);  // In the body.
Graph with_sums_apart(Graph graph);

}  // namespace tidemark::fit

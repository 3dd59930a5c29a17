// Takes fusion groups apart whose operands would all have to be alive at once.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark::fit {

// A group that reads many values, such as the sum of a dozen gradients, keeps all of them until it
// runs. Its nodes by themselves, which run as soon as their operands are there, let go of each
// value at once: gradients through slices of one value are added slice by slice. Returns whether
// there was such a group in the body.
bool separate_sums(Graph& graph);

}  // namespace tidemark::fit

// Batches the body of a map: runs its ops on all slices at once. Internal to the library.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/trace/trace.h"

namespace tidemark::detail {

// Adds the nodes of a body to the current scope, each with a batch axis in front. Nodes that depend
// on no slice stay as they are. `slices` are the arrays whose slices are the first parameters,
// `captures` the values of the other parameters; the results have the batch axis too. If a node
// cannot be batched, returns nothing, adds nothing, and `why_not` names the node.
//
// The bits are the same as slice by slice: the ops keep their axes and extents, reductions keep
// their order, and a product of matrices does not depend on the size of the batch.
std::optional<std::vector<Value>> vectorized(RegionId body, std::span<const Value> slices,
                                             std::span<const Value> captures, Dim count,
                                             std::string& why_not);

}  // namespace tidemark::detail

// What a gradient keeps of the way to the results it is of. Internal to api/.
#pragma once

#include <vector>

#include "tidemark/api/differentiate.h"
#include "tidemark/passes/residuals.h"

namespace tidemark::detail {

// Of a graph whose results are gradients and whose nodes below `forward_end` are the way to what
// they are of.
passes::Residuals residuals_of(const Graph& graph, int32_t forward_end);

// What the gradient of a `call` that is run again would keep of it if it were not, and what it
// keeps of its inputs only to run it again. `gradients` says of which results there are any,
// `wanted` by which inputs.
RecomputeMark mark_of(const Graph& graph, const Node& call, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at);

}  // namespace tidemark::detail

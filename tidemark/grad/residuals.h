// Residuals: the forward values that a backward pass reads. Internal to the library.
#pragma once

#include <vector>

#include "tidemark/passes/residuals.h"

namespace tidemark::detail {

// The residuals of a graph whose results are gradients and whose forward pass is the nodes below
// `forward_end`.
passes::Residuals residuals_of(const Graph& graph, int32_t forward_end);

}  // namespace tidemark::detail

// What a gradient keeps of the way to the results it is of. Internal to the library.
#pragma once

#include <vector>

#include "tidemark/passes/residuals.h"

namespace tidemark::detail {

// Of a graph whose results are gradients and whose nodes below `forward_end` are the way to what
// they are of.
passes::Residuals residuals_of(const Graph& graph, int32_t forward_end);

}  // namespace tidemark::detail

// Type checks of control-flow nodes. Used by check_node only.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark {

std::vector<TensorType> check_control(const Graph& graph, const Node& node);

}  // namespace tidemark

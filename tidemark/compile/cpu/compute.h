// What a node makes of numbers, by the kernels that would run it: passes/fold asks.
#pragma once

#include <span>

#include "tidemark/ir/graph.h"

namespace tidemark::compile {

// The attributes of the constant that a pointwise node of rank 0 makes of constants.
Attrs compute(const Node& node, std::span<const Node* const> operands);

}  // namespace tidemark::compile

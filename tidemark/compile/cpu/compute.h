// Evaluates nodes of constants with the CPU's kernels, for passes/fold.
#pragma once

#include <span>

#include "tidemark/ir/graph.h"

namespace tidemark::compile {

// The attributes of the constant that a pointwise node of rank 0 computes from constants.
Attrs compute(const Node& node, std::span<const Node* const> operands);

}  // namespace tidemark::compile

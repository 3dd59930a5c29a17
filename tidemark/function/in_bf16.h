// A function with bf16 in place of f32, to see what that would save. Internal to the library.
#pragma once

#include <optional>

#include "tidemark/ir/graph.h"

namespace tidemark::detail {

// Nothing if no value is f32, or if an op does not take bf16.
std::optional<Graph> in_bf16(Graph graph);

}  // namespace tidemark::detail

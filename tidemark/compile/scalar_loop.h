// Loops on a few numbers: the whole loop becomes one kernel, and its carries registers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/compile/backend.h"
#include "tidemark/ir/graph.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark::compile {

struct ScalarLoop {
  Recurrence recurrence;
  // For each access with a bound, what an index out of range is told: "put", f32[3, 2], the line.
  struct Site {
    std::string_view op;
    TensorType array;
    Source at = Source::none();
  };
  std::vector<Site> sites;
};

// The loop as a recurrence, where its body has only pointwise ops and views on few elements, and
// writes and reads of one slice of arrays. `slices` and `captures` are the inputs of those kinds.
// Buffers are the carries, each dense, in place; the arrays walked, dense; the captures that are no
// numbers; the stacked results.
std::optional<ScalarLoop> scalar_loop(const Graph& graph, const Node& node,
                                      std::span<const OperandLayout> captures);

}  // namespace tidemark::compile

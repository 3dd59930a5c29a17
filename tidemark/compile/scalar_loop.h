// Loops on a few numbers: the whole loop becomes one kernel that keeps its carries in registers.
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
  // For each access that is checked, the text of its error: "put", f32[3, 2], the line.
  struct Site {
    std::string_view op;
    TensorType array;
    Source at = Source::none();
  };
  std::vector<Site> sites;
};

// The loop as a recurrence, if its body has only pointwise ops and views on few elements, and reads
// and writes of single slices of arrays. `slices` and `captures` are the inputs of those kinds. The
// buffers are, in order: the carries, dense and in place; the scanned arrays, dense; the captures
// that are not numbers; the stacked results.
std::optional<ScalarLoop> scalar_loop(const Graph& graph, const Node& node,
                                      std::span<const OperandLayout> captures);

}  // namespace tidemark::compile

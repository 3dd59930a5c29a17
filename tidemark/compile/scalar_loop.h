// Loops on a few numbers: the whole loop becomes one kernel, and its carries registers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/compile/tasks.h"
#include "tidemark/device/kernel.h"
#include "tidemark/ir/graph.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark::compile {

// A value from outside: a number, or memory seen in some layout.
struct OuterValue {
  bool is_number = false;
  uint64_t number = 0;
  ArrayRef layout;
};

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
                                      std::span<const OuterValue> captures);

// Operands: the number of trips (i64) where `counted`, then the buffers.
TaskPlan scalar_loop_task(ScalarLoop loop, int64_t trips, bool counted);

}  // namespace tidemark::compile

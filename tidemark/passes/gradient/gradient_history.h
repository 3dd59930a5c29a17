// The gradients that a trace has requested, and what they changed: enough to repeat them with other
// choices of what loops keep (differentiate_again.h).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/passes/region_scope.h"

namespace tidemark::passes {

// A range of node numbers.
struct NodeRange {
  int32_t first = 0, end = INT32_MAX;
  bool contains(int32_t node) const { return node >= first && node < end; }
};
using NodeRanges = std::vector<NodeRange>;
bool contain(const NodeRanges& ranges, int32_t node);

// One differentiation of nodes of a region, whose gradients were appended to the same region. The
// lists are those of `Differentiation`.
struct GradientRequest {
  RegionId region = Graph::kBody;
  std::vector<Value> watched = {};
  std::vector<int32_t> since = {};
  std::vector<std::pair<Value, Value>> seeds = {};
  std::vector<Value> sources = {}, leaves = {};
  NodeRanges nodes = {}, own_gradients = {};
  bool is_recorded = false;
  Views views = Views::made_again;
  Source at = Source::none();
  // The nodes that it added, and the gradient of each source.
  NodeRange made = {};
  struct SourceGradient {
    Value dense = {};  // The node is -1 if there is none.
    std::vector<std::pair<Value, Value>> rows = {};
  };
  std::vector<SourceGradient> found = {};
};

// A loop with Save::automatic keeps everything up to this many bytes.
constexpr int64_t kMostKept = int64_t{64} << 20;

// The bytes of a loop with Save::automatic if it kept everything, and the choice that was made.
struct LoopCost {
  Dim trips = 0;
  std::vector<TensorType> of_trip = {};  // The residuals of one trip.
  SaveChoice chosen = {};
};

bool is_same_line(Source a, Source b);

struct GradientHistory {
  std::vector<GradientRequest> requests = {};
  // Loops of the trace that keep more for gradients, as they were before. A gradient only appends
  // results to such a loop and to its body.
  struct LoopBefore {
    SaveChoice told = {};
    size_t results = 0, body_results = 0;
  };
  std::map<int32_t, LoopBefore> loops = {};
  std::vector<LoopCost> costs = {};  // One for each differentiated loop with Save::automatic.
  // False if a gradient was added to a region inside that of its nodes and changed a loop there or
  // recomputes a function. Then the gradients are not repeated.
  bool can_repeat = true;

  // Whether there are loops with Save::automatic to choose for.
  bool has_choices() const { return can_repeat && !costs.empty(); }
};

}  // namespace tidemark::passes

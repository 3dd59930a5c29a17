// Expands row ops such as softmax into the ops that define them, so that they can be fused.
#include <algorithm>
#include <map>

#include "tidemark/ops/graph_builder.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::passes {
namespace {

// Whether the reductions that define the row op have the row op's reduction order, and its row
// stays in the cache between sweeps.
bool can_expand(const Graph& graph, const Node& row, int64_t row_bytes) {
  const TensorType& type = graph.type(row.inputs[0]);
  if (type.shape.is_open() || type.shape.size() == 0) return false;
  const int64_t axis = row.attrs.read().integer();
  bool is_last = true;
  for (int64_t later = axis + 1; later < type.shape.rank(); ++later)
    is_last = is_last && type.shape[later] == 1;
  if (type.shape[axis] == 1 || is_last != (axis == type.shape.rank() - 1)) return false;
  const int64_t together = is_last ? 1 : kLanes;
  const int64_t buffers = 2;  // The operand and the exponentials.
  return buffers * size_of(compute_dtype(type.dtype)) * together * type.shape[axis] <= row_bytes;
}

Term cast(Term x, DType dtype) { return x.dtype() == dtype ? x : term::cast(x, dtype); }

Value expand(Graph& graph, RegionId region, const Node& row) {
  GraphBuilder build(graph, region, row.source);
  const DType dtype = row.results[0].dtype;
  const Term x = cast(build.term(row.inputs[0]), compute_dtype(dtype));
  return cast(row.op->expanded(x, row.attrs.read().integer()), dtype).value;
}

}  // namespace

void expand_rows(Graph& graph, RegionId region_id, int64_t row_bytes) {
  const auto region = static_cast<size_t>(region_id);
  const std::vector<int32_t> nodes = std::move(graph.regions[region].nodes);
  graph.regions[region].nodes.clear();
  std::map<int32_t, Value> expanded;
  const auto moved = [&](Value& value) {
    const auto found = expanded.find(value.node);
    if (found != expanded.end()) value = found->second;
  };
  for (const int32_t number : nodes) {
    for (Value& input : graph.nodes[static_cast<size_t>(number)].inputs) moved(input);
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->expanded != nullptr && can_expand(graph, node, row_bytes))
      expanded[number] = expand(graph, region_id, Node(node));  // Its nodes may move this one.
    else
      graph.regions[region].nodes.push_back(number);
  }
  for (Value& result : graph.regions[region].results) moved(result);
}

}  // namespace tidemark::passes

#include <algorithm>
#include <map>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::passes {
namespace {

// Appends the nodes that a row op is made of, one application after another.
class RowWriter {
 public:
  RowWriter(Graph& graph, RegionId region, const Node& row)
      : graph_(graph), region_(region), at_(row.source), axis_(row.attrs.read().integer()) {}

  Value apply(const OpDef& op, std::initializer_list<Value> operands) {
    const TensorType type = graph_.type(*operands.begin());
    return graph_.add(region_, op, {operands.begin(), operands.size()}, {}, type, at_);
  }
  Value fold(const OpDef& op, Value x) {
    TensorType type = graph_.type(x);
    type.shape.set(axis_, 1);
    const Attrs attrs = Attrs().add(AxisList{axis_}).add(true);
    return graph_.add(region_, op, {&x, 1}, attrs, type, at_);
  }
  Value cast(Value x, DType dtype) {
    TensorType type = graph_.type(x);
    if (type.dtype == dtype) return x;
    type.dtype = dtype;
    return graph_.add(region_, def_of(&ops::cast), {&x, 1}, Attrs().add(dtype), type, at_);
  }

 private:
  Graph& graph_;
  const RegionId region_;
  const Source at_;
  const int64_t axis_;
};

// Whether the reductions of the row op's definition would fold in the order that the row op has,
// and its row stays in the cache for the sweeps.
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

Value expand(Graph& graph, RegionId region, const Node& row) {
  RowWriter write(graph, region, row);
  const DType dtype = row.results[0].dtype;
  const Value x = write.cast(row.inputs[0], compute_dtype(dtype));
  const Value moved = write.apply(def_of(&subtract), {x, write.fold(def_of(&max), x)});
  const Value e = write.apply(def_of(&exp), {moved});
  const Value total = write.fold(def_of(&sum), e);
  const Value y =
      row.op->self == &softmax
          ? write.apply(def_of(&multiply), {e, write.apply(def_of(&reciprocal), {total})})
          : write.apply(def_of(&subtract), {moved, write.apply(def_of(&log), {total})});
  return write.cast(y, dtype);
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
    const Node node = graph.nodes[static_cast<size_t>(number)];
    const bool is_known = node.op->self == &softmax || node.op->self == &log_softmax;
    if (is_known && can_expand(graph, node, row_bytes))
      expanded[number] = expand(graph, region_id, node);
    else
      graph.regions[region].nodes.push_back(number);
  }
  for (Value& result : graph.regions[region].results) moved(result);
}

}  // namespace tidemark::passes

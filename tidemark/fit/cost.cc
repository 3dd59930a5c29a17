#include "tidemark/fit/cost.h"

#include <algorithm>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/run/treeverse.h"

namespace tidemark::fit {
namespace {

double elements(const TensorType& type) { return static_cast<double>(type.shape.size()); }
double bytes(const TensorType& type) { return elements(type) * size_of(type.dtype); }

// How many products are added for one element of a contraction.
double terms_of(const Graph& graph, const Node& node) {
  if (node.op->routine == Routine::conv2d) {
    const Shape& kernel = graph.type(node.inputs[1]).shape;
    return static_cast<double>(kernel[0]) * static_cast<double>(kernel[1]) *
           static_cast<double>(kernel[2]);
  }
  const size_t left = node.op->routine == Routine::accumulate ? 1 : 0;
  return static_cast<double>(graph.type(node.inputs[left]).shape[-1]);
}

// One operation for each element that is read or written, whichever are more.
double flop_of(const Graph& graph, const Node& node) {
  double most = 0;
  for (const Value input : node.inputs) most = std::max(most, elements(graph.type(input)));
  for (const TensorType& type : node.results) most = std::max(most, elements(type));
  if (node.op->family == Family::contract)
    return 2 * elements(node.results[0]) * terms_of(graph, node);
  return most;
}

// How long kernels take that compute and move so much, roughly.
double seconds_of(const Cost& cost) {
  constexpr double flop_per_second = 60e9, bytes_per_second = 12e9, launch = 1e-6;
  return std::max(cost.flop / flop_per_second, cost.bytes_moved / bytes_per_second) + launch;
}

double trips_of(Dim trips) {
  return trips.is_open() ? 1 : static_cast<double>(std::max<int64_t>(1, int64_t{trips}));
}

Cost traffic(const Graph& graph, const Node& node) {
  Cost cost;
  for (const Value input : node.inputs) cost.bytes_moved += bytes(graph.type(input));
  for (const TensorType& type : node.results) cost.bytes_moved += bytes(type);
  return cost;
}

// The nodes of a fusion group run in one kernel, which moves only the group's own operands.
Cost cost_of_group(const Graph& graph, const Node& group) {
  Cost cost = traffic(graph, group);
  for (const int32_t number : graph.regions[static_cast<size_t>(group.regions[0])].nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->view == nullptr && node.op->family != Family::source)
      cost.flop += flop_of(graph, node);
  }
  cost.seconds = seconds_of(cost);
  return cost;
}

// The first region runs a trip again, the second goes back over it.
Cost cost_of_reversal(const Graph& graph, const Node& node) {
  const auto trips = static_cast<int64_t>(trips_of(ReverseAttrs(node).trips));
  const int64_t slots = std::max<int64_t>(1, slots_of_marks(graph.type(node.inputs[0])));
  Cost cost =
      cost_of(graph, node.regions[0]) * static_cast<double>(run::fewest_advances(trips, slots));
  return cost += cost_of(graph, node.regions[1]) * static_cast<double>(trips);
}

Cost cost_of_control(const Graph& graph, const Node& node) {
  if (node.op->flow == Flow::cond) {
    const Cost then = cost_of(graph, node.regions[0]), other = cost_of(graph, node.regions[1]);
    return then.seconds < other.seconds ? other : then;
  }
  if (node.op->flow == Flow::reverse_loop) return cost_of_reversal(graph, node);
  Cost cost;
  for (const RegionId region : node.regions) cost += cost_of(graph, region);
  if (node.op->flow == Flow::loop) return cost * trips_of(LoopAttrs(node).trips);
  if (node.op->flow == Flow::map) {
    Attrs::Reader read = node.attrs.read();
    read.integer();
    return cost * trips_of(read.size());
  }
  return cost;
}

}  // namespace

Cost cost_of(const Graph& graph, const Node& node) {
  if (node.op == nullptr || node.op->view != nullptr || node.op->family == Family::source)
    return {};
  if (node.op->flow == Flow::group) return cost_of_group(graph, node);
  if (!node.regions.empty()) return cost_of_control(graph, node);
  Cost cost = traffic(graph, node);
  cost.flop = flop_of(graph, node);
  cost.seconds = seconds_of(cost);
  return cost;
}

Cost cost_of(const Graph& graph, RegionId region) {
  Cost cost;
  for (const int32_t number : graph.regions[static_cast<size_t>(region)].nodes)
    cost += cost_of(graph, graph.nodes[static_cast<size_t>(number)]);
  return cost;
}

}  // namespace tidemark::fit

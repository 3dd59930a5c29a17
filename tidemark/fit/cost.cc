#include "tidemark/fit/cost.h"

#include <algorithm>

#include "tidemark/compile/work.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/run/treeverse.h"

namespace tidemark::fit {
namespace {

double trips_of(Dim trips) {
  return trips.is_open() ? 1 : static_cast<double>(std::max<int64_t>(1, int64_t{trips}));
}

// The first region runs a trip again, the second goes back over it.
Cost cost_of_reversal(const Graph& graph, const Node& node) {
  const ReverseAttrs attrs(node);
  const auto trips = static_cast<int64_t>(trips_of(attrs.trips));
  const int64_t slots = std::max<int64_t>(1, slots_of_marks(graph.type(node.inputs[0])));
  const int64_t every = attrs.save == LoopAttrs::Save::every ? attrs.amount : 0;
  const int64_t again = every == 0 && keeps_online(graph, node)
                            ? run::repeated_trips_online(trips, slots)
                            : run::repeated_trips(trips, slots, every);
  Cost cost = cost_of(graph, node.regions[0]) * static_cast<double>(again);
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

double seconds_of(const run::StepWork& work) {
  constexpr double flop_per_second = 60e9, bytes_per_second = 12e9, launch = 1e-6;
  return std::max(work.flop / flop_per_second, work.bytes_moved / bytes_per_second) + launch;
}

Cost cost_of(const Graph& graph, const Node& node) {
  if (node.op == nullptr || node.op->view != nullptr || node.op->family == Family::source)
    return {};
  if (!node.regions.empty() && node.op->flow != Flow::group) return cost_of_control(graph, node);
  const run::StepWork work = compile::work_of(graph, node);
  return {work.flop, work.bytes_moved, seconds_of(work)};
}

Cost cost_of(const Graph& graph, RegionId region) {
  Cost cost;
  for (const int32_t number : graph.regions[static_cast<size_t>(region)].nodes)
    cost += cost_of(graph, graph.nodes[static_cast<size_t>(number)]);
  return cost;
}

}  // namespace tidemark::fit

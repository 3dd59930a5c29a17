#include "tidemark/fit/bodies.h"

#include <algorithm>

#include "tidemark/compile/pipeline.h"
#include "tidemark/fit/rematerialize.h"
#include "tidemark/fit/timeline.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::fit {
namespace {

RegionModel model_of_body(const Graph& graph, const Node& node, size_t region,
                          const decltype(ModelOptions::inside)& inside) {
  ModelOptions options{.inside = inside};
  const RegionId id = node.regions[region];
  const size_t parameters = graph.regions[static_cast<size_t>(id)].parameters.size();
  options.replaced_by.assign(parameters, -1);
  // The parameters from `first` on are the first results of the trip before.
  const auto replace = [&](int64_t first, int64_t count) {
    for (int64_t k = 0; k < count; ++k)
      options.replaced_by[static_cast<size_t>(first + k)] = static_cast<int32_t>(k);
  };
  if (node.op->flow == Flow::loop && region == 0) replace(1, LoopAttrs(node).carries);
  if (node.op->flow == Flow::reverse_loop) {
    const ReverseAttrs attrs(node);
    region == 0 ? replace(1, attrs.carries) : replace(1 + attrs.carries, attrs.backs);
  }
  // A branch may update what it captures in place.
  if (node.op->flow == Flow::cond) options.donated.assign(parameters, true);
  return model_of(graph, id, options);
}

// How often a body runs for one run of its node.
double trips_of(const Node& node) {
  const auto known = [](Dim trips) {
    return trips.is_open() ? 1.0 : static_cast<double>(std::max<int64_t>(1, int64_t{trips}));
  };
  if (node.op->flow == Flow::loop) return known(LoopAttrs(node).trips);
  if (node.op->flow == Flow::reverse_loop) return known(ReverseAttrs(node).trips);
  if (node.op->flow != Flow::map) return 1;
  Attrs::Reader read = node.attrs.read();
  read.integer();
  return known(read.size());
}

}  // namespace

passes::Scratch workspace_of(const Graph& graph, const compile::Interface& interface) {
  return compile::machine_of(compile::backend_of(interface.home), interface.most_scratch)
      .scratch_in(graph);
}

bool has_bodies(const Node& node) { return !node.regions.empty() && node.op->flow != Flow::group; }

bool run_bodies_in_turn(Graph& graph) {
  bool found = false;
  for (Node& node : graph.nodes) {
    if (node.op == nullptr || node.op->flow != Flow::map) continue;
    Attrs::Reader read = node.attrs.read();
    const int64_t slices = read.integer();
    const Dim trips = read.size(), alive = read.size();
    if (alive != Dim(0) && !alive.is_any()) continue;
    const std::span<const int64_t> why = read.integers();
    node.attrs = Attrs().add(slices).add(trips).add(Dim(1)).add(why);
    found = true;
  }
  return found;
}

decltype(ModelOptions::inside) with_bodies(passes::Scratch workspace) {
  return [workspace](const Graph& graph, const Node& node) -> Inside {
    if (!has_bodies(node)) {
      const int64_t bytes = workspace ? workspace(graph, node) : 0;
      return {bytes, bytes};
    }
    Inside most;
    const auto inside = with_bodies(workspace);
    for (size_t k = 0; k < node.regions.size(); ++k) {
      const RegionModel model = model_of_body(graph, node, k, inside);
      const Timeline timeline(model);
      most.bytes = std::max(most.bytes, timeline.peak());
      most.least = std::max(most.least, timeline.least());
    }
    return most;
  };
}

int64_t shrink_bodies(Graph& graph, int32_t number, int64_t excess, bool improves,
                      const decltype(ModelOptions::inside)& inside, std::vector<Repeat>& repeats) {
  const Node node = graph.nodes[static_cast<size_t>(number)];
  if (!has_bodies(node)) return 0;
  const int64_t before = inside(graph, node).bytes;
  int64_t most = 0;
  for (size_t k = 0; k < node.regions.size(); ++k) {
    const RegionModel model = model_of_body(graph, node, k, inside);
    Timeline timeline(model);
    if (timeline.peak() > before - excess) {
      rematerialize(model, timeline, before - excess);
      if (improves && model.steps.size() <= kMostToImprove) improve(model, timeline);
      for (Repeat repeat :
           apply(graph, node.regions[k], model, executions_of(model, steps_of(timeline)))) {
        repeat.cost = repeat.cost * trips_of(node);
        repeats.push_back(repeat);
      }
    }
    most = std::max(most, timeline.peak());
  }
  return before - most;
}

}  // namespace tidemark::fit

// Dead code elimination.
#include <algorithm>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {

int64_t known_bytes(const TensorType& type) {
  return type.shape.is_open() ? 0 : type.shape.size() * size_of(type.dtype);
}

bool has_effect(const Graph& graph, const Node& node) {
  if (node.op->effect != Effect::none) return true;
  return std::any_of(node.regions.begin(), node.regions.end(), [&](RegionId id) {
    const Region& region = graph.regions[static_cast<size_t>(id)];
    return std::any_of(region.nodes.begin(), region.nodes.end(), [&](int32_t number) {
      return has_effect(graph, graph.nodes[static_cast<size_t>(number)]);
    });
  });
}

namespace {

void sweep(Graph& graph, Region& region, std::vector<bool>& read) {
  for (const Value result : region.results) read[static_cast<size_t>(result.node)] = true;
  std::vector<int32_t> kept;
  for (auto number = region.nodes.rbegin(); number != region.nodes.rend(); ++number) {
    const Node& node = graph.nodes[static_cast<size_t>(*number)];
    if (!read[static_cast<size_t>(*number)] && !has_effect(graph, node)) continue;
    for (const Value input : node.inputs) read[static_cast<size_t>(input.node)] = true;
    for (const RegionId inner : node.regions)
      sweep(graph, graph.regions[static_cast<size_t>(inner)], read);
    kept.push_back(*number);
  }
  region.nodes.assign(kept.rbegin(), kept.rend());
}

}  // namespace

void remove_dead(Graph& graph) {
  std::vector<bool> read(graph.nodes.size());
  sweep(graph, graph.body(), read);
}

}  // namespace tidemark::passes

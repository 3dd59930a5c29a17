// Inlines `call` nodes.
#include <unordered_map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

bool is_call(const Node& node) { return node.op->flow == Flow::call; }

void inline_in(Graph& graph, RegionId id) {
  const std::vector<int32_t> nodes = std::move(graph.regions[static_cast<size_t>(id)].nodes);
  graph.regions[static_cast<size_t>(id)].nodes.clear();
  std::unordered_map<int32_t, std::vector<Value>> results_of;
  const auto replace = [&](Value& value) {
    const auto found = results_of.find(value.node);
    if (found != results_of.end()) value = found->second[static_cast<size_t>(value.result)];
  };
  for (const int32_t number : nodes) {
    Node& node = graph.nodes[static_cast<size_t>(number)];
    for (Value& input : node.inputs) replace(input);
    const SmallVec<RegionId, 2> regions = node.regions;
    if (!is_call(node)) {
      for (const RegionId inner : regions) inline_in(graph, inner);
      graph.regions[static_cast<size_t>(id)].nodes.push_back(number);
      continue;
    }
    const SmallVec<Value, 3> inputs = node.inputs;
    inline_in(graph, regions[0]);
    results_of[number] =
        append_copy(graph, regions[0], graph, id, inputs, [](const Node&) { return false; });
  }
  for (Value& result : graph.regions[static_cast<size_t>(id)].results) replace(result);
}

}  // namespace

void inline_calls(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == nullptr || !is_call(node)) continue;
    inline_in(graph, Graph::kBody);
    return;
  }
}

}  // namespace tidemark::passes

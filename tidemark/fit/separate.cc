#include "tidemark/fit/separate.h"

#include <algorithm>
#include <unordered_map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::fit {
namespace {

constexpr int64_t kMostOperands = 3;

// Operands that a step makes and that are as large as the group's largest result.
int64_t large_operands(const Graph& graph, const Node& group) {
  int64_t largest = 1;
  for (const TensorType& type : group.results)
    largest = std::max(largest, passes::known_bytes(type));
  return std::count_if(group.inputs.begin(), group.inputs.end(), [&](Value input) {
    return graph.node(input).op != nullptr && passes::known_bytes(graph.type(input)) >= largest;
  });
}

bool is_large_sum(const Graph& graph, const Node& node) {
  return node.op->flow == Flow::group && large_operands(graph, node) > kMostOperands;
}

}  // namespace

bool has_large_sums(const Graph& graph) {
  const std::vector<int32_t>& nodes = graph.body().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
    return is_large_sum(graph, graph.nodes[static_cast<size_t>(number)]);
  });
}

Graph with_sums_apart(Graph graph) {
  const std::vector<int32_t> nodes = std::move(graph.body().nodes);
  graph.body().nodes.clear();
  std::unordered_map<int32_t, std::vector<Value>> replaced;  // By group: its results.
  const auto now = [&](Value value) {
    const auto found = replaced.find(value.node);
    return found == replaced.end() ? value : found->second[static_cast<size_t>(value.result)];
  };
  for (const int32_t number : nodes) {
    for (Value& input : graph.nodes[static_cast<size_t>(number)].inputs) input = now(input);
    const Node node = graph.nodes[static_cast<size_t>(number)];
    if (!is_large_sum(graph, node)) {
      graph.body().nodes.push_back(number);
      continue;
    }
    replaced[number] =
        append_copy(graph, node.regions[0], graph, Graph::kBody,
                    {node.inputs.begin(), node.inputs.end()}, [](const Node&) { return false; });
  }
  for (Value& result : graph.body().results) result = now(result);
  return compact(std::move(graph));
}

}  // namespace tidemark::fit

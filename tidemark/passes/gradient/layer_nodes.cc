#include "tidemark/passes/gradient/layer_nodes.h"

#include <algorithm>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

bool is_in_layer(const Node& node, std::string_view path) {
  const std::string own = node.source.layer_path();
  return own.starts_with(path) && (own.size() == path.size() || own[path.size()] == '/');
}

bool is_of_gradient(const GradientHistory& history, int32_t node) {
  return std::any_of(history.requests.begin(), history.requests.end(),
                     [&](const GradientRequest& request) { return request.made.contains(node); });
}

void add_once(std::vector<Value>& list, Value value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// The values of the layer that are needed outside, in a fixed order.
void find_gives(const Graph& graph, const GradientHistory& history, LayerNodes& layer) {
  const auto give = [&](Value value) {
    if (layer.contains(value.node)) add_once(layer.gives, value);
  };
  for (const int32_t number : graph.body().nodes) {
    if (layer.contains(number) || is_of_gradient(history, number)) continue;
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs) give(input);
  }
  for (const Value result : graph.body().results) give(result);
  for (const GradientRequest& request : history.requests) {
    for (const auto& [value, gradient] : request.seeds) give(value);
    for (const auto* list : {&request.watched, &request.sources, &request.leaves})
      for (const Value value : *list) give(value);
  }
}

// Whether the layer can run where its last node does.
bool can_run_as_one(const Graph& graph, const GradientHistory& history, const LayerNodes& layer) {
  const std::vector<int32_t>& all = graph.body().nodes;
  const auto first = std::find(all.begin(), all.end(), layer.nodes.front()),
             last = std::find(first, all.end(), layer.nodes.back());
  return std::none_of(first, last, [&](int32_t number) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (layer.contains(number)) return false;
    return is_of_gradient(history, number) ||
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](Value input) { return layer.contains(input.node); });
  });
}

}  // namespace

bool LayerNodes::contains(int32_t node) const {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::optional<LayerNodes> layer_nodes(const Graph& graph, const GradientHistory& history,
                                      std::string_view path) {
  LayerNodes layer;
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (is_of_gradient(history, number) || !is_in_layer(node, path)) continue;
    if (has_effect(graph, node)) return {};
    layer.nodes.push_back(number);
  }
  if (layer.nodes.empty() || !can_run_as_one(graph, history, layer)) return {};
  for (const int32_t number : layer.nodes)
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
      if (!layer.contains(input.node)) add_once(layer.reads, input);
  find_gives(graph, history, layer);
  return layer;
}

}  // namespace tidemark::passes

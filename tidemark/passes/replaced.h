// Replacement of values, for passes that visit a graph in order and drop nodes.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

class Replacements {
 public:
  explicit Replacements(const Graph& graph) : by_(graph.nodes.size()) {}

  // Replaces result i of `node` by `values[i]`, which must not itself be replaced.
  void set(int32_t node, std::vector<Value> values) {
    by_[static_cast<size_t>(node)] = std::move(values);
  }
  void apply(Value& value) const {
    const std::vector<Value>& values = by_[static_cast<size_t>(value.node)];
    if (!values.empty()) value = values[static_cast<size_t>(value.result)];
  }

 private:
  std::vector<std::vector<Value>> by_;  // Empty for nodes that stay.
};

// Visits every region in order. `visit(region, number)` sees a node whose inputs are already
// replaced, and returns replacements for its results, or nothing if the node stays.
template <class Visit>
void replace_nodes(Graph& graph, Visit visit) {
  Replacements replaced(graph);
  for (size_t id = 0; id < graph.regions.size(); ++id) {
    Region& region = graph.regions[id];
    std::vector<int32_t> kept;
    for (const int32_t number : region.nodes) {
      Node& node = graph.nodes[static_cast<size_t>(number)];
      for (Value& input : node.inputs) replaced.apply(input);
      std::vector<Value> values = visit(static_cast<RegionId>(id), number);
      if (values.empty()) {
        kept.push_back(number);
      } else {
        replaced.set(number, std::move(values));
      }
    }
    region.nodes = std::move(kept);
    for (Value& result : region.results) replaced.apply(result);
  }
}

}  // namespace tidemark::passes

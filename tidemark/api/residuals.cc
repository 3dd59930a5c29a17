#include "tidemark/api/residuals.h"

#include <algorithm>
#include <set>

#include "tidemark/api/loop_gradient.h"
#include "tidemark/passes/passes.h"

namespace tidemark::detail {
passes::Residuals residuals_of(const Graph& graph, int32_t forward_end) {
  std::vector<bool> is_forward(graph.nodes.size());
  std::fill_n(is_forward.begin(),
              std::min<size_t>(is_forward.size(), static_cast<size_t>(forward_end)), true);
  return {graph, Graph::kBody, std::move(is_forward)};
}

namespace {

// The nodes that results are made of, without looking behind these values.
std::set<int32_t> nodes_behind(const Graph& graph, const std::vector<Value>& known) {
  std::set<int32_t> seen;
  std::vector<Value> open = graph.body().results;
  while (!open.empty()) {
    const Value value = open.back();
    open.pop_back();
    if (std::find(known.begin(), known.end(), value) != known.end()) continue;
    if (!seen.insert(value.node).second) continue;
    for (const Value input : graph.node(value).inputs) open.push_back(input);
  }
  return seen;
}

Source line_of(const Graph& graph, const Node& call) {
  if (call.source.known()) return call.source;
  for (const int32_t number : graph.regions[static_cast<size_t>(call.regions[0])].nodes)
    if (graph.nodes[static_cast<size_t>(number)].source.known())
      return graph.nodes[static_cast<size_t>(number)].source;
  return call.source;
}

}  // namespace

RecomputeMark mark_of(const Graph& graph, const Node& call, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  Trace trace("what recompute saves", at);
  Differentiation asked;
  asked.scope = trace.body();
  std::vector<Value> inputs;
  Tensors seeds;
  for (const Value input : call.inputs)
    inputs.push_back(TensorState::of(trace.argument(graph.type(input), false, at))->value());
  for (size_t r = 0; r < gradients.size(); ++r)
    seeds.push_back(gradients[r].has_value() ? trace.argument(call.results[r], false, at)
                                             : Tensor());
  const EnterScope entered(trace.body());
  const std::vector<Value> results =
      append_copy(graph, call.regions[0], trace.graph(), Graph::kBody, inputs, is_effect);
  const auto forward_end = static_cast<int32_t>(trace.graph().nodes.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted[i]) asked.watched.push_back(inputs[i]);
  asked.sources = asked.watched;
  for (size_t r = 0; r < results.size(); ++r)
    if (seeds[r].has_value()) asked.seeds.emplace_back(results[r], seeds[r]);
  for (const Found& found : differentiate(asked, at))
    if (found.dense.has_value()) trace.graph().body().results.push_back(value_of(found.dense, at));
  passes::remove_dead(trace.graph());

  const passes::Residuals residuals = residuals_of(trace.graph(), forward_end);
  RecomputeMark mark{line_of(graph, call), {}, {}};
  for (const Value value : residuals.list()) mark.spared.push_back(trace.graph().type(value));
  const std::set<int32_t> without = nodes_behind(trace.graph(), residuals.list());
  const std::set<int32_t> with = nodes_behind(trace.graph(), {});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_there_anyway = graph.node(call.inputs[i]).op == nullptr;
    if (!is_there_anyway && with.contains(inputs[i].node) && !without.contains(inputs[i].node))
      mark.held.push_back(trace.graph().type(inputs[i]));
  }
  return mark;
}

}  // namespace tidemark::detail

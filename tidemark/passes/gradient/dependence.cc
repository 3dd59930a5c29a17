#include "tidemark/passes/gradient/dependence.h"

#include <algorithm>
#include <map>
#include <set>

#include "tidemark/ir/value_key.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::passes {

std::vector<bool> depending_results(const Graph& graph, RegionId id,
                                    const std::vector<bool>& parameters) {
  const Region& region = graph.regions[static_cast<size_t>(id)];
  std::set<ValueKey> active;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i]) active.insert(key_of(region.parameters[i]));
  for (const int32_t number : region.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    std::vector<bool> inputs;
    for (const Value input : node.inputs) inputs.push_back(active.contains(key_of(input)));
    const std::vector<bool> results = depending_results(graph, node, inputs);
    for (size_t r = 0; r < results.size(); ++r)
      if (results[r]) active.insert({number, static_cast<int32_t>(r)});
  }
  std::vector<bool> given;
  for (const Value result : region.results) given.push_back(active.contains(key_of(result)));
  return given;
}

namespace {

// The parameters of a loop's body: the trip, the carries, the node's other inputs.
std::vector<bool> of_body(const LoopAttrs& attrs, const std::vector<bool>& inputs) {
  std::vector<bool> parameters = {false};
  parameters.insert(parameters.end(), inputs.begin() + static_cast<int64_t>(attrs.first_carry()),
                    inputs.end());
  return parameters;
}

// Marks the values that depend on marked values of a loop's body, from trip to trip. A node is
// visited again only when more of its inputs are marked, since carries may depend on each other in
// long chains.
class Spread {
 public:
  Spread(const Graph& graph, const Region& body, size_t carries) : graph_(graph), body_(body) {
    for (size_t i = 0; i < body.nodes.size(); ++i)
      for (const Value input : graph.nodes[static_cast<size_t>(body.nodes[i])].inputs)
        readers_[key_of(input)].push_back(i);
    for (size_t j = 0; j < carries; ++j)
      next_[key_of(body.results[j])].push_back(body.parameters[1 + j]);
  }

  void mark(Value value) {
    std::vector<Value> fresh = {value};
    while (!fresh.empty()) {
      const ValueKey key = key_of(fresh.back());
      fresh.pop_back();
      if (!marked_.insert(key).second) continue;
      if (const auto found = readers_.find(key); found != readers_.end())
        changed_.insert(found->second.begin(), found->second.end());
      if (const auto found = next_.find(key); found != next_.end())
        fresh.insert(fresh.end(), found->second.begin(), found->second.end());
    }
  }

  void run() {
    while (!changed_.empty()) {
      const int32_t number = body_.nodes[*changed_.begin()];
      changed_.erase(changed_.begin());
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      std::vector<bool> inputs;
      for (const Value input : node.inputs) inputs.push_back(is_marked(input));
      const std::vector<bool> results = depending_results(graph_, node, inputs);
      for (size_t r = 0; r < results.size(); ++r)
        if (results[r]) mark({number, static_cast<int16_t>(r)});
    }
  }

  bool is_marked(Value value) const { return marked_.contains(key_of(value)); }

 private:
  const Graph& graph_;
  const Region& body_;
  std::map<ValueKey, std::vector<size_t>> readers_;  // Positions in the body's list of nodes.
  // By result of the body: the parameters that hold it in the next trip.
  std::map<ValueKey, std::vector<Value>> next_;
  std::set<ValueKey> marked_;
  std::set<size_t> changed_;
};

}  // namespace

std::vector<bool> depending_carries(const Graph& graph, const Node& loop,
                                    const std::vector<bool>& inputs) {
  const LoopAttrs attrs(loop);
  const Region& body = graph.regions[static_cast<size_t>(loop.regions[0])];
  const std::vector<bool> parameters = of_body(attrs, inputs);
  Spread spread(graph, body, static_cast<size_t>(attrs.carries));
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i]) spread.mark(body.parameters[i]);
  spread.run();
  std::vector<bool> given;
  for (size_t j = 0; j < static_cast<size_t>(attrs.carries); ++j)
    given.push_back(spread.is_marked(body.parameters[1 + j]));
  return given;
}

namespace {

// The results of a region that depend on these parameters over several trips. From `first` on,
// `carried` parameters hold the results with the same index of the trip before; their marks are
// updated.
std::vector<bool> depending_trips(const Graph& graph, RegionId region,
                                  std::vector<bool>& parameters, size_t first, size_t carried) {
  for (;;) {
    const std::vector<bool> results = depending_results(graph, region, parameters);
    bool grew = false;
    for (size_t k = 0; k < carried; ++k) {
      if (!results[k] || parameters[first + k]) continue;
      parameters[first + k] = grew = true;
    }
    if (!grew) return results;
  }
}

// For a reverse_loop. Its checkpoints depend on inputs of the node: the initial states, slices and
// captures.
std::vector<bool> depending_on_reverse(const Graph& graph, const Node& node,
                                       const std::vector<bool>& inputs) {
  const ReverseAttrs attrs(node);
  const auto backs = inputs.begin() + 1 + 2 * attrs.carries;
  std::vector<bool> ahead = {false};
  ahead.insert(ahead.end(), backs - attrs.carries, backs);
  ahead.insert(ahead.end(), backs + attrs.backs, inputs.end());
  const auto carries = static_cast<size_t>(attrs.carries);
  depending_trips(graph, node.regions[0], ahead, 1, carries);
  const auto states = ahead.begin() + 1 + attrs.carries;
  std::vector<bool> back(ahead.begin(), states);
  back.insert(back.end(), backs, backs + attrs.backs);
  back.insert(back.end(), states, ahead.end());
  std::vector<bool> results =
      depending_trips(graph, node.regions[1], back, 1 + carries, static_cast<size_t>(attrs.backs));
  for (size_t k = 0; k < static_cast<size_t>(attrs.backs); ++k) results[k] = back[1 + carries + k];
  return results;
}

}  // namespace

std::vector<bool> depending_results(const Graph& graph, const Node& node,
                                    const std::vector<bool>& inputs) {
  std::vector<bool> results(node.results.size());
  if (std::find(inputs.begin(), inputs.end(), true) == inputs.end()) return results;
  if (node.op->stops_gradient || node.op->effect != Effect::none) return results;
  if (node.op->flow == Flow::cond) {
    const std::vector<bool> captures(inputs.begin() + 1, inputs.end());
    for (const RegionId region : node.regions) {
      const std::vector<bool> given = depending_results(graph, region, captures);
      for (size_t r = 0; r < results.size(); ++r) results[r] = results[r] || given[r];
    }
  } else if (node.op->flow == Flow::call) {
    // Values that the gradient function does not cover are differentiated through the region.
    results = depending_results(graph, node.regions[0], inputs);
    if (node.regions.size() == 2) std::fill_n(results.begin(), node.attrs.read().integer(), true);
  } else if (node.op->flow == Flow::map) {
    results = depending_results(graph, node.regions[0], inputs);
  } else if (node.op->flow == Flow::loop) {
    const LoopAttrs attrs(node);
    const std::vector<bool> carries = depending_carries(graph, node, inputs);
    std::vector<bool> parameters = of_body(attrs, inputs);
    std::copy(carries.begin(), carries.end(), parameters.begin() + 1);
    const std::vector<bool> given = depending_results(graph, node.regions[0], parameters);
    std::copy(carries.begin(), carries.end(), results.begin());
    for (size_t e = 0; e < static_cast<size_t>(attrs.stacked); ++e)
      results[attrs.stacked_result(e)] = given[carries.size() + e];
  } else if (node.op->flow == Flow::reverse_loop) {
    results = depending_on_reverse(graph, node, inputs);
  } else {
    results.assign(results.size(), true);
  }
  for (size_t r = 0; r < results.size(); ++r)
    results[r] = results[r] && is_differentiable(node.results[r].dtype);
  return results;
}

}  // namespace tidemark::passes

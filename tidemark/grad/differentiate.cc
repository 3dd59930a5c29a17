#include "tidemark/grad/differentiate.h"

#include <algorithm>
#include <map>
#include <set>

#include "tidemark/calls/ops.h"
#include "tidemark/grad/gradients.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::detail {

Tensor tensor_in(TraceScope* scope, Value value, Source at) {
  return make_traced(scope->trace->graph().type(value), value, scope, false, at);
}

Value distinct_value(const Tensor& tensor, const std::vector<Value>& taken, Source at) {
  const Value value = value_of(tensor, at);
  const bool is_taken = std::find(taken.begin(), taken.end(), value) != taken.end();
  return is_taken ? value_of(apart(tensor, at), at) : value;
}

// ---- what depends on what -----------------------------------------------------------------------

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

// What a loop's body takes: the trip, the carries, the rest of the node's inputs.
std::vector<bool> of_body(const LoopAttrs& attrs, const std::vector<bool>& inputs) {
  std::vector<bool> parameters = {false};
  parameters.insert(parameters.end(), inputs.begin() + static_cast<int64_t>(attrs.first_carry()),
                    inputs.end());
  return parameters;
}

// Marks what depends on marked values of a loop's body, from one trip to the next. A node is looked
// at again only when more of its inputs are marked: carries may hand on to each other in long rows.
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
  std::map<ValueKey, std::vector<size_t>> readers_;  // Places in the body's list of nodes.
  std::map<ValueKey, std::vector<Value>> next_;      // What a value is at the start of a next trip.
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
    // What a gradient function says nothing about flows through the region.
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
  } else {
    results.assign(results.size(), true);
  }
  for (size_t r = 0; r < results.size(); ++r)
    results[r] = results[r] && is_float(node.results[r].dtype);
  return results;
}

// ---- going back ---------------------------------------------------------------------------------

namespace {

class Backward {
 public:
  Backward(const Differentiation& asked, Source at)
      : asked_(asked), at_(at), graph_(asked.scope->trace->graph()) {
    for (const Value value : asked.leaves) leaves_.insert(key_of(value));
    // In the order in which watching them begins.
    std::vector<std::pair<int32_t, Value>> later;
    for (size_t i = 0; i < asked.watched.size(); ++i)
      later.emplace_back(i < asked.since.size() ? asked.since[i] : 0, asked.watched[i]);
    std::stable_sort(later.begin(), later.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t started = 0;
    const auto start_watching = [&](int32_t node) {
      for (; started < later.size() && later[started].first <= node; ++started)
        active_.insert(key_of(later[started].second));
    };
    // A list of its own: gradients may be appended to the same region.
    nodes_ = graph_.regions[static_cast<size_t>(asked.scope->region)].nodes;
    if (asked.is_recorded)
      std::erase_if(nodes_, [&](int32_t node) { return !asked.is_recorded(node); });
    for (const int32_t number : nodes_) {
      start_watching(number);
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      std::vector<bool>& inputs = wanted_[number] = active_inputs(node);
      const std::vector<bool> results = depending_results(graph_, node, inputs);
      for (size_t r = 0; r < results.size(); ++r)
        if (results[r]) active_.insert({number, static_cast<int32_t>(r)});
    }
    start_watching(INT32_MAX);
  }

  std::vector<PartialGradient> run() {
    for (const auto& [value, gradient] : asked_.seeds)
      if (active_.contains(key_of(value))) add(value, gradient);
    for (size_t i = nodes_.size(); i-- > 0;) step_back(nodes_[i]);
    std::vector<PartialGradient> found;
    for (const Value source : asked_.sources) found.push_back(sums_[key_of(source)]);
    return found;
  }

 private:
  std::vector<bool> active_inputs(const Node& node) const {
    std::vector<bool> inputs;
    for (const Value input : node.inputs)
      inputs.push_back(active_.contains(key_of(input)) && is_float(graph_.type(input).dtype));
    return inputs;
  }

  void add(Value value, const Tensor& gradient) {
    Tensor& sum = sums_[key_of(value)].dense;
    sum = sum.has_value() ? tidemark::add(sum, gradient, at_) : gradient;
  }

  void step_back(int32_t number) {
    if (leaves_.contains({number, 0})) return;
    const size_t first = graph_.nodes.size();
    go_back_over(number);
    // What a gradient inside it made says so already.
    for (size_t made = first; made < graph_.nodes.size(); ++made)
      if (graph_.nodes[made].gradient_of == nullptr)
        graph_.nodes[made].gradient_of = graph_.nodes[static_cast<size_t>(number)].op;
  }

  void go_back_over(int32_t number) {
    const Node node = graph_.nodes[static_cast<size_t>(number)];
    Tensors gradients;
    bool any = false;
    for (size_t r = 0; r < node.results.size(); ++r) {
      const auto found = sums_.find({number, static_cast<int32_t>(r)});
      gradients.push_back(found == sums_.end() ? Tensor() : found->second.dense);
      any |= gradients.back().has_value();
    }
    const std::vector<bool>& wanted = wanted_[number];
    if (!any || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    if (asked_.is_own_gradient && asked_.is_own_gradient(number)) refuse_own_gradient(at_);
    // What is made belongs to the line of the op, whoever asked for the gradient.
    const UserCode user;
    const SourceScope charged(node.source.known() ? node.source : at_);
    if (!node.regions.empty()) {
      std::vector<bool> variables;
      for (const Value input : node.inputs) variables.push_back(leaves_.contains(key_of(input)));
      const std::vector<PartialGradient> found =
          control_gradient(asked_.scope, number, gradients, wanted, variables, node.source);
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i].dense.has_value()) add(node.inputs[i], found[i].dense);
        std::vector<RowGradient>& rows = sums_[key_of(node.inputs[i])].rows;
        rows.insert(rows.end(), found[i].rows.begin(), found[i].rows.end());
      }
      return;
    }
    Tensors operands;
    for (const Value input : node.inputs)
      operands.push_back(tensor_in(asked_.scope, input, node.source));
    if (gives_rows(*node.op, node.attrs) && leaves_.contains(key_of(node.inputs[0]))) {
      sums_[key_of(node.inputs[0])].rows.push_back({operands[1], gradients[0]});
      return;
    }
    Tensors results;
    for (size_t r = 0; r < node.results.size(); ++r)
      results.push_back(tensor_in(asked_.scope, {number, static_cast<int16_t>(r)}, node.source));
    const Tensors found =
        pull_back({*node.op, node.attrs, operands, results, node.source}, gradients, wanted);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].has_value()) add(node.inputs[i], found[i]);
  }

  const Differentiation& asked_;
  Source at_;
  Graph& graph_;
  std::vector<int32_t> nodes_;
  std::set<ValueKey> active_, leaves_;
  std::map<int32_t, std::vector<bool>> wanted_;  // By node: the inputs that need gradients.
  std::map<ValueKey, PartialGradient> sums_;
};

}  // namespace

std::vector<PartialGradient> differentiate(const Differentiation& asked, Source at) {
  return Backward(asked, at).run();
}

}  // namespace tidemark::detail

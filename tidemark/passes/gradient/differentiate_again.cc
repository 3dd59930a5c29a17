#include "tidemark/passes/gradient/differentiate_again.h"

#include <algorithm>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/gradient/layer_nodes.h"

namespace tidemark::passes {

bool is_same_line(Source a, Source b) {
  return a.line == b.line && std::string_view(a.file) == std::string_view(b.file);
}

bool contain(const NodeRanges& ranges, int32_t node) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [node](const NodeRange& range) { return range.contains(node); });
}

namespace {

GradientRequest request_of(const Differentiation& asked, Source at) {
  GradientRequest request{.region = asked.scope->region,
                          .watched = asked.watched,
                          .since = asked.since,
                          .sources = asked.sources,
                          .leaves = asked.leaves,
                          .nodes = asked.nodes,
                          .own_gradients = asked.own_gradients,
                          .is_recorded = asked.settings->is_recorded,
                          .views = asked.settings->views,
                          .at = at};
  for (const auto& [value, gradient] : asked.seeds)
    request.seeds.emplace_back(value, gradient.value);
  return request;
}

std::vector<GradientRequest::SourceGradient> values_of(const ValueGradients& gradients) {
  std::vector<GradientRequest::SourceGradient> all;
  for (const ValueGradient& each : gradients) {
    GradientRequest::SourceGradient& found = all.emplace_back();
    found.dense = each.dense.value;
    for (const ValueGradient::Rows& rows : each.rows)
      found.rows.emplace_back(rows.indices.value, rows.rows.value);
  }
  return all;
}

// Thrown if a node outside of gradients reads a value inside one, or one that the new gradient does
// not have.
struct CannotRepeat {};

// Copies the trace's graph, and differentiates at the same points as the trace did.
class Replay {
 public:
  Replay(const Graph& from, const GradientHistory& history, const GradientSettings& settings,
         const Rewritten& rewritten)
      : from_(from), history_(history), settings_(settings), inlined_(rewritten.inlined) {
    to_.name = from.name;
    if (rewritten.recomputed.empty()) return;
    layer_ = layer_nodes(from, history, rewritten.recomputed);
    if (!layer_) throw CannotRepeat();
  }

  Graph run() {
    RegionScope body{.graph = &to_};
    copy(Graph::kBody, body);
    return std::move(to_);
  }

 private:
  Value moved(Value value) const {
    if (value.node < 0) return value;
    const auto found = values_.find(key_of(value));
    if (found != values_.end()) return found->second;
    const auto node = nodes_.find(value.node);
    if (node == nodes_.end()) throw CannotRepeat();
    return {node->second, value.result};
  }
  std::vector<Value> moved(const std::vector<Value>& values) const {
    std::vector<Value> all;
    for (const Value value : values) all.push_back(moved(value));
    return all;
  }
  // Notes that the latest nodes correspond to this node of the trace.
  void note(int32_t old) { old_of_.resize(to_.nodes.size(), old); }

  void copy(RegionId id, RegionScope& scope) {
    for (const Value parameter : from_.regions[static_cast<size_t>(id)].parameters) {
      nodes_[parameter.node] =
          to_.add_parameter(scope.region, from_.type(parameter), from_.node(parameter).source).node;
      note(parameter.node);
    }
    to_.regions[static_cast<size_t>(scope.region)].results = copy_nodes(id, scope);
  }

  // Copies the nodes of a region and returns its results.
  std::vector<Value> copy_nodes(RegionId id, RegionScope& scope) {
    const Region& region = from_.regions[static_cast<size_t>(id)];
    std::vector<const GradientRequest*> due;
    for (const GradientRequest& request : history_.requests)
      if (request.region == id) due.push_back(&request);
    size_t next = 0;
    for (const int32_t number : region.nodes) {
      while (next < due.size() && due[next]->made.first <= number) repeat(*due[next++], scope);
      const bool is_gradient = std::any_of(due.begin(), due.end(), [&](const auto* request) {
        return request->made.contains(number);
      });
      if (is_gradient) continue;
      if (!layer_ || !layer_->contains(number))
        copy_node(number, scope);
      else if (number == layer_->nodes.back())
        add_call(scope);
    }
    while (next < due.size()) repeat(*due[next++], scope);
    return moved(region.results);
  }

  void copy_node(int32_t number, RegionScope& scope) {
    Node node = from_.nodes[static_cast<size_t>(number)];
    for (Value& input : node.inputs) input = moved(input);
    if (is_inlined(node)) return inline_call(number, node, scope);
    for (RegionId& region : node.regions) {
      RegionScope inner = inner_scope(scope);
      copy(region, inner);
      region = inner.region;
    }
    if (const auto known = history_.loops.find(number); known != history_.loops.end())
      restore(node, known->second);
    nodes_[number] = to_.add_node(scope.region, std::move(node));
    note(number);
  }

  bool is_inlined(const Node& node) const {
    return inlined_ && node.op->flow == Flow::call && node.regions.size() == 1 &&
           is_same_line(node.source, *inlined_);
  }
  void inline_call(int32_t number, const Node& call, RegionScope& scope) {
    const std::vector<Value>& parameters =
        from_.regions[static_cast<size_t>(call.regions[0])].parameters;
    for (size_t i = 0; i < parameters.size(); ++i)
      values_.insert_or_assign(key_of(parameters[i]), call.inputs[i]);
    const std::vector<Value> results = copy_nodes(call.regions[0], scope);
    for (size_t r = 0; r < results.size(); ++r)
      values_.insert_or_assign({number, static_cast<int32_t>(r)}, results[r]);
  }

  // The layer as a function that gradients run again. Inside, parameters stand for what it reads.
  void add_call(RegionScope& scope) {
    const int32_t first = layer_->nodes.front();
    RegionScope inner = inner_scope(scope);
    Node call;
    call.op = &def_of(&ops::call);
    call.source = from_.nodes[static_cast<size_t>(first)].source;
    call.regions = {inner.region};
    call.attrs = Attrs()
                     .add(static_cast<int64_t>(layer_->gives.size()))
                     .add(std::span<const int64_t>())
                     .add(std::span<const int64_t>());
    const std::map<ValueKey, Value> outside = values_;
    for (const Value read : layer_->reads) {
      call.inputs.push_back(moved(read));
      values_.insert_or_assign(key_of(read),
                               to_.add_parameter(inner.region, from_.type(read), call.source));
      note(first);
    }
    for (const int32_t number : layer_->nodes) copy_node(number, inner);
    std::vector<Value> results = moved(layer_->gives);
    for (const Value result : results) call.results.push_back(to_.type(result));
    to_.regions[static_cast<size_t>(inner.region)].results = std::move(results);
    values_ = outside;
    for (const int32_t number : layer_->nodes) nodes_.erase(number);
    const int32_t made = to_.add_node(scope.region, std::move(call));
    note(layer_->nodes.back());
    for (size_t r = 0; r < layer_->gives.size(); ++r)
      values_.insert_or_assign(key_of(layer_->gives[r]), Value{made, static_cast<int16_t>(r)});
  }

  // Restores a loop to its state before all gradients.
  void restore(Node& loop, const GradientHistory::LoopBefore& before) {
    LoopAttrs attrs(loop);
    attrs.stacked -= attrs.saved;
    attrs.saved = attrs.marks = attrs.kept = 0;
    attrs.save = before.told.save;
    attrs.amount = before.told.amount;
    loop.attrs = attrs.attrs();
    loop.results.resize(before.results);
    to_.regions[static_cast<size_t>(loop.regions[0])].results.resize(before.body_results);
  }

  // The nodes of the new region that correspond to these nodes of the trace.
  NodeRanges moved(const NodeRanges& ranges, RegionId region) const {
    NodeRanges all;
    for (const int32_t node : to_.regions[static_cast<size_t>(region)].nodes)
      if (contain(ranges, old_of_[static_cast<size_t>(node)])) all.push_back({node, node + 1});
    return all;
  }
  // The first node of the new region that corresponds to this node of the trace or a later one.
  int32_t moved_start(int32_t since, RegionId region) const {
    for (const int32_t node : to_.regions[static_cast<size_t>(region)].nodes)
      if (old_of_[static_cast<size_t>(node)] >= since) return node;
    return INT32_MAX;
  }

  void repeat(const GradientRequest& request, RegionScope& scope) {
    GradientSettings settings = settings_;
    settings.is_recorded = request.is_recorded;
    settings.views = request.views;
    Differentiation asked{.scope = &scope, .into = &scope, .settings = &settings};
    asked.watched = moved(request.watched);
    for (const int32_t since : request.since)
      asked.since.push_back(moved_start(since, scope.region));
    for (const auto& [value, gradient] : request.seeds)
      asked.seeds.emplace_back(moved(value), ScopedValue{moved(gradient), &scope});
    asked.sources = moved(request.sources);
    asked.leaves = moved(request.leaves);
    asked.nodes = moved(request.nodes, scope.region);
    asked.own_gradients = moved(request.own_gradients, scope.region);
    const std::vector<GradientRequest::SourceGradient> found =
        values_of(differentiate(asked, request.at));
    note(request.made.first);
    for (size_t i = 0; i < found.size(); ++i) {
      const GradientRequest::SourceGradient& before = request.found[i];
      const bool is_alike = (found[i].dense.node < 0) == (before.dense.node < 0) &&
                            found[i].rows.size() == before.rows.size();
      if (!is_alike) throw CannotRepeat();
      replace(request, before.dense, found[i].dense);
      for (size_t k = 0; k < before.rows.size(); ++k) {
        replace(request, before.rows[k].first, found[i].rows[k].first);
        replace(request, before.rows[k].second, found[i].rows[k].second);
      }
    }
  }
  // A region that reads a view repeats the view, and then reads its operand.
  void replace(const GradientRequest& request, Value before, Value now) {
    if (!request.made.contains(before.node) || !values_.emplace(key_of(before), now).second) return;
    const Node &old = from_.node(before), &made = to_.node(now);
    if (old.op->view == nullptr || made.op != old.op || made.attrs != old.attrs) return;
    replace(request, old.inputs[0], made.inputs[0]);
  }

  const Graph& from_;
  const GradientHistory& history_;
  const GradientSettings& settings_;
  const std::optional<Source> inlined_;
  std::optional<LayerNodes> layer_;  // That is run again.
  Graph to_;
  std::map<int32_t, int32_t> nodes_;  // By nodes of the trace.
  std::map<ValueKey, Value> values_;  // By gradients of the trace.
  std::vector<int32_t> old_of_;       // By new node: the corresponding node of the trace.
};

}  // namespace

ValueGradients differentiate(const Differentiation& asked, GradientHistory& history, Source at) {
  Graph& graph = *asked.scope->graph;
  GradientSettings settings = *asked.settings;
  settings.history = &history;
  settings.first_made = static_cast<int32_t>(graph.nodes.size());
  settings.is_inside = asked.scope != asked.into;
  Differentiation noted = asked;
  noted.settings = &settings;
  ValueGradients found = differentiate(noted, at);
  if (settings.is_inside) return found;
  GradientRequest request = request_of(asked, at);
  request.made = {settings.first_made, static_cast<int32_t>(graph.nodes.size())};
  request.found = values_of(found);
  history.requests.push_back(std::move(request));
  return found;
}

std::optional<Graph> differentiate_again(const Graph& graph, const GradientHistory& history,
                                         const GradientSettings& settings,
                                         const Rewritten& rewritten) try {
  return Replay(graph, history, settings, rewritten).run();
} catch (const CannotRepeat&) {
  return {};
}

}  // namespace tidemark::passes

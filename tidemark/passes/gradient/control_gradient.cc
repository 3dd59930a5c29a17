// Gradients of branches, maps and calls, as control flow. Those of loops are in stacked_gradient.cc
// and reverse_gradient.cc.
//
// The gradient of a branch or of a map's body recomputes it, so that no residuals are kept.
#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/gradient/dependence.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/types/size.h"

namespace tidemark::passes {
namespace {

ScopedValues values_in(RegionScope* scope, std::span<const Value> values) {
  ScopedValues all;
  for (const Value value : values) all.push_back({value, scope});
  return all;
}

ValueGradients all_dense(const ScopedValues& values) { return {values.begin(), values.end()}; }

// Recomputes a region and differentiates it: the gradients of the wanted parameters, given those of
// the results. Parameters that are values of Variables may have row-sparse gradients.
struct RegionAgain {
  const ControlQuestion& asked;
  RegionId region = -1;
  const ScopedValues& parameters;
  const ScopedValues& gradients;

  ValueGradients found(const ScopeBuilder& into, const std::vector<bool>& wanted,
                       const std::vector<bool>& variables) const {
    Graph& graph = into.graph();
    std::vector<Value> values;
    for (const ScopedValue parameter : parameters)
      values.push_back(into.distinct_value(parameter, values, asked.at));
    const auto first = static_cast<int32_t>(graph.nodes.size());
    const std::vector<Value> results =
        append_copy(graph, region, graph, into.scope().region, values, is_effect);
    Differentiation inner{
        .scope = &into.scope(), .into = &into.scope(), .settings = &asked.settings};
    inner.nodes = {{.first = first}};
    for (size_t i = 0; i < values.size(); ++i)
      if (wanted[i]) inner.watched.push_back(values[i]);
    for (size_t i = 0; i < variables.size(); ++i)
      if (variables[i]) inner.leaves.push_back(values[i]);
    inner.sources = inner.watched;
    for (size_t r = 0; r < results.size(); ++r)
      if (gradients[r]) inner.seeds.emplace_back(results[r], gradients[r]);
    return differentiate(inner, asked.at);
  }

  // The same, all dense, with zeros if there is no gradient.
  ScopedValues dense(const ScopeBuilder& into, const std::vector<bool>& wanted) const {
    const ValueGradients all = found(into, wanted, {});
    ScopedValues given;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      const ScopedValue dense = all[given.size()].dense;
      given.push_back(dense ? dense : into.zeros(TensorType(parameters[i].type()), asked.at));
    }
    return given;
  }
};

// Puts the gradients of the wanted inputs at their index among all inputs.
ScopedValues spread(const ScopedValues& given, const std::vector<bool>& wanted) {
  ScopedValues all(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = given[next++];
  return all;
}

void set_results(const ScopeBuilder& builder, const ScopedValues& results) {
  std::vector<Value> values;
  for (const ScopedValue result : results) values.push_back(builder.value_of(result));
  builder.region().results = std::move(values);
}

void add_result_types(const ScopeBuilder& body, Node& node) {
  for (const Value result : body.region().results)
    node.results.push_back(body.graph().type(result));
}

ScopedValues results_of(const ScopeBuilder& builder, int32_t number) {
  ScopedValues results;
  const size_t count = builder.graph().nodes[static_cast<size_t>(number)].results.size();
  for (size_t r = 0; r < count; ++r)
    results.push_back(builder.own({number, static_cast<int16_t>(r)}));
  return results;
}

// ---- cond ---------------------------------------------------------------------------------------

ScopedValues cond_gradient(const ControlQuestion& asked) {
  const Node node = asked.node();
  const ScopedValues inputs = values_in(asked.scope, node.inputs);
  const ScopedValues captures(inputs.begin() + 1, inputs.end());
  const std::vector<bool> by(asked.wanted.begin() + 1, asked.wanted.end());
  Node made;
  made.op = &def_of(&ops::cond);
  made.inputs.push_back(asked.into.value_of(inputs[0]));
  RegionScope scopes[2];
  ScopedValues given[2];
  for (size_t which = 0; which < 2; ++which) {
    scopes[which] = inner_scope(asked.into.scope());
    given[which] = RegionAgain{asked, node.regions[which], captures, asked.gradients}.dense(
        asked.into.inside(scopes[which]), by);
    made.regions.push_back(scopes[which].region);
  }
  for (size_t which = 0; which < 2; ++which)
    set_results(asked.into.inside(scopes[which]), given[which]);
  for (const Value value : unify_captures({{&scopes[0], 0}, {&scopes[1], 0}}))
    made.inputs.push_back(value);
  add_result_types(asked.into.inside(scopes[0]), made);
  const int32_t number = add_control(asked.into.scope(), std::move(made), asked.at);
  return spread(results_of(asked.into, number), asked.wanted);
}

// ---- map ----------------------------------------------------------------------------------------

// Builds a map over slices of arrays.
struct MapNode {
  ScopedValues walked = {};
  Dim trips = 0;
  Dim alive = 1;  // The number of bodies that may run at once; td::open: as many as fit.

  template <class Body>
  ScopedValues add(const ScopeBuilder& into, Source at, Body body) const {
    RegionScope scope = inner_scope(into.scope());
    const ScopeBuilder inner = into.inside(scope);
    ScopedValues slices;
    for (const ScopedValue array : walked) slices.push_back(slice_parameter(inner, array, at));
    set_results(inner, body(inner, slices));
    Node node;
    node.op = &def_of(&ops::map);
    for (const ScopedValue array : walked) node.inputs.push_back(into.value_of(array));
    for (const Value value : unify_captures({{&scope, walked.size()}}))
      node.inputs.push_back(value);
    node.regions = {scope.region};
    add_result_types(inner, node);
    for (TensorType& type : node.results) type.shape.insert(0, trips);
    node.attrs = Attrs()
                     .add(std::ssize(walked))
                     .add(trips)
                     .add(alive.is_any() ? alive : smaller(alive, larger(trips, 1)))
                     .add(std::span<const int64_t>());
    return results_of(into, add_control(into.scope(), std::move(node), at));
  }

  static ScopedValue slice_parameter(const ScopeBuilder& inner, ScopedValue array, Source at) {
    TensorType type = array.type();
    type.shape.erase(0);
    return inner.parameter(type, at);
  }
};

// The gradient of a map. Row-sparse gradients are stacked over trips, as its last results.
class MapGradient {
 public:
  explicit MapGradient(const ControlQuestion& asked)
      : asked_(asked),
        node_(asked.node()),
        wanted_(asked.wanted),
        at_(asked.at),
        inputs_(values_in(asked.scope, node_.inputs)) {
    Attrs::Reader read = node_.attrs.read();
    slices_ = static_cast<size_t>(read.integer());
    trips_ = read.size();
    alive_ = read.size();
    walked_.assign(inputs_.begin(), inputs_.begin() + static_cast<int64_t>(slices_));
    for (const ScopedValue gradient : asked.gradients)
      if (gradient) walked_.push_back(gradient);
  }

  // If only slices have gradients, a map. Gradients of captures are sums over all trips, which need
  // a loop that carries them.
  ValueGradients run() {
    const auto first = wanted_.begin() + static_cast<int64_t>(slices_);
    if (std::find(first, wanted_.end(), true) != wanted_.end()) return in_a_loop();
    const MapNode map{.walked = walked_, .trips = trips_, .alive = alive_};
    const auto body = [&](const ScopeBuilder& inner, const ScopedValues& each) {
      find(inner, each);
      return of_slices();
    };
    return all_dense(spread(map.add(asked_.into, at_, body), wanted_));
  }

 private:
  // The gradients of one trip: those of the wanted slices, then of the wanted captures.
  void find(const ScopeBuilder& inner, const ScopedValues& each) {
    ScopedValues parameters = inputs_;
    std::copy_n(each.begin(), slices_, parameters.begin());
    ScopedValues of_results(asked_.gradients.size());
    size_t next = slices_;
    for (size_t r = 0; r < of_results.size(); ++r)
      if (asked_.gradients[r]) of_results[r] = each[next++];
    const RegionAgain body{asked_, node_.regions[0], parameters, of_results};
    ValueGradients found = body.found(inner, wanted_, asked_.variables);
    next = 0;
    found_.assign(wanted_.size(), {});
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      found_[i] = std::move(found[next++]);
      if (i < slices_ && !found_[i].dense)
        found_[i].dense = inner.zeros(TensorType(parameters[i].type()), at_);
    }
  }
  ScopedValues of_slices() const {
    ScopedValues given;
    for (size_t i = 0; i < slices_; ++i)
      if (wanted_[i]) given.push_back(found_[i].dense);
    return given;
  }

  // The results of a trip: the updated sums, then the values to stack.
  ScopedValues of_trip(const ScopeBuilder& inner, ScopedValues sums) const {
    size_t next = 0;
    for (size_t i = slices_; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      ScopedValue& sum = sums[next++];
      if (found_[i].dense) sum = inner.add(sum, found_[i].dense, at_);
    }
    for (const ScopedValue slice : of_slices()) sums.push_back(slice);
    for (const ValueGradient& found : found_) {
      for (const ValueGradient::Rows& rows : found.rows) {
        sums.push_back(rows.indices);
        sums.push_back(rows.rows);
      }
    }
    return sums;
  }

  int32_t add_loop() {
    Node node;
    node.op = &def_of(&ops::loop);
    ScopedValues starts;
    for (size_t i = slices_; i < wanted_.size(); ++i)
      if (wanted_[i]) starts.push_back(asked_.into.zeros(TensorType(inputs_[i].type()), at_));
    RegionScope scope = inner_scope(asked_.into.scope());
    const ScopeBuilder inner = asked_.into.inside(scope);
    inner.parameter({DType::i64, {}}, at_);
    ScopedValues sums, each;
    for (const ScopedValue start : starts) sums.push_back(inner.parameter(start.type(), at_));
    for (const ScopedValue array : walked_)
      each.push_back(MapNode::slice_parameter(inner, array, at_));
    find(inner, each);
    set_results(inner, of_trip(inner, sums));
    for (const ScopedValues* const list : {&starts, &walked_})
      for (const ScopedValue value : *list) node.inputs.push_back(asked_.into.value_of(value));
    for (const Value value : unify_captures({{&scope, 1 + starts.size() + walked_.size()}}))
      node.inputs.push_back(value);
    node.regions = {scope.region};
    add_result_types(inner, node);
    for (size_t r = starts.size(); r < node.results.size(); ++r)
      node.results[r].shape.insert(0, trips_);
    LoopAttrs attrs;
    attrs.carries = std::ssize(starts);
    attrs.slices = std::ssize(walked_);
    attrs.stacked = std::ssize(node.results) - attrs.carries;
    attrs.trips = trips_;
    node.attrs = attrs.attrs();
    return add_control(asked_.into.scope(), std::move(node), at_);
  }

  ValueGradients in_a_loop() {
    const ScopedValues given = results_of(asked_.into, add_loop());
    const auto first = wanted_.begin() + static_cast<int64_t>(slices_);
    size_t sum = 0, element = static_cast<size_t>(std::count(first, wanted_.end(), true));
    ValueGradients all(wanted_.size());
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      const ScopedValue dense = given[i < slices_ ? element++ : sum++];
      if (found_[i].dense) all[i].dense = dense;
    }
    for (size_t i = 0; i < wanted_.size(); ++i) {
      for (size_t row = 0; row < found_[i].rows.size(); ++row) {
        const ScopedValue indices = given[element++];
        all[i].rows.push_back({indices, given[element++]});
      }
    }
    return all;
  }

  const ControlQuestion& asked_;
  const Node node_;
  const std::vector<bool>& wanted_;
  const Source at_;
  const ScopedValues inputs_;
  ScopedValues walked_;
  size_t slices_ = 0;
  Dim trips_ = 0, alive_ = 1;
  ValueGradients found_;  // Values of the body.
};

// ---- call ---------------------------------------------------------------------------------------

// All values of a list of gradients, in a fixed order.
std::vector<ScopedValue*> values_of(ValueGradients& list) {
  std::vector<ScopedValue*> values;
  for (ValueGradient& each : list) {
    if (each.dense) values.push_back(&each.dense);
    for (ValueGradient::Rows& rows : each.rows) {
      values.push_back(&rows.indices);
      values.push_back(&rows.rows);
    }
  }
  return values;
}

// In a map of one trip, so that its nodes are not merged with the equal nodes that ran before.
ValueGradients recomputed_gradient(const ControlQuestion& asked) {
  const Node node = asked.node();
  const GradientSettings& settings = asked.settings;
  if (settings.recomputed != nullptr) settings.recomputed->push_back(node.source);
  if (settings.history != nullptr && settings.is_inside) settings.history->can_repeat = false;
  const ScopedValues inputs = values_in(asked.scope, node.inputs);
  ValueGradients found;
  const auto body = [&](const ScopeBuilder& inner, const ScopedValues&) {
    found = RegionAgain{asked, node.regions[0], inputs, asked.gradients}.found(inner, asked.wanted,
                                                                               asked.variables);
    ScopedValues given;
    for (const ScopedValue* each : values_of(found)) given.push_back(*each);
    return given;
  };
  const ScopedValues given = MapNode{.trips = 1}.add(asked.into, asked.at, body);
  const std::vector<ScopedValue*> places = values_of(found);
  for (size_t i = 0; i < places.size(); ++i) {
    Shape shape = given[i].type().shape;
    shape.erase(0);
    *places[i] = asked.into.reshape(given[i], shape, asked.at);
  }
  ValueGradients all(asked.wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < asked.wanted.size(); ++i)
    if (asked.wanted[i]) all[i] = std::move(found[next++]);
  return all;
}

// A gradient function returns no gradients for captures other than arguments and Variables.
void check_captures(const ControlQuestion& asked, const Node& node, std::span<const int64_t> by) {
  for (size_t i = 0; i < asked.wanted.size(); ++i) {
    if (!asked.wanted[i] || std::find(by.begin(), by.end(), static_cast<int64_t>(i)) != by.end())
      continue;
    std::vector<bool> only(asked.wanted.size());
    only[i] = true;
    const std::vector<bool> depending = depending_results(asked.graph(), node.regions[0], only);
    const auto end = depending.begin() + node.attrs.read().integer();
    if (std::find(depending.begin(), end, true) != end) refuse_capture(asked.at);
  }
}

ScopedValues call_gradient(const ControlQuestion& asked) {
  const Node node = asked.node();
  const ScopeBuilder& into = asked.into;
  const ScopedValues inputs = values_in(asked.scope, node.inputs);
  Attrs::Reader read = node.attrs.read();
  const auto outputs = static_cast<size_t>(read.integer());
  const std::span<const int64_t> saved = read.integers(), by = read.integers();
  check_captures(asked, node, by);
  std::vector<Value> parameters;
  for (const int64_t each : saved) {
    const int64_t result = each - std::ssize(inputs);
    parameters.push_back(into.value_of(
        result < 0 ? inputs[static_cast<size_t>(each)]
                   : ScopedValue{{asked.number, static_cast<int16_t>(result)}, asked.scope}));
  }
  for (size_t r = 0; r < outputs; ++r)
    parameters.push_back(into.value_of(asked.gradients[r] ? asked.gradients[r]
                                                          : into.zeros(node.results[r], asked.at)));
  Graph& graph = asked.graph();
  const std::vector<Value> own =
      append_copy(graph, node.regions[1], graph, into.scope().region, parameters, is_effect);
  ScopedValues given(asked.wanted.size());
  // Values that are only kept for the gradient function are differentiated through f itself.
  ScopedValues of_kept = asked.gradients;
  std::fill_n(of_kept.begin(), outputs, ScopedValue());
  if (std::any_of(of_kept.begin(), of_kept.end(), [](ScopedValue g) { return bool{g}; }))
    given = spread(RegionAgain{asked, node.regions[0], inputs, of_kept}.dense(into, asked.wanted),
                   asked.wanted);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto input = static_cast<size_t>(by[i]);
    if (!asked.wanted[input]) continue;
    const ScopedValue gradient = into.own(own[i]);
    given[input] = given[input] ? into.add(given[input], gradient, asked.at) : gradient;
  }
  return given;
}

}  // namespace

void refuse_capture(Source at) {
  throw UserError(
      "custom_gradient: the function reads a watched tensor that is not an argument, so no "
      "gradient "
      "would flow to it",
      at, "pass it as an argument, or make it a constant: td::stop_gradient(x)");
}

ValueGradients control_gradient(const ControlQuestion& asked) {
  const Node& node = asked.graph().nodes[static_cast<size_t>(asked.number)];
  switch (node.op->flow) {
    case Flow::call:
      return node.regions.size() == 1 ? recomputed_gradient(asked)
                                      : all_dense(call_gradient(asked));
    case Flow::cond:
      return all_dense(cond_gradient(asked));
    case Flow::map:
      return MapGradient(asked).run();
    case Flow::reverse_loop:
      return all_dense(reverse_loop_gradient(asked));
    default:
      return loop_gradient(asked);
  }
}

}  // namespace tidemark::passes

// The gradient of a `reverse_loop` node: gradients of second and higher order.
//
// One reverse trip is linear in the gradient b that it carries: b = M(s) b', where s is the state
// that the trip starts from. So the derivative of its results by the states is found without a
// reverse loop: the gradient t of b is carried forward through the trips, t' = M(s)^T t, beside the
// states, and
//
//   <t, b> at the start = <t, b> at the end.
//
// The gradient of the right-hand side is that of an ordinary loop, which carries s and t and keeps
// what the original loop was told to keep. It needs no bound on the trips, and is itself
// differentiable.
#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/gradient/loop_gradient.h"

namespace tidemark::passes {
namespace {

std::vector<Value> joined(std::initializer_list<const std::vector<Value>*> lists) {
  std::vector<Value> all;
  for (const std::vector<Value>* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

class TangentLoop {
 public:
  explicit TangentLoop(const ControlQuestion& asked)
      : asked_(asked),
        graph_(asked.graph()),
        into_(asked.into),
        node_(asked.node()),
        attrs_(node_),
        back_(graph_.regions[static_cast<size_t>(node_.regions[1])]),
        gradients_(asked.gradients),
        at_(asked.at),
        carries_(static_cast<size_t>(attrs_.carries)),
        backs_(static_cast<size_t>(attrs_.backs)),
        seeds_(static_cast<size_t>(attrs_.seeds)),
        slices_(static_cast<size_t>(attrs_.slices) - seeds_) {
    for (const Value input : node_.inputs)
      inputs_.push_back(into_.distinct_value({input, asked.scope}, inputs_, at_));
    if (attrs_.counted) count_ = into_.first_element(into_.own(inputs_[0]), at_);
    for (size_t k = 0; k < backs_; ++k) is_active_.push_back(gradients_[k] && !is_end(k));
  }

  // The gradients of the wanted inputs of the node.
  ScopedValues run() {
    while (!add()) {
    }
    return gradients_by(asked_.wanted);
  }

 private:
  // The state that a carry of the reverse loop holds at the end of a trip; -1 if it holds none.
  int64_t state_of(size_t back) const {
    const auto first = back_.parameters.begin() + 1, end = first + attrs_.carries;
    const auto found = std::find(first, end, back_.results[back]);
    return found == end ? -1 : found - first;
  }
  bool is_end(size_t back) const { return state_of(back) >= 0; }
  // Indices of parameters of the reverse body, and of inputs of the node.
  size_t first_slice() const { return 1 + carries_ + backs_; }
  size_t first_sliced() const { return 1 + 2 * carries_ + backs_; }

  // New parameters of a body, with the types of these parameters of the reverse body.
  std::vector<Value> parameters(const ScopeBuilder& inner, size_t first, size_t count) const {
    std::vector<Value> made;
    for (size_t i = first; i < first + count; ++i)
      made.push_back(add_parameter(inner, back_.parameters[i]));
    return made;
  }
  Value add_parameter(const ScopeBuilder& inner, Value like) const {
    return inner.parameter(graph_.type(like), at_).value;
  }
  Value zeros_like(const ScopeBuilder& inner, Value value) const {
    return inner.apart(inner.zeros(graph_.type(value), at_), at_).value;
  }

  // Adds the loop. Returns false if its body shows that more carries have gradients than assumed.
  bool add() {
    RegionScope scope = inner_scope(into_.scope());
    const ScopeBuilder inner = into_.inside(scope);
    const std::vector<Value> trip = parameters(inner, 0, 1);
    const std::vector<Value> states = parameters(inner, 1, carries_);
    tangents_.assign(backs_, {});
    for (size_t k = 0; k < backs_; ++k)
      if (is_active_[k]) tangents_[k] = add_parameter(inner, back_.parameters[1 + carries_ + k]);
    const std::vector<Value> slices = parameters(inner, first_slice(), slices_);
    elements_.clear();
    for (size_t r = backs_; r < node_.results.size(); ++r)
      if (gradients_[r]) elements_.push_back(add_parameter(inner, back_.results[r]));
    const size_t first_capture = first_slice() + slices_ + seeds_;
    const std::vector<Value> captures =
        parameters(inner, first_capture, back_.parameters.size() - first_capture);
    // The values in which the reverse trip is linear are arbitrary here: no gradient reads them.
    std::vector<Value> seeds, backs;
    for (size_t i = 0; i < seeds_; ++i)
      seeds.push_back(zeros_like(inner, back_.parameters[first_slice() + slices_ + i]));
    const std::vector<Value> next =
        copy(inner, 0, joined({&trip, &states, &slices, &seeds, &captures}));
    for (size_t k = 0; k < backs_; ++k)
      backs.push_back(is_end(k) ? next[static_cast<size_t>(state_of(k))]
                                : zeros_like(inner, back_.parameters[1 + carries_ + k]));
    const auto first = static_cast<int32_t>(graph_.nodes.size());
    const std::vector<Value> results =
        copy(inner, 1, joined({&trip, &states, &backs, &slices, &seeds, &captures}));
    if (!go_back(inner, first, results, backs, seeds)) return false;
    add_node(scope, {trip, states, slices, captures}, next);
    return true;
  }

  std::vector<Value> copy(const ScopeBuilder& inner, size_t which,
                          const std::vector<Value>& values) const {
    return append_copy(graph_, node_.regions[which], graph_, inner.scope().region, values,
                       is_effect);
  }

  // Differentiates the nodes of the reverse trip by the values in which they are linear.
  bool go_back(const ScopeBuilder& inner, int32_t first, const std::vector<Value>& results,
               const std::vector<Value>& backs, const std::vector<Value>& seeds) {
    Differentiation asked = question(inner.scope());
    const auto end = static_cast<int32_t>(graph_.nodes.size());
    asked.nodes = {{first, end}};
    for (size_t k = 0; k < backs_; ++k) {
      if (is_active_[k]) asked.seeds.emplace_back(results[k], inner.own(tangents_[k]));
      asked.sources.push_back(backs[k]);
      if (!is_end(k)) asked.watched.push_back(backs[k]);
    }
    size_t element = 0;
    for (size_t r = backs_; r < results.size(); ++r)
      if (gradients_[r]) asked.seeds.emplace_back(results[r], inner.own(elements_[element++]));
    for (std::vector<Value>* list : {&asked.sources, &asked.watched})
      list->insert(list->end(), seeds.begin(), seeds.end());
    const ValueGradients found = differentiate(asked, at_);
    const auto value = [&](size_t i, Value like) {
      return found[i].dense ? inner.value_of(found[i].dense) : zeros_like(inner, like);
    };
    bool is_settled = true;
    next_.clear();
    of_seeds_.clear();
    for (size_t k = 0; k < backs_; ++k) {
      const bool has_one = found[k].dense && !is_end(k);
      is_settled = is_settled && (is_active_[k] || !has_one);
      is_active_[k] = is_active_[k] || has_one;
      next_.push_back(is_active_[k] ? value(k, backs[k]) : Value{});
    }
    for (size_t i = 0; i < seeds_; ++i) of_seeds_.push_back(value(backs_ + i, seeds[i]));
    return is_settled;
  }

  // Whether the gradient of a carry changes from trip to trip; that of a sum does not.
  bool moves(size_t back) const { return is_active_[back] && next_[back] != tangents_[back]; }
  bool is_fixed(size_t back) const { return is_active_[back] && next_[back] == tangents_[back]; }

  struct Inside {
    std::vector<Value> trip, states, slices, captures;
  };
  void add_node(const RegionScope& inner, const Inside& inside, std::vector<Value> results) {
    Node node;
    node.op = &def_of(&ops::loop);
    std::vector<Value> moving, fixed, captured;
    const auto give = [&](ScopedValue value) { node.inputs.push_back(into_.value_of(value)); };
    if (count_) give(count_);
    for (size_t k = 0; k < carries_; ++k) node.inputs.push_back(inputs_[1 + carries_ + k]);
    for (size_t k = 0; k < backs_; ++k) {
      if (!moves(k)) continue;
      give(gradients_[k] ? gradients_[k] : into_.zeros(node_.results[k], at_));
      moving.push_back(tangents_[k]);
      results.push_back(next_[k]);
    }
    LoopAttrs attrs;
    attrs.carries = std::ssize(results);
    for (size_t i = 0; i < slices_; ++i) node.inputs.push_back(inputs_[first_sliced() + i]);
    for (size_t r = backs_; r < gradients_.size(); ++r)
      if (gradients_[r]) give(gradients_[r]);
    for (size_t i = first_sliced() + slices_ + seeds_; i < inputs_.size(); ++i)
      node.inputs.push_back(inputs_[i]);
    for (size_t k = 0; k < backs_; ++k) {
      if (!is_fixed(k)) continue;
      give(gradients_[k]);
      fixed.push_back(tangents_[k]);
    }
    for (const Value value : inner.captured) {
      node.inputs.push_back(value);
      captured.push_back(inner.parameter_of.at(key_of(value)));
    }
    results.insert(results.end(), of_seeds_.begin(), of_seeds_.end());
    attrs.slices = static_cast<int64_t>(slices_) + std::ssize(elements_);
    attrs.stacked = static_cast<int64_t>(seeds_);
    attrs.trips = attrs_.trips;
    attrs.reverse = attrs_.reverse;
    attrs.counted = attrs_.counted;
    attrs.save = attrs_.save;
    attrs.amount = attrs_.amount;
    node.attrs = attrs.attrs();
    for (const Value value : results) {
      node.results.push_back(graph_.type(value));
      if (std::ssize(node.results) > attrs.carries)
        node.results.back().shape.insert(0, attrs_.trips);
    }
    Region& region = graph_.regions[static_cast<size_t>(inner.region)];
    region.results = std::move(results);
    region.parameters = joined({&inside.trip, &inside.states, &moving, &inside.slices, &elements_,
                                &inside.captures, &fixed, &captured});
    node.regions = {inner.region};
    loop_ = add_control(into_.scope(), std::move(node), at_);
  }

  // The sum of two parts: results of the loop, and gradients of the loop.
  ScopedValues gradients_by(const std::vector<bool>& wanted) const {
    ScopedValues given(wanted.size());
    Differentiation asked = question(into_.scope());
    asked.nodes = {{loop_, loop_ + 1}};
    auto result = static_cast<int16_t>(carries_);
    for (size_t k = 0; k < backs_; ++k) {
      const size_t input = 1 + 2 * carries_ + k;
      if (is_fixed(k)) given[input] = gradients_[k];
      if (!moves(k)) continue;
      const Value last{loop_, result++};
      given[input] = into_.own(last);
      asked.seeds.emplace_back(last, into_.own(inputs_[input]));
    }
    for (size_t i = 0; i < seeds_; ++i) {
      const size_t input = first_sliced() + slices_ + i;
      const Value stacked{loop_, result++};
      given[input] = into_.own(stacked);
      if (count_) given[input] = into_.zeros_behind(given[input], count_, at_);
      asked.seeds.emplace_back(stacked, into_.own(inputs_[input]));
    }
    std::vector<size_t> by;
    for (size_t i = 1 + carries_; i < wanted.size(); ++i) {
      const bool is_linear =
          (i >= 1 + 2 * carries_ && i < first_sliced()) ||
          (i >= first_sliced() + slices_ && i < first_sliced() + slices_ + seeds_);
      if (!wanted[i] || is_linear) continue;
      by.push_back(i);
      asked.watched.push_back(inputs_[i]);
    }
    asked.sources = asked.watched;
    const ValueGradients found = differentiate(asked, at_);
    for (size_t i = 0; i < by.size(); ++i) given[by[i]] = found[i].dense;
    return given;
  }

  Differentiation question(RegionScope& scope) const {
    return {.scope = &scope, .into = &scope, .settings = &asked_.settings};
  }

  const ControlQuestion& asked_;
  Graph& graph_;
  const ScopeBuilder into_;
  const Node node_;
  const ReverseAttrs attrs_;
  const Region back_;
  const ScopedValues& gradients_;  // Of the node's results.
  const Source at_;
  size_t carries_, backs_, seeds_, slices_;
  std::vector<Value> inputs_;  // The inputs of the node, in the scope that gradients are added to.
  ScopedValue count_;          // The number of trips, if it is known only at run time.
  std::vector<bool> is_active_;  // The carries of the reverse loop that have gradients.
  // Values of the body: the gradients of carries before and after a trip, those of stacked values,
  // and the gradients of the seeds.
  std::vector<Value> tangents_, next_, elements_, of_seeds_;
  int32_t loop_ = -1;
};

// ---- nonlinear reverse trips --------------------------------------------------------------------

// A reverse_loop as two ordinary loops that keep all states: one forward, one in reverse.
class TwoLoops {
 public:
  explicit TwoLoops(const ControlQuestion& asked)
      : graph_(asked.graph()),
        into_(asked.into),
        node_(asked.node()),
        attrs_(node_),
        at_(asked.at) {
    for (const Value input : node_.inputs)
      inputs_.push_back(into_.distinct_value({input, asked.scope}, inputs_, at_));
    if (attrs_.counted) count_ = into_.first_element({node_.inputs[0], asked.scope}, at_);
  }

  const std::vector<Value>& inputs() const { return inputs_; }

  // Adds both loops and returns the number of the reverse one.
  int32_t add() {
    const auto carries = static_cast<size_t>(attrs_.carries);
    const std::vector<Value> starts = list(1 + carries, carries);
    const std::vector<Value> backs = list(1 + 2 * carries, static_cast<size_t>(attrs_.backs));
    const size_t next = 1 + 2 * carries + backs.size();
    const std::vector<Value> rest = list(next, inputs_.size() - next);
    const int32_t through = add_loop(false, starts, {}, rest);
    std::vector<Value> states;
    for (size_t k = 0; k < carries; ++k)
      states.push_back({through, static_cast<int16_t>(carries + k)});
    return add_loop(true, backs, states, rest);
  }

 private:
  std::vector<Value> list(size_t first, size_t count) const {
    const auto begin = inputs_.begin() + static_cast<int64_t>(first);
    return {begin, begin + static_cast<int64_t>(count)};
  }

  // `rest` has the scanned arrays, then the captures. The reverse loop scans the states too.
  int32_t add_loop(bool is_back, const std::vector<Value>& carried,
                   const std::vector<Value>& states, const std::vector<Value>& rest) {
    Node node;
    node.op = &def_of(&ops::loop);
    if (count_) node.inputs.push_back(into_.value_of(count_));
    for (const std::vector<Value>* each : {&carried, &states, &rest})
      for (const Value value : *each) node.inputs.push_back(value);
    RegionScope scope = inner_scope(into_.scope());
    const ScopeBuilder inner = into_.inside(scope);
    const RegionId from = node_.regions[is_back ? 1 : 0];
    const std::vector<Value> old = graph_.regions[static_cast<size_t>(from)].parameters;
    const auto parameters = [&](size_t first, size_t count) {
      std::vector<Value> made;
      for (size_t i = first; i < first + count; ++i)
        made.push_back(inner.parameter(graph_.type(old[i]), at_).value);
      return made;
    };
    const auto states_count = static_cast<size_t>(attrs_.carries);
    const ScopedValue trip = inner.parameter({DType::i64, {}}, at_);
    const std::vector<Value> own =
        is_back ? parameters(1 + states_count, carried.size()) : parameters(1, states_count);
    const std::vector<Value> walked = is_back ? parameters(1, states_count) : std::vector<Value>();
    std::vector<Value> values = {trip.value};
    const size_t first_rest = old.size() - rest.size();
    const std::vector<Value> others = parameters(first_rest, rest.size());
    if (is_back) {
      const ScopedValue last = inner.last_trip(count_, attrs_.trips, at_);
      values = {inner.subtract(last, trip, at_).value};
      values.insert(values.end(), walked.begin(), walked.end());
    }
    values.insert(values.end(), own.begin(), own.end());
    values.insert(values.end(), others.begin(), others.end());
    std::vector<Value> results = append_copy(graph_, from, graph_, scope.region, values, is_effect);
    if (!is_back) results.insert(results.end(), own.begin(), own.end());
    for (const Value value : scope.captured) node.inputs.push_back(value);
    LoopAttrs attrs;
    attrs.carries = std::ssize(carried);
    attrs.slices = std::ssize(walked) + attrs_.slices;
    attrs.stacked = std::ssize(results) - attrs.carries;
    attrs.trips = attrs_.trips;
    attrs.reverse = attrs_.reverse != is_back;
    attrs.counted = bool{count_};
    node.attrs = attrs.attrs();
    for (const Value value : results) {
      node.results.push_back(graph_.type(value));
      if (std::ssize(node.results) > attrs.carries)
        node.results.back().shape.insert(0, attrs_.trips);
    }
    inner.region().results = std::move(results);
    node.regions = {scope.region};
    return add_control(into_.scope(), std::move(node), at_);
  }

  Graph& graph_;
  const ScopeBuilder into_;
  const Node node_;
  const ReverseAttrs attrs_;
  const Source at_;
  std::vector<Value> inputs_;
  ScopedValue count_;
};

// The gradient of the two loops.
ScopedValues two_loops_gradient(const ControlQuestion& asked) {
  TwoLoops loops(asked);
  const auto first = static_cast<int32_t>(asked.graph().nodes.size());
  const int32_t back = loops.add();
  Differentiation inner{
      .scope = &asked.into.scope(), .into = &asked.into.scope(), .settings = &asked.settings};
  inner.nodes = {{first, back + 1}};
  for (size_t i = 0; i < asked.wanted.size(); ++i)
    if (asked.wanted[i]) inner.watched.push_back(loops.inputs()[i]);
  inner.sources = inner.watched;
  for (size_t r = 0; r < asked.gradients.size(); ++r)
    if (asked.gradients[r])
      inner.seeds.emplace_back(Value{back, static_cast<int16_t>(r)}, asked.gradients[r]);
  const ValueGradients found = differentiate(inner, asked.at);
  ScopedValues given(asked.wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < asked.wanted.size(); ++i)
    if (asked.wanted[i]) given[i] = found[next++].dense;
  return given;
}

}  // namespace

ScopedValues reverse_loop_gradient(const ControlQuestion& asked) {
  const ReverseAttrs attrs(asked.node());
  if (attrs.linear) return TangentLoop(asked).run();
  if (attrs.trips.is_any())
    throw UserError(
        "gradient: the gradient of this loop is not differentiable: its number of trips has no "
        "bound, and its body has a custom_gradient or a max_pool, whose gradients may be nonlinear",
        asked.at, "give max_iterations, or plain numbers for the bounds of fori_loop");
  return two_loops_gradient(asked);
}

}  // namespace tidemark::passes

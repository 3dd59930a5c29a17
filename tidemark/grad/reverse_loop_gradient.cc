// The gradient of what walks a loop backwards: second order, and higher ones.
//
// Going back is linear in what it carries: b = M(s) b', where s is the state that the trip starts
// from. So what its results have to do with the states is found without going back: the gradient t
// of b goes through the trips forwards, t' = M(s)^T t, beside the states, and
//
//   <t, b> at the start = <t, b> at the end.
//
// The gradient of the right side is that of an ordinary loop, which carries s and t, and keeps what
// the first one was told to keep. It needs no bound on the trips, and has gradients like any other.
#include <algorithm>

#include "tidemark/calls/ops.h"
#include "tidemark/grad/gradients.h"
#include "tidemark/grad/loop_gradient.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/program.h"

namespace tidemark::detail {
namespace {

std::vector<Value> joined(std::initializer_list<const std::vector<Value>*> lists) {
  std::vector<Value> all;
  for (const std::vector<Value>* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

class TangentLoop {
 public:
  TangentLoop(TraceScope* scope, const Node& node, const Tensors& gradients, Source at)
      : graph_(scope->trace->graph()),
        node_(node),
        attrs_(node),
        back_(graph_.regions[static_cast<size_t>(node.regions[1])]),
        gradients_(gradients),
        at_(at),
        carries_(static_cast<size_t>(attrs_.carries)),
        backs_(static_cast<size_t>(attrs_.backs)),
        seeds_(static_cast<size_t>(attrs_.seeds)),
        slices_(static_cast<size_t>(attrs_.slices) - seeds_) {
    for (const Value input : node.inputs)
      inputs_.push_back(distinct_value(tensor_in(scope, input, at), inputs_, at));
    if (attrs_.counted) count_ = traced_tensor(inputs_[0], at)[Slices(0, at)];
    for (size_t k = 0; k < backs_; ++k)
      is_active_.push_back(gradients[k].has_value() && !is_end(k));
  }

  // By those inputs of the node that are wanted.
  Tensors run(const std::vector<bool>& wanted) {
    while (!add()) {
    }
    return gradients_by(wanted);
  }

 private:
  // The state that a back is, at the end of a trip; -1: it is none.
  int64_t state_of(size_t back) const {
    const auto first = back_.parameters.begin() + 1, end = first + attrs_.carries;
    const auto found = std::find(first, end, back_.results[back]);
    return found == end ? -1 : found - first;
  }
  bool is_end(size_t back) const { return state_of(back) >= 0; }
  // Parameters of going back, and inputs of the node.
  size_t first_slice() const { return 1 + carries_ + backs_; }
  size_t first_sliced() const { return 1 + 2 * carries_ + backs_; }

  // Parameters of a body, for some of those of going back.
  std::vector<Value> parameters(InnerScope& inner, size_t first, size_t count) const {
    std::vector<Value> made;
    for (size_t i = first; i < first + count; ++i)
      made.push_back(add_parameter(inner, back_.parameters[i]));
    return made;
  }
  Value add_parameter(InnerScope& inner, Value like) const {
    return value_of(inner.parameter(TensorType(graph_.type(like)), at_), at_);
  }
  Value zeros_like(Value value) const {
    return value_of(apart(zeros_of(TensorType(graph_.type(value)), at_), at_), at_);
  }

  // The loop. False where its body shows that more backs have gradients than was thought.
  bool add() {
    InnerScope inner("the gradient of a loop walked backwards", at_);
    const std::vector<Value> trip = parameters(inner, 0, 1);
    const std::vector<Value> states = parameters(inner, 1, carries_);
    tangents_.assign(backs_, {});
    for (size_t k = 0; k < backs_; ++k)
      if (is_active_[k]) tangents_[k] = add_parameter(inner, back_.parameters[1 + carries_ + k]);
    const std::vector<Value> slices = parameters(inner, first_slice(), slices_);
    elements_.clear();
    for (size_t r = backs_; r < node_.results.size(); ++r)
      if (gradients_[r].has_value()) elements_.push_back(add_parameter(inner, back_.results[r]));
    const size_t first_capture = first_slice() + slices_ + seeds_;
    const std::vector<Value> captures =
        parameters(inner, first_capture, back_.parameters.size() - first_capture);
    // What going back is linear in may be anything: no gradient reads it.
    std::vector<Value> seeds, backs;
    for (size_t i = 0; i < seeds_; ++i)
      seeds.push_back(zeros_like(back_.parameters[first_slice() + slices_ + i]));
    const std::vector<Value> next =
        copy(inner, 0, joined({&trip, &states, &slices, &seeds, &captures}));
    for (size_t k = 0; k < backs_; ++k)
      backs.push_back(is_end(k) ? next[static_cast<size_t>(state_of(k))]
                                : zeros_like(back_.parameters[1 + carries_ + k]));
    const auto first = static_cast<int32_t>(graph_.nodes.size());
    const std::vector<Value> results =
        copy(inner, 1, joined({&trip, &states, &backs, &slices, &seeds, &captures}));
    if (!go_back(first, results, backs, seeds)) return false;
    const EnterScope behind(inner.scope()->parent);
    add_node(inner, {trip, states, slices, captures}, next);
    return true;
  }

  std::vector<Value> copy(InnerScope& inner, size_t which, const std::vector<Value>& values) const {
    return append_copy(graph_, node_.regions[which], graph_, inner.region(), values, is_effect);
  }

  // Over the nodes that go back, by what these are linear in.
  bool go_back(int32_t first, const std::vector<Value>& results, const std::vector<Value>& backs,
               const std::vector<Value>& seeds) {
    Differentiation asked;
    asked.scope = current_scope();
    const auto end = static_cast<int32_t>(graph_.nodes.size());
    asked.is_recorded = [&](int32_t node) { return node >= first && node < end; };
    for (size_t k = 0; k < backs_; ++k) {
      if (is_active_[k]) asked.seeds.emplace_back(results[k], traced_tensor(tangents_[k], at_));
      asked.sources.push_back(backs[k]);
      if (!is_end(k)) asked.watched.push_back(backs[k]);
    }
    size_t element = 0;
    for (size_t r = backs_; r < results.size(); ++r)
      if (gradients_[r].has_value())
        asked.seeds.emplace_back(results[r], traced_tensor(elements_[element++], at_));
    for (std::vector<Value>* list : {&asked.sources, &asked.watched})
      list->insert(list->end(), seeds.begin(), seeds.end());
    const std::vector<PartialGradient> found = differentiate(asked, at_);
    const auto value = [&](size_t i, Value like) {
      return found[i].dense.has_value() ? value_of(found[i].dense, at_) : zeros_like(like);
    };
    bool is_settled = true;
    next_.clear();
    of_seeds_.clear();
    for (size_t k = 0; k < backs_; ++k) {
      const bool has_one = found[k].dense.has_value() && !is_end(k);
      is_settled = is_settled && (is_active_[k] || !has_one);
      is_active_[k] = is_active_[k] || has_one;
      next_.push_back(is_active_[k] ? value(k, backs[k]) : Value{});
    }
    for (size_t i = 0; i < seeds_; ++i) of_seeds_.push_back(value(backs_ + i, seeds[i]));
    return is_settled;
  }

  // Whether the gradient of a back changes from trip to trip; that of a sum does not.
  bool moves(size_t back) const { return is_active_[back] && next_[back] != tangents_[back]; }
  bool is_fixed(size_t back) const { return is_active_[back] && next_[back] == tangents_[back]; }

  struct Inside {
    std::vector<Value> trip, states, slices, captures;
  };
  void add_node(InnerScope& inner, const Inside& inside, std::vector<Value> results) {
    Node node;
    node.op = &def_of(&ops::loop);
    node.source = at_.resolve();
    std::vector<Value> moving, fixed, captured;
    const auto give = [&](const Tensor& tensor) { node.inputs.push_back(value_of(tensor, at_)); };
    if (count_.has_value()) give(count_);
    for (size_t k = 0; k < carries_; ++k) node.inputs.push_back(inputs_[1 + carries_ + k]);
    for (size_t k = 0; k < backs_; ++k) {
      if (!moves(k)) continue;
      give(gradients_[k].has_value() ? gradients_[k] : zeros_of(node_.results[k], at_));
      moving.push_back(tangents_[k]);
      results.push_back(next_[k]);
    }
    LoopAttrs attrs;
    attrs.carries = std::ssize(results);
    for (size_t i = 0; i < slices_; ++i) node.inputs.push_back(inputs_[first_sliced() + i]);
    for (size_t r = backs_; r < gradients_.size(); ++r)
      if (gradients_[r].has_value()) give(gradients_[r]);
    for (size_t i = first_sliced() + slices_ + seeds_; i < inputs_.size(); ++i)
      node.inputs.push_back(inputs_[i]);
    for (size_t k = 0; k < backs_; ++k) {
      if (!is_fixed(k)) continue;
      give(gradients_[k]);
      fixed.push_back(tangents_[k]);
    }
    for (const Value value : inner.scope()->captured) {
      node.inputs.push_back(value);
      captured.push_back(inner.scope()->parameter_of.at({value.node, value.result}));
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
    Region& region = graph_.regions[static_cast<size_t>(inner.region())];
    region.results = std::move(results);
    region.parameters = joined({&inside.trip, &inside.states, &moving, &inside.slices, &elements_,
                                &inside.captures, &fixed, &captured});
    node.regions = {inner.region()};
    loop_ = graph_.add_node(current_scope()->region, std::move(node));
  }

  // What the loop gives is one part, the gradient of the loop the other.
  Tensors gradients_by(const std::vector<bool>& wanted) const {
    Tensors given(wanted.size());
    Differentiation asked;
    asked.scope = current_scope();
    asked.is_recorded = [this](int32_t node) { return node == loop_; };
    auto result = static_cast<int16_t>(carries_);
    for (size_t k = 0; k < backs_; ++k) {
      const size_t input = 1 + 2 * carries_ + k;
      if (is_fixed(k)) given[input] = gradients_[k];
      if (!moves(k)) continue;
      const Value last{loop_, result++};
      given[input] = traced_tensor(last, at_);
      asked.seeds.emplace_back(last, traced_tensor(inputs_[input], at_));
    }
    for (size_t i = 0; i < seeds_; ++i) {
      const size_t input = first_sliced() + slices_ + i;
      const Value stacked{loop_, result++};
      given[input] = traced_tensor(stacked, at_);
      if (count_.has_value()) given[input] = zeros_behind(given[input], count_, at_);
      asked.seeds.emplace_back(stacked, traced_tensor(inputs_[input], at_));
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
    const std::vector<PartialGradient> found = differentiate(asked, at_);
    for (size_t i = 0; i < by.size(); ++i) given[by[i]] = found[i].dense;
    return given;
  }

  Graph& graph_;
  const Node node_;
  const ReverseAttrs attrs_;
  const Region back_;
  const Tensors& gradients_;  // Of the node's results.
  Source at_;
  size_t carries_, backs_, seeds_, slices_;
  std::vector<Value> inputs_;    // Of the node, in the current scope.
  Tensor count_;                 // Of trips, where only the run knows it.
  std::vector<bool> is_active_;  // Of backs: those with gradients.
  // In the body: the gradients of backs before and behind a trip, those of what was stacked, and
  // what is found for the seeds.
  std::vector<Value> tangents_, next_, elements_, of_seeds_;
  int32_t loop_ = -1;
};

// ---- where going back is not linear -------------------------------------------------------------

// The two loops that do what a reversal does and keep all states: through the trips, and back.
class TwoLoops {
 public:
  TwoLoops(TraceScope* scope, const Node& node, Source at)
      : graph_(scope->trace->graph()), node_(node), attrs_(node), at_(at) {
    for (const Value input : node.inputs)
      inputs_.push_back(distinct_value(tensor_in(scope, input, at), inputs_, at));
    if (attrs_.counted) count_ = tensor_in(scope, node.inputs[0], at)[Slices(0, at)];
  }

  const std::vector<Value>& inputs() const { return inputs_; }

  // The number of the loop that goes back.
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

  // `rest`: arrays walked, then captures. Going back walks the states too.
  int32_t add_loop(bool is_back, const std::vector<Value>& carried,
                   const std::vector<Value>& states, const std::vector<Value>& rest) {
    Node node;
    node.op = &def_of(&ops::loop);
    node.source = at_.resolve();
    if (count_.has_value()) node.inputs.push_back(value_of(count_, at_));
    for (const std::vector<Value>* each : {&carried, &states, &rest})
      for (const Value value : *each) node.inputs.push_back(value);
    InnerScope inner("the body of a loop", at_);
    const RegionId from = node_.regions[is_back ? 1 : 0];
    const std::vector<Value> old = graph_.regions[static_cast<size_t>(from)].parameters;
    const auto parameters = [&](size_t first, size_t count) {
      std::vector<Value> made;
      for (size_t i = first; i < first + count; ++i)
        made.push_back(value_of(inner.parameter(TensorType(graph_.type(old[i])), at_), at_));
      return made;
    };
    const auto states_count = static_cast<size_t>(attrs_.carries);
    const Tensor trip = inner.parameter({DType::i64, {}}, at_);
    const std::vector<Value> own =
        is_back ? parameters(1 + states_count, carried.size()) : parameters(1, states_count);
    const std::vector<Value> walked = is_back ? parameters(1, states_count) : std::vector<Value>();
    std::vector<Value> values = {value_of(trip, at_)};
    const size_t first_rest = old.size() - rest.size();
    const std::vector<Value> others = parameters(first_rest, rest.size());
    const std::vector<Value> captured_before = inner.scope()->captured;
    if (is_back) {
      const Tensor now = count_.has_value()
                             ? subtract(subtract(count_, Operand(1, at_), at_), trip, at_)
                             : subtract(Operand(attrs_.trips - 1, at_), trip, at_);
      values = {value_of(now, at_)};
      values.insert(values.end(), walked.begin(), walked.end());
    }
    values.insert(values.end(), own.begin(), own.end());
    values.insert(values.end(), others.begin(), others.end());
    std::vector<Value> results =
        append_copy(graph_, from, graph_, inner.region(), values, is_effect);
    if (!is_back) results.insert(results.end(), own.begin(), own.end());
    for (const Value value : inner.scope()->captured) node.inputs.push_back(value);
    LoopAttrs attrs;
    attrs.carries = std::ssize(carried);
    attrs.slices = std::ssize(walked) + attrs_.slices;
    attrs.stacked = std::ssize(results) - attrs.carries;
    attrs.trips = attrs_.trips;
    attrs.reverse = attrs_.reverse != is_back;
    attrs.counted = count_.has_value();
    node.attrs = attrs.attrs();
    for (const Value value : results) {
      node.results.push_back(graph_.type(value));
      if (std::ssize(node.results) > attrs.carries)
        node.results.back().shape.insert(0, attrs_.trips);
    }
    graph_.regions[static_cast<size_t>(inner.region())].results = std::move(results);
    node.regions = {inner.region()};
    return graph_.add_node(inner.scope()->parent->region, std::move(node));
  }

  Graph& graph_;
  const Node node_;
  const ReverseAttrs attrs_;
  Source at_;
  std::vector<Value> inputs_;
  Tensor count_;
};

// Of the two loops that keep all states.
Tensors two_loops_gradient(TraceScope* scope, const Node& node, const Tensors& gradients,
                           const std::vector<bool>& wanted, Source at) {
  Graph& graph = scope->trace->graph();
  TwoLoops loops(scope, node, at);
  const auto first = static_cast<int32_t>(graph.nodes.size());
  const int32_t back = loops.add();
  Differentiation asked;
  asked.scope = current_scope();
  asked.is_recorded = [&](int32_t each) { return each >= first && each <= back; };
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) asked.watched.push_back(loops.inputs()[i]);
  asked.sources = asked.watched;
  for (size_t r = 0; r < gradients.size(); ++r)
    if (gradients[r].has_value())
      asked.seeds.emplace_back(Value{back, static_cast<int16_t>(r)}, gradients[r]);
  const std::vector<PartialGradient> found = differentiate(asked, at);
  Tensors given(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) given[i] = found[next++].dense;
  return given;
}

}  // namespace

Tensors reverse_loop_gradient(TraceScope* scope, int32_t number, const Tensors& gradients,
                              const std::vector<bool>& wanted, Source at) {
  const Node node = scope->trace->graph().nodes[static_cast<size_t>(number)];
  const ReverseAttrs attrs(node);
  if (attrs.linear) return TangentLoop(scope, node, gradients, at).run(wanted);
  if (attrs.trips.is_any())
    throw UserError(
        "gradient: the gradient of this loop has none itself: its trips have no bound, and its "
        "body has a custom_gradient or a max_pool, whose gradients need not be linear",
        at, "give max_iterations, or plain numbers for the bounds of fori_loop");
  return two_loops_gradient(scope, node, gradients, wanted, at);
}

}  // namespace tidemark::detail

// The gradient of a loop that keeps only some of its states: a `reverse_loop` node.
#include <algorithm>
#include <map>
#include <set>

#include "tidemark/ops/program.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/types/size.h"

namespace tidemark::passes {
namespace {

std::set<ValueKey> keys_of(const std::vector<Value>& values) {
  std::set<ValueKey> keys;
  for (const Value value : values) keys.insert(key_of(value));
  return keys;
}

// The nodes of a region that its results depend on. Nodes from `behind` on do not count as readers
// of the values in `instead`.
std::set<int32_t> needed_nodes(const Graph& graph, const Region& region,
                               const std::vector<Value>& instead, int32_t behind) {
  const std::set<ValueKey> unread = keys_of(instead);
  std::set<int32_t> needed;
  for (const Value result : region.results) needed.insert(result.node);
  for (size_t i = region.nodes.size(); i-- > 0;) {
    const int32_t number = region.nodes[i];
    if (!needed.contains(number)) continue;
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
      if (number < behind || !unread.contains(key_of(input))) needed.insert(input.node);
  }
  return needed;
}

// Removes the nodes that its results do not depend on.
void prune(const Graph& graph, Region& region) {
  const std::set<int32_t> needed = needed_nodes(graph, region, {}, 0);
  std::erase_if(region.nodes, [&](int32_t number) { return !needed.contains(number); });
}

// Whether a node has a custom gradient, which may be nonlinear. The call that represents the
// assignment of a Variable does not count: its gradient is the identity.
bool has_own_gradient(const Graph& graph, const Node& node) {
  if (node.op->flow != Flow::call || node.regions.size() != 2) return false;
  Attrs::Reader read = node.attrs.read();
  read.integer();
  return !read.integers().empty() ||
         !graph.regions[static_cast<size_t>(node.regions[1])].nodes.empty();
}

// Whether a node of a region has one.
bool has_own_gradient(const Graph& graph, RegionId id) {
  const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(id)].nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    return has_own_gradient(graph, node) ||
           std::any_of(node.regions.begin(), node.regions.end(),
                       [&](RegionId inner) { return has_own_gradient(graph, inner); });
  });
}

class CheckpointedGradient : LoopBackwards {
 public:
  CheckpointedGradient(const ControlQuestion& asked, SaveChoice choice)
      : LoopBackwards(asked), parameters_(region(body_).parameters.size()) {
    attrs_.save = choice.save;
    attrs_.amount = choice.amount;
  }

  ValueGradients run() {
    trace_back();
    choose_ends();
    choose_states();
    trace_ahead();
    keep_checkpoints();
    return add_node();
  }

 private:
  Region& region(RegionId id) { return graph_.regions[static_cast<size_t>(id)]; }
  const TensorType& type_of_parameter(size_t i) { return graph_.type(region(body_).parameters[i]); }
  bool is_slice(size_t i) const { return i > carries_ && i <= carries_ + slices_; }

  // A value that a region reads from outside: a scanned array or a capture.
  struct OuterValue {
    Value outer, ahead, back;
  };

  // The parameters of the loop's body in a region that repeats it.
  std::vector<Value> own_parameters(const ScopeBuilder& inner) {
    std::vector<Value> values;
    for (size_t i = 0; i < parameters_; ++i)
      values.push_back(inner.parameter(type_of_parameter(i), at_).value);
    return values;
  }

  // The region that repeats one trip and computes its gradient.
  void trace_back() {
    RegionScope scope = inner_scope(into_.scope());
    const ScopeBuilder inner = into_.inside(scope);
    back_ = scope.region;
    starts_ = own_parameters(inner);
    const auto first = static_cast<int32_t>(graph_.nodes.size());
    ends_ = append_copy(graph_, body_, graph_, back_, starts_, is_effect);
    behind_ = static_cast<int32_t>(graph_.nodes.size());
    Differentiation asked{.scope = &scope, .into = &scope, .settings = &asked_.settings};
    asked.nodes = {{first, behind_}};
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      const ScopedValue gradient = inner.parameter(type_of_parameter(1 + j), at_);
      of_carries_.push_back(gradient.value);
      asked.seeds.emplace_back(ends_[j], gradient);
      asked.watched.push_back(starts_[1 + j]);
    }
    for (size_t e = 0; e < static_cast<size_t>(attrs_.stacked); ++e) {
      const ScopedValue whole = gradients_[attrs_.stacked_result(e)];
      if (!whole) continue;
      const ScopedValue gradient = inner.parameter(graph_.type(ends_[carries_ + e]), at_);
      elements_.push_back({.outer = {}, .ahead = {}, .back = gradient.value});
      of_elements_.push_back(whole);
      asked.seeds.emplace_back(ends_[carries_ + e], gradient);
    }
    ScopedValues sums;
    for (size_t i = 1 + carries_; i < parameters_; ++i) {
      if (!is_wanted(i)) continue;
      asked.watched.push_back(starts_[i]);
      if (!is_capture(i)) continue;
      sums.push_back(inner.parameter(type_of_parameter(i), at_));
      // Trips that did not run have no rows.
      if (variables_[input_of(i)] && !is_counted()) asked.leaves.push_back(starts_[i]);
    }
    asked.sources = asked.watched;
    set_results(inner, asked.sources, differentiate(asked, at_), sums);
    for (const Value value : scope.captured)
      captures_.push_back(
          {.outer = value, .ahead = {}, .back = scope.parameter_of.at(key_of(value))});
    // The end state of a trip, which the next trip started with.
    std::set<ValueKey> seen;
    for (size_t j = 0; j < carries_; ++j) {
      if (ends_[j].node < first || !seen.insert(key_of(ends_[j])).second) continue;
      end_values_.push_back(ends_[j]);
      end_carries_.push_back(j);
      end_parameters_.push_back(
          graph_.add_parameter(back_, TensorType(graph_.type(ends_[j])), at_));
    }
  }

  void set_results(const ScopeBuilder& inner, const std::vector<Value>& sources,
                   const ValueGradients& found, const ScopedValues& sums) {
    const auto or_zeros = [&](size_t i) {
      return inner.value_of(found[i].dense ? found[i].dense
                                           : inner.zeros(graph_.type(sources[i]), at_));
    };
    std::vector<Value> results, of_rows;
    size_t next = 0, sum = 0;
    for (; next < of_carries_.size(); ++next) results.push_back(or_zeros(next));
    for (size_t i = 1 + carries_; i < parameters_; ++i) {
      if (!is_wanted(i)) continue;
      const size_t source = next++;
      if (is_slice(i)) {
        of_slices_.push_back(or_zeros(source));
        continue;
      }
      const ScopedValue before = sums[sum++];
      const ScopedValue dense = found[source].dense;
      has_dense_.push_back(bool{dense});
      rows_.add(i, found[source].rows, inner, of_rows);
      if (!dense) continue;
      sums_.push_back(before.value);
      results.push_back(inner.add(before, dense, at_).value);
    }
    of_slices_.insert(of_slices_.end(), of_rows.begin(), of_rows.end());
    results.insert(results.end(), of_slices_.begin(), of_slices_.end());
    region(back_).results = std::move(results);
  }

  // If the gradient reads only the start and the end of a trip, the trip need not be repeated: its
  // end is carried along.
  void choose_ends() {
    std::vector<Value> chosen = end_values_;
    for (;;) {
      const std::set<int32_t> needed = needed_nodes(graph_, region(back_), chosen, behind_);
      if (std::erase_if(chosen, [&](Value end) { return needed.contains(end.node); }) == 0) break;
    }
    const std::set<ValueKey> is_chosen = keys_of(chosen);
    std::map<ValueKey, Value> instead;
    std::vector<Value> parameters;
    std::vector<size_t> carries;
    for (size_t i = 0; i < end_values_.size(); ++i) {
      if (!is_chosen.contains(key_of(end_values_[i]))) continue;
      instead.emplace(key_of(end_values_[i]), end_parameters_[i]);
      parameters.push_back(end_parameters_[i]);
      carries.push_back(end_carries_[i]);
    }
    for (const int32_t number : region(back_).nodes) {
      if (number < behind_) continue;
      for (Value& input : graph_.nodes[static_cast<size_t>(number)].inputs)
        if (const auto found = instead.find(key_of(input)); found != instead.end())
          input = found->second;
    }
    prune(graph_, region(back_));
    end_parameters_.clear();
    end_carries_.clear();
    const std::set<ValueKey> read = values_read(graph_, region(back_));
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!read.contains(key_of(parameters[i]))) continue;
      end_parameters_.push_back(parameters[i]);
      end_carries_.push_back(carries[i]);
    }
    // Beside the other carries of the reverse loop.
    std::vector<Value>& results = region(back_).results;
    const auto place = results.end() - std::ssize(of_slices_);
    std::vector<Value> next;
    for (const size_t j : end_carries_) next.push_back(starts_[1 + j]);
    results.insert(place, next.begin(), next.end());
  }

  // The carries that the gradient reads, and those that they depend on.
  void choose_states() {
    std::vector<bool> is_state(carries_);
    const std::set<ValueKey> read_back = values_read(graph_, region(back_));
    for (size_t j = 0; j < carries_; ++j)
      is_state[j] = read_back.contains(key_of(starts_[1 + j])) || attrs_.carries > 62;
    // A loop without states has trips too: any carry serves to count them.
    if (std::find(is_state.begin(), is_state.end(), true) == is_state.end()) is_state[0] = true;
    for (bool grew = true; grew;) {
      grew = false;
      Region part = region(body_);
      part.results.clear();
      for (size_t j = 0; j < carries_; ++j)
        if (is_state[j]) part.results.push_back(region(body_).results[j]);
      prune(graph_, part);
      const std::set<ValueKey> read = values_read(graph_, part);
      for (size_t j = 0; j < carries_; ++j) {
        if (is_state[j] || !read.contains(key_of(part.parameters[1 + j]))) continue;
        is_state[j] = grew = true;
      }
    }
    for (size_t j = 0; j < carries_; ++j)
      if (is_state[j]) states_.push_back(j);
  }

  // The region that repeats one trip: only the states.
  void trace_ahead() {
    RegionScope scope = inner_scope(into_.scope());
    ahead_ = scope.region;
    const std::vector<Value> values = own_parameters(into_.inside(scope));
    const std::vector<Value> results =
        append_copy(graph_, body_, graph_, ahead_, values, is_effect);
    for (const size_t j : states_) region(ahead_).results.push_back(results[j]);
    prune(graph_, region(ahead_));
    const auto parameter = [&](RegionId to, Value like) {
      return graph_.add_parameter(to, TensorType(graph_.type(like)), at_);
    };
    for (OuterValue& element : elements_) element.ahead = parameter(ahead_, element.back);
    for (OuterValue& capture : captures_) capture.ahead = parameter(ahead_, capture.back);
    std::vector<OuterValue> walked;
    const std::set<ValueKey> read_ahead = values_read(graph_, region(ahead_)),
                             read_back = values_read(graph_, region(back_));
    for (size_t i = 1 + carries_; i < parameters_; ++i) {
      if (!read_ahead.contains(key_of(values[i])) && !read_back.contains(key_of(starts_[i])))
        continue;
      const OuterValue given{
          .outer = node_.inputs[input_of(i)], .ahead = values[i], .back = starts_[i]};
      (is_slice(i) ? walked : own_captures_).push_back(given);
    }
    own_slices_ = walked.size();
    elements_.insert(elements_.begin(), walked.begin(), walked.end());
    std::vector<Value> kept = {values[0]};
    for (const size_t j : states_) kept.push_back(values[1 + j]);
    for (const OuterValue& each : elements_) kept.push_back(each.ahead);
    for (const OuterValue& each : own_captures_) kept.push_back(each.ahead);
    for (const OuterValue& each : captures_) kept.push_back(each.ahead);
    region(ahead_).parameters = std::move(kept);
    kept = {starts_[0]};
    for (const size_t j : states_) kept.push_back(starts_[1 + j]);
    for (const std::vector<Value>* list : {&of_carries_, &sums_, &end_parameters_})
      kept.insert(kept.end(), list->begin(), list->end());
    for (const OuterValue& each : elements_) kept.push_back(each.back);
    for (const OuterValue& each : own_captures_) kept.push_back(each.back);
    for (const OuterValue& each : captures_) kept.push_back(each.back);
    region(back_).parameters = std::move(kept);
  }

  Dim slots() {
    const int64_t slots = attrs_.amount;
    if (attrs_.save == LoopAttrs::Save::all) return larger(attrs_.trips, 1);
    if (attrs_.save == LoopAttrs::Save::every) {
      const int64_t every = attrs_.amount;
      return larger((attrs_.trips + (every - 1)) / every, 1) + (every - 1);
    }
    const bool is_exact = !attrs_.counted && node_.regions.size() == 1 && !attrs_.trips.is_traced();
    return is_exact ? std::clamp<int64_t>(slots, 1, std::max<int64_t>(1, attrs_.trips.known_or(1)))
                    : slots;
  }

  // Adds results to the loop for the checkpoints.
  void keep_checkpoints() {
    const Dim slots = this->slots();
    int64_t kept = 0;
    for (const size_t j : states_) kept = j > 62 ? -1 : kept | int64_t{1} << j;
    if (states_.size() == carries_) kept = carries_ > 62 ? -1 : kept;
    if (attrs_.marks != 0) {
      const TensorType& marks = node_.results[static_cast<size_t>(attrs_.marks)];
      if (attrs_.kept == kept && marks.shape[0] == slots * 2) return;
      run_once_more();
    }
    Node& loop = graph_.nodes[static_cast<size_t>(number_)];
    attrs_.marks = std::ssize(loop.results);
    attrs_.kept = kept;
    loop.results.push_back({DType::i64, {slots * 2}});
    for (const size_t j : states_) {
      TensorType rows = loop.results[j];
      rows.shape.insert(0, slots);
      loop.results.push_back(std::move(rows));
    }
    loop.attrs = attrs_.attrs();
  }

  // The loop already keeps other states for another gradient: copies it for this one.
  void run_once_more() {
    Node copy = node_;
    copy.inputs.clear();
    for (const Value input : node_.inputs) copy.inputs.push_back(here(input));
    for (RegionId& inner : copy.regions) inner = copy_region(graph_, inner, is_effect);
    region(copy.regions[0]).results.resize(carries_);
    copy.results.resize(carries_);
    attrs_.stacked = attrs_.saved = attrs_.marks = attrs_.kept = 0;
    copy.attrs = attrs_.attrs();
    number_ = graph_.add_node(into_.scope().region, std::move(copy));
    scope_ = &into_.scope();
  }

  ValueGradients add_node() {
    Node node;
    node.op = &def_of(&ops::reverse_loop);
    node.regions = {ahead_, back_};
    const auto result = [&](size_t number) {
      return here({number_, static_cast<int16_t>(number)});
    };
    std::vector<Value> inputs = {result(static_cast<size_t>(attrs_.marks))};
    for (size_t i = 0; i < states_.size(); ++i)
      inputs.push_back(result(attrs_.first_checkpoint() + i));
    const Node loop = graph_.nodes[static_cast<size_t>(number_)];
    for (const size_t j : states_) inputs.push_back(here(loop.inputs[input_of(1 + j)]));
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      inputs.push_back(into_.value_of(gradient_or_zeros(j)));
    }
    for (const Value sum : sums_) inputs.push_back(into_.zeros(graph_.type(sum), at_).value);
    for (const size_t j : end_carries_) inputs.push_back(result(j));
    for (size_t i = 0; i < elements_.size(); ++i)
      inputs.push_back(i < own_slices_ ? of_loop(elements_[i].outer)
                                       : into_.value_of(of_elements_[i - own_slices_]));
    for (const OuterValue& each : own_captures_) inputs.push_back(of_loop(each.outer));
    for (const OuterValue& each : captures_) inputs.push_back(each.outer);
    for (const Value input : inputs) node.inputs.push_back(input);
    ReverseAttrs attrs;
    attrs.carries = std::ssize(states_);
    attrs.backs = std::ssize(of_carries_) + std::ssize(sums_) + std::ssize(end_parameters_);
    attrs.slices = std::ssize(elements_);
    attrs.stacked = std::ssize(of_slices_);
    attrs.trips = attrs_.trips;
    attrs.reverse = attrs_.reverse;
    attrs.counted = is_counted();
    attrs.linear = !has_own_gradient(graph_, body_);
    attrs.seeds = std::ssize(elements_) - static_cast<int64_t>(own_slices_);
    attrs.save = told_.save;
    attrs.amount = told_.amount;
    node.attrs = attrs.attrs();
    for (const Value value : region(back_).results) {
      node.results.push_back(graph_.type(value));
      if (std::ssize(node.results) > attrs.backs) node.results.back().shape.insert(0, attrs_.trips);
    }
    return gradients_of(add_control(into_.scope(), std::move(node), at_),
                        static_cast<int16_t>(attrs.backs));
  }

  // An input of the loop, in the scope that gradients are added to.
  Value of_loop(Value value) const { return into_.value_of({value, asked_.scope}); }

  // The gradients of the loop's inputs.
  ValueGradients gradients_of(int32_t number, int16_t of_slice) {
    return gradients_from(number, parameters_, of_slice, [&](ScopedValue gradient) {
      return is_counted() ? into_.zeros_behind(gradient, count(), at_) : gradient;
    });
  }

  bool is_counted() const { return attrs_.counted || node_.regions.size() > 1; }
  // The number of trips, if it is known only at run time.
  ScopedValue count() const {
    if (attrs_.counted) return {node_.inputs[0], asked_.scope};
    return into_.first_element({{number_, static_cast<int16_t>(attrs_.marks)}, scope_}, at_);
  }

  const LoopAttrs told_ = LoopAttrs(node_);  // The user's options, before the choice.
  RegionId back_ = -1, ahead_ = -1;
  size_t parameters_;
  std::vector<Value> starts_, ends_;      // The parameters and results of the body, in `back_`.
  int32_t behind_ = 0;                    // The first node of the gradient in `back_`.
  std::vector<Value> of_carries_, sums_;  // Carries of the reverse loop.
  // Ends of trips, and the parameters that hold them.
  std::vector<Value> end_values_, end_parameters_;
  std::vector<size_t> end_carries_;
  std::vector<Value> of_slices_;  // Gradients of slices, and rows.
  std::vector<OuterValue> elements_, own_captures_, captures_;
  // Slices of the loop, first in `elements_`; the gradients of its stacked results follow.
  size_t own_slices_ = 0;
  ScopedValues of_elements_;
  std::vector<size_t> states_;  // The carries that are checkpointed.
};

}  // namespace

ValueGradients checkpointed_gradient(const ControlQuestion& asked, SaveChoice choice) {
  return CheckpointedGradient(asked, choice).run();
}

}  // namespace tidemark::passes

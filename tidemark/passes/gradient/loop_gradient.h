// Gradients of loops.
#pragma once

#include <functional>
#include <set>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/gradient/dependence.h"
#include "tidemark/passes/gradient/differentiate.h"

namespace tidemark::passes {

inline bool is_effect(const Node& node) { return node.op->family == Family::effect; }

// The values that the nodes and the results of a region read.
std::set<ValueKey> values_read(const Graph& graph, const Region& region);

// Row-sparse gradients of Variables that a loop's body looks up in. They are stacked over trips as
// results of the reverse loop, like the gradients of slices.
class StackedRows {
 public:
  // Adds the rows of this parameter, and appends the values to stack to `results`.
  void add(size_t parameter, const std::vector<ValueGradient::Rows>& rows, const ScopeBuilder& body,
           std::vector<Value>& results);
  // Takes the stacked results of the node from number `first` on.
  void give(int32_t node, int16_t first, const ScopeBuilder& into,
            const std::function<ValueGradient&(size_t parameter)>& to) const;

 private:
  std::vector<size_t> parameters_;  // One for each pair of indices and rows.
};

// A loop to differentiate: the part that stacked and checkpointed gradients share.
class LoopBackwards {
 protected:
  explicit LoopBackwards(const ControlQuestion& asked)
      : asked_(asked),
        scope_(asked.scope),
        number_(asked.number),
        into_(asked.into),
        gradients_(asked.gradients),
        wanted_(asked.wanted),
        variables_(asked.variables),
        at_(asked.at),
        graph_(asked.graph()),
        node_(asked.node()),
        attrs_(node_),
        body_(node_.regions[0]),
        carries_(static_cast<size_t>(attrs_.carries)),
        slices_(static_cast<size_t>(attrs_.slices)),
        active_(depending_carries(graph_, node_, wanted_)) {}

  // The index of the node's input for a parameter of the body; the trip has none.
  size_t input_of(size_t parameter) const { return parameter - 1 + attrs_.first_carry(); }
  bool is_wanted(size_t parameter) const { return wanted_[input_of(parameter)]; }
  bool is_capture(size_t parameter) const { return parameter > carries_ + slices_; }
  // A value of the loop's scope, in the scope that gradients are added to.
  Value here(Value value) const { return into_.value_of({value, scope_}); }
  // The gradient of a result, or zeros.
  ScopedValue gradient_or_zeros(size_t result) const {
    return gradients_[result] ? gradients_[result] : into_.zeros(node_.results[result], at_);
  }
  // The gradients of the loop's inputs, from the results of the reverse node: the gradients of
  // active carries, the sums for captures, and from `first_stacked` on the values that are stacked
  // over trips. These are gradients of slices, which `with_rest` completes if trips are missing,
  // and rows.
  template <class WithRest>
  ValueGradients gradients_from(int32_t node, size_t parameters, int16_t first_stacked,
                                WithRest with_rest) const {
    ValueGradients found(wanted_.size());
    int16_t next = 0, stacked = first_stacked;
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      if (is_wanted(1 + j)) found[input_of(1 + j)] = into_.own({node, next});
      ++next;
    }
    size_t capture = 0;
    for (size_t i = 1 + carries_; i < parameters; ++i) {
      if (!is_wanted(i) || (is_capture(i) && !has_dense_[capture++])) continue;
      found[input_of(i)] =
          is_capture(i) ? into_.own({node, next++}) : with_rest(into_.own({node, stacked++}));
    }
    rows_.give(node, stacked, into_,
               [&](size_t i) -> ValueGradient& { return found[input_of(i)]; });
    return found;
  }

  const ControlQuestion& asked_;
  RegionScope* scope_;
  int32_t number_;
  const ScopeBuilder into_;
  const ScopedValues& gradients_;
  const std::vector<bool>& wanted_;
  const std::vector<bool>& variables_;
  const Source at_;
  Graph& graph_;
  const Node node_;  // Before it is changed.
  LoopAttrs attrs_;  // With the changes.
  const RegionId body_;
  const size_t carries_, slices_;
  const std::vector<bool> active_;  // The carries that gradients flow through.
  std::vector<bool> has_dense_;     // By wanted capture: whether it has a dense gradient.
  StackedRows rows_;
};

// The gradient of a loop, as its `save` option says.
ValueGradients loop_gradient(const ControlQuestion& asked);

// The types of the forward values of one trip that gradient rules of the body may read and that
// must be kept for that. An upper bound: some of them may not be read in the end.
std::vector<TensorType> residuals_of_trip(const Graph& graph, const Node& loop);

// Evaluates a size.
using SizeValue = std::function<int64_t(Dim size)>;
// The choice for Save::automatic: everything, if that is at most `most_kept` bytes.
SaveChoice automatic_choice(const LoopCost& cost, int64_t most_kept, const SizeValue& value);
// A checkpoint for every 2^thinned trips, and a few in any case.
SaveChoice thinned_choice(const LoopCost& cost, int thinned, const SizeValue& value);

// The gradient from stacks of all residuals of every trip.
ValueGradients stacked_gradient(const ControlQuestion& asked);
// The gradient from checkpoints, by repeating trips. If everything is kept, the state of every trip
// is a checkpoint.
ValueGradients checkpointed_gradient(const ControlQuestion& asked, SaveChoice choice);

// The gradient of a `reverse_loop` node.
ScopedValues reverse_loop_gradient(const ControlQuestion& asked);

}  // namespace tidemark::passes

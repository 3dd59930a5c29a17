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

// What the nodes and the results of a region read.
std::set<ValueKey> values_read(const Graph& graph, const Region& region);

// Rows that a Variable was looked up by in the body of a loop are stacked by trips: results of the
// loop backwards like the gradients of slices.
class StackedRows {
 public:
  // Of the parameter of this number; adds what is to be stacked to `results`.
  void add(size_t parameter, const std::vector<ValueGradient::Rows>& rows, const ScopeBuilder& body,
           std::vector<Value>& results);
  // Takes the results from this number on.
  void give(int32_t node, int16_t first, const ScopeBuilder& into,
            const std::function<ValueGradient&(size_t parameter)>& to) const;

 private:
  std::vector<size_t> parameters_;  // Of each pair of indices and rows.
};

// A loop and what is asked of it, as both ways of going back over its trips see them.
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

  // The number of the node's input that a parameter of the body gets; there is none for the trip.
  size_t input_of(size_t parameter) const { return parameter - 1 + attrs_.first_carry(); }
  bool is_wanted(size_t parameter) const { return wanted_[input_of(parameter)]; }
  bool is_capture(size_t parameter) const { return parameter > carries_ + slices_; }
  // A value of the loop's scope where gradients are made.
  Value here(Value value) const { return into_.value_of({value, scope_}); }
  // The gradient of a result, or zeros.
  ScopedValue gradient_or_zeros(size_t result) const {
    return gradients_[result] ? gradients_[result] : into_.zeros(node_.results[result], at_);
  }
  // The gradients by the loop's inputs, from the node that goes back over its trips. Its results
  // are the gradients by active carries, the sums by captures, and from `first_stacked` on what
  // trips stack: gradients by slices, which `with_rest` completes where trips are missing, and
  // rows.
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
  const Node node_;  // As it was.
  LoopAttrs attrs_;  // With what is added.
  const RegionId body_;
  const size_t carries_, slices_;
  const std::vector<bool> active_;  // Of carries: those gradients flow through.
  std::vector<bool> has_dense_;     // By captures that are wanted.
  StackedRows rows_;
};

// The gradient of a loop, in the way its `save` says.
ValueGradients loop_gradient(const ControlQuestion& asked);

// What the rules of the body's ops read of one trip, and is not there without being kept. What they
// do not read in the end counts too.
std::vector<TensorType> residuals_of_trip(const Graph& graph, const Node& loop);

// What a size is.
using SizeValue = std::function<int64_t(Dim size)>;
// What a loop with Save::automatic keeps: everything, where that is at most so many bytes.
SaveChoice automatic_choice(const LoopCost& cost, int64_t most_kept, const SizeValue& value);
// A checkpoint for every 2^thinned trips, and a few in any case.
SaveChoice thinned_choice(const LoopCost& cost, int thinned, const SizeValue& value);

// Keeping all that the gradient of the body reads, of every trip.
ValueGradients stacked_gradient(const ControlQuestion& asked);
// By going back over its trips from checkpoints; where all is kept, the state of every trip is one.
ValueGradients checkpointed_gradient(const ControlQuestion& asked, SaveChoice choice);

// That of a loop walked backwards.
ScopedValues reverse_loop_gradient(const ControlQuestion& asked);

}  // namespace tidemark::passes

// Gradients of loops. Internal to the library.
#pragma once

#include <functional>
#include <set>

#include "tidemark/grad/differentiate.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/trace/control_flow_core.h"
#include "tidemark/trace/save_instead.h"

namespace tidemark::detail {

inline bool is_effect(const Node& node) { return node.op->family == Family::effect; }
inline Tensor zeros_of(const TensorType& type, Source at) { return repeated_number(0, type, at); }
// In a program of known sizes; an open size counts as 1.
int64_t bytes_of(const TensorType& type);

// Of something stacked by so many trips, which are fewer than its rows: zeros in all others.
Tensor zeros_behind(const Tensor& stack, const Tensor& trips, Source at);

// What the nodes and the results of a region read.
std::set<ValueKey> values_read(const Graph& graph, const Region& region);

// What is asked of a loop.
struct LoopQuestion {
  TraceScope* scope = nullptr;  // Of the node.
  int32_t number = -1;
  const Tensors& gradients;            // Of its results.
  const std::vector<bool>& wanted;     // By which inputs.
  const std::vector<bool>& variables;  // Inputs that are values of Variables: these may get rows.
  Source at = Source::none();
};

// A loop and what is asked of it, as both ways of going back over its trips see them.
class LoopBackwards {
 protected:
  explicit LoopBackwards(const LoopQuestion& asked)
      : scope_(asked.scope),
        number_(asked.number),
        gradients_(asked.gradients),
        wanted_(asked.wanted),
        variables_(asked.variables),
        at_(asked.at),
        graph_(scope_->trace->graph()),
        node_(graph_.nodes[static_cast<size_t>(number_)]),
        attrs_(node_),
        body_(node_.regions[0]),
        carries_(static_cast<size_t>(attrs_.carries)),
        slices_(static_cast<size_t>(attrs_.slices)),
        active_(depending_carries(graph_, node_, wanted_)) {}

  TraceScope* scope_;
  int32_t number_;
  const Tensors& gradients_;
  const std::vector<bool>& wanted_;
  const std::vector<bool>& variables_;
  Source at_;
  Graph& graph_;
  const Node node_;  // As it was.
  LoopAttrs attrs_;  // With what is added.
  RegionId body_;
  size_t carries_, slices_;
  std::vector<bool> active_;  // Of carries: those gradients flow through.
};

// The gradient of a loop, in the way its `save` says.
std::vector<PartialGradient> loop_gradient(const LoopQuestion& asked);

// Rows that a Variable was looked up by in the body of a loop are stacked by trips: results of the
// loop backwards like the gradients of slices.
class StackedRows {
 public:
  // Of the parameter of this number; adds what is to be stacked to `results`.
  void add(size_t parameter, const std::vector<RowGradient>& rows, std::vector<Value>& results,
           Source at);
  // Takes the results from this number on.
  void give(int32_t node, int16_t first,
            const std::function<PartialGradient&(size_t parameter)>& to, Source at) const;

 private:
  std::vector<size_t> parameters_;  // Of each pair of indices and rows.
};

// What the rules of the body's ops read of one trip, and is not there without being kept. What they
// do not read in the end counts too.
int64_t bytes_of_trip(const Graph& graph, const Node& loop);

// Keeping all that the gradient of the body reads, of every trip.
std::vector<PartialGradient> stacked_gradient(const LoopQuestion& asked);
// By going back over its trips from checkpoints; where all is kept, the state of every trip is one.
std::vector<PartialGradient> checkpointed_gradient(const LoopQuestion& asked, SaveChoice choice);

// That of a loop walked backwards.
Tensors reverse_loop_gradient(TraceScope* scope, int32_t number, const Tensors& gradients,
                              const std::vector<bool>& wanted, Source at);

}  // namespace tidemark::detail

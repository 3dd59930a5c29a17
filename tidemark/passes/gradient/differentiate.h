// Differentiates nodes of a graph; the gradients are nodes too.
//
// The pass visits the nodes of one region in reverse order and appends their gradients to the same
// region or to one inside it. Only the forward values that these nodes read become residuals.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/passes/gradient/gradient_history.h"
#include "tidemark/passes/gradient/scope_builder.h"
#include "tidemark/types/size.h"

namespace tidemark::passes {

// The gradient of one value: dense, row-sparse (a Variable that is looked up in), or both.
struct ValueGradient {
  struct Rows {
    ScopedValue indices, rows;
  };
  ValueGradient() = default;
  ValueGradient(ScopedValue whole) : dense(whole) {}
  ScopedValue dense = {};
  std::vector<Rows> rows = {};
};
using ValueGradients = std::vector<ValueGradient>;

struct ControlQuestion;

// Settings that all parts of one differentiation share.
struct GradientSettings {
  // Whether a tape records the gradient, which may then be differentiated itself.
  bool is_recorded = false;
  Views views = Views::made_again;
  // Chooses what a loop keeps within this many bytes. The choice needs layouts, so the caller
  // provides it.
  std::function<SaveChoice(const ControlQuestion& asked, int64_t bytes)> choose_within = {};
  // A loop with Save::automatic keeps everything up to this many bytes.
  int64_t most_kept = kMostKept;
  // If given, such a loop keeps a checkpoint for every 2^thinned trips instead.
  std::optional<int> thinned = {};
  // The values of open sizes in the call that is traced; null if all sizes are known.
  const SizeTable* sizes = nullptr;
  // Overrides what the loops of one line keep.
  struct AtLine {
    Source at = Source::none();
    SaveChoice choice = {};
  };
  std::optional<AtLine> save_at = {};
  // Collects the line of each function that the gradient recomputes.
  std::vector<Source>* recomputed = nullptr;
  // Collects what is needed to repeat the gradient (differentiate_again.h). `first_made` is the
  // first node of the gradient; `is_inside` says whether it is added to a region inside that of the
  // nodes it differentiates.
  GradientHistory* history = nullptr;
  int32_t first_made = 0;
  bool is_inside = false;
};

struct Differentiation {
  RegionScope* scope = nullptr;  // The scope of the nodes to differentiate.
  // The scope that gradients are added to: the same, or one inside it.
  RegionScope* into = nullptr;
  const GradientSettings* settings = nullptr;
  // Values that are differentiated by: only these, and those that depend on them, have gradients.
  std::vector<Value> watched = {};
  // For each, the first node after which it is watched; default: all nodes.
  std::vector<int32_t> since = {};
  // Values with their gradients, which the backward pass starts with.
  std::vector<std::pair<Value, ScopedValue>> seeds = {};
  std::vector<Value> sources = {};   // The values whose gradients are wanted.
  std::vector<Value> leaves = {};    // Values of Variables: gradients do not flow through them.
  NodeRanges nodes = {NodeRange()};  // The nodes of the region to differentiate.
  // Those of them that throw a UserError if a gradient reaches them.
  NodeRanges own_gradients = {};
};
// One gradient for each source.
ValueGradients differentiate(const Differentiation& asked, Source at);

// Throws a UserError: the target depends on a gradient of the same tape.
[[noreturn]] void refuse_own_gradient(Source at);
// Throws a UserError: a function of custom_gradient reads a watched tensor that is not an argument.
[[noreturn]] void refuse_capture(Source at);

// A node with regions to differentiate, given the gradients of its results (empty if there is
// none).
struct ControlQuestion {
  RegionScope* scope = nullptr;  // The scope of the node.
  int32_t number = -1;
  ScopeBuilder into;
  const GradientSettings& settings;
  const ScopedValues& gradients;
  const std::vector<bool>& wanted;  // The inputs whose gradients are wanted.
  // Inputs that are values of Variables, whose gradients may be row-sparse.
  const std::vector<bool>& variables;
  Source at = Source::none();

  Graph& graph() const { return *scope->graph; }
  Node node() const { return graph().nodes[static_cast<size_t>(number)]; }
};
ValueGradients control_gradient(const ControlQuestion& asked);

}  // namespace tidemark::passes

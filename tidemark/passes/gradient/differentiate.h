// Gradients of a graph's nodes, made of nodes like everything else.
//
// The pass visits the nodes of one region in reverse order and appends their gradients to the same
// region, or to one inside it. The backward pass keeps what its nodes read, and no more.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/passes/gradient/gradient_history.h"
#include "tidemark/passes/gradient/scope_builder.h"
#include "tidemark/types/size.h"

namespace tidemark::passes {

// The gradient by one value: dense, rows of a Variable that is looked up, or both.
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

// What all parts of one differentiation have in common.
struct GradientSettings {
  // Whether a tape records the gradient, which may then be differentiated itself.
  bool is_recorded = false;
  Views views = Views::made_again;
  // What a loop keeps that may keep so many bytes: plans decide, so it is asked from outside.
  std::function<SaveChoice(const ControlQuestion& asked, int64_t bytes)> choose_within = {};
  // A loop with Save::automatic keeps everything up to this many bytes.
  int64_t most_kept = kMostKept;
  // If not 0, such a loop keeps a checkpoint for every 2^thinned trips instead.
  int thinned = 0;
  // What open sizes are in the call that is traced; null where all are known.
  const SizeTable* sizes = nullptr;
  // What loops of a line keep, whatever they were told.
  struct AtLine {
    Source at = Source::none();
    SaveChoice choice = {};
  };
  std::optional<AtLine> save_at = {};
  // Gets the line of each function that the gradient runs again.
  std::vector<Source>* recomputed = nullptr;
  // Gets what is needed to make the gradient again (differentiate_again.h), which begins with this
  // node and is made in a region inside that of its nodes or in the same one.
  GradientHistory* history = nullptr;
  int32_t first_made = 0;
  bool is_inside = false;
};

struct Differentiation {
  RegionScope* scope = nullptr;  // Of the nodes to differentiate.
  RegionScope* into = nullptr;   // Where gradients are made: the same, or one inside it.
  const GradientSettings* settings = nullptr;
  std::vector<Value> watched = {};  // What gradients flow to.
  std::vector<int32_t> since = {};  // From this node on, of each; else from the start.
  std::vector<std::pair<Value, ScopedValue>> seeds = {};  // Values with their gradients.
  std::vector<Value> sources = {};                        // Gradients are wanted by these.
  std::vector<Value> leaves = {};    // Values of Variables: nothing is behind them.
  NodeRanges nodes = {NodeRange()};  // To differentiate, of the region's nodes.
  NodeRanges own_gradients = {};     // Those among them that are refused.
};
// By source.
ValueGradients differentiate(const Differentiation& asked, Source at);

// Why a tape gives no gradient of what its own gradient() gave.
[[noreturn]] void refuse_own_gradient(Source at);
// A function of custom_gradient reads something watched that is no argument.
[[noreturn]] void refuse_capture(Source at);

// A node with regions whose gradient is asked, given those of its results (nothing where there is
// none).
struct ControlQuestion {
  RegionScope* scope = nullptr;  // Of the node.
  int32_t number = -1;
  ScopeBuilder into;
  const GradientSettings& settings;
  const ScopedValues& gradients;
  const std::vector<bool>& wanted;     // By which inputs.
  const std::vector<bool>& variables;  // Inputs that are values of Variables: these may get rows.
  Source at = Source::none();

  Graph& graph() const { return *scope->graph; }
  Node node() const { return graph().nodes[static_cast<size_t>(number)]; }
};
ValueGradients control_gradient(const ControlQuestion& asked);

}  // namespace tidemark::passes

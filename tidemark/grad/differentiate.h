// Going back over the nodes of a trace. Internal to the library.
//
// Gradients are made of ops like everything else, in the current scope: that of the nodes, or one
// inside it. So what backward keeps is what its nodes read, and no more.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tidemark/grad/tape.h"
#include "tidemark/ir/value_key.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

struct Differentiation {
  TraceScope* scope = nullptr;      // Whose nodes are gone back over.
  std::vector<Value> watched = {};  // What gradients flow to.
  std::vector<int32_t> since = {};  // From this node on, of each; else from the start.
  std::vector<std::pair<Value, Tensor>> seeds = {};  // Values with their gradients.
  std::vector<Value> sources = {};                   // Gradients are wanted by these.
  std::vector<Value> leaves = {};                    // Values of Variables: nothing is behind them.
  std::function<bool(int32_t node)> is_recorded = {};      // Null: all are.
  std::function<bool(int32_t node)> is_own_gradient = {};  // Null: none is. Those are refused.
};
// By source.
std::vector<PartialGradient> differentiate(const Differentiation& asked, Source at);

// Which results depend on these inputs in a way that has a gradient.
std::vector<bool> depending_results(const Graph& graph, const Node& node,
                                    const std::vector<bool>& inputs);
// The results of a region that depend on its parameters.
std::vector<bool> depending_results(const Graph& graph, RegionId region,
                                    const std::vector<bool>& parameters);
// Of a loop's carries, which do, one trip or many later.
std::vector<bool> depending_carries(const Graph& graph, const Node& loop,
                                    const std::vector<bool>& inputs);

// The gradients by the wanted inputs of a node with regions, given those of its results (nothing
// where there is none). Those by inputs that are the values of Variables may be rows.
std::vector<PartialGradient> control_gradient(TraceScope* scope, int32_t node,
                                              const Tensors& gradients,
                                              const std::vector<bool>& wanted,
                                              const std::vector<bool>& variables, Source at);

// The value of a tensor in the current scope, another one than these: what comes in twice has two
// gradients.
Value distinct_value(const Tensor& tensor, const std::vector<Value>& taken, Source at);

// A value of a scope as a tensor.
Tensor tensor_in(TraceScope* scope, Value value, Source at);

}  // namespace tidemark::detail

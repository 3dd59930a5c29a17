// The nodes of a named layer, as a function of the values that they read.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tidemark/passes/gradient/gradient_history.h"

namespace tidemark::passes {

struct LayerNodes {
  std::vector<int32_t> nodes;  // Of the body, in order.
  std::vector<Value> reads;    // Values of other nodes.
  std::vector<Value> gives;    // Values that other nodes read, except those of gradients.

  bool contains(int32_t node) const;
};

// The nodes of the layer at a path such as "encoder/dense", with those of layers inside it.
// `graph` has the node numbers of the history. Nothing if there are none, or if they cannot run as
// one: one has an effect, or what is between them reads their values or is a gradient.
std::optional<LayerNodes> layer_nodes(const Graph& graph, const GradientHistory& history,
                                      std::string_view path);

}  // namespace tidemark::passes

// Repeats the gradients of a trace with other choices of what loops and functions keep.
#pragma once

#include <optional>
#include <string>

#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/passes/gradient/gradient_history.h"

namespace tidemark::passes {

// Differentiates, and records in a history what is needed to repeat it.
ValueGradients differentiate(const Differentiation& asked, GradientHistory& history, Source at);

// The graph that the same trace would have given with other settings. Nodes of gradients are
// dropped, loops are restored, and the gradients are made again in the same order; nodes that read
// the old gradients read the new ones. `graph` has the node numbers of the history, and may have
// known sizes where the trace had open ones. Results have the same bits. Returns nothing if the
// trace reads a value inside a gradient that the new gradient may not have, or if a layer cannot be
// rewritten.
struct Rewritten {
  // Functions of td::recompute at this line are inlined, so that their residuals are kept.
  std::optional<Source> inlined = {};
  // The layer at this path is a function of td::recompute; empty: none is.
  std::string recomputed = {};
};
std::optional<Graph> differentiate_again(const Graph& graph, const GradientHistory& history,
                                         const GradientSettings& settings,
                                         const Rewritten& rewritten = {});

}  // namespace tidemark::passes

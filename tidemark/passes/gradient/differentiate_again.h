// Makes the gradients of a trace again, with another choice of what loops and blocks keep.
#pragma once

#include <optional>

#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/passes/gradient/gradient_history.h"

namespace tidemark::passes {

// Differentiates, and notes in a history what is needed to do so again.
ValueGradients differentiate(const Differentiation& asked, GradientHistory& history, Source at);

// The graph that the same trace would have given with other settings: nodes that gradients made are
// dropped, loops are restored, and the gradients are made again in the same order; what read the
// old gradients reads the new ones. Functions of td::recompute at the line `inlined`, if any, stand
// in the graph as what they are made of, so that gradients keep what they read. `graph` has the
// node numbers of the history, and may have known sizes where the trace had open ones. Results are
// bit-identical whatever is kept. Nothing where the trace reads a value inside a gradient that the
// new one may not have.
std::optional<Graph> differentiate_again(const Graph& graph, const GradientHistory& history,
                                         const GradientSettings& settings,
                                         std::optional<Source> inlined = {});

}  // namespace tidemark::passes

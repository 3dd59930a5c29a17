// Maps with an automatic chunk: how many of their bodies run at once.
#pragma once

#include <optional>

#include "tidemark/layout/layout.h"

namespace tidemark::fit {

// Whether a program has such maps.
bool has_automatic_chunk(const run::Program& program);

// The graph with this number written into such maps.
Graph with_chunk(Graph graph, int64_t bodies);

// The program with the most bodies at once, one number for all such maps, that needs at most
// `bytes`. Nothing if one body is too many already.
std::optional<compile::Layout> most_bodies(const Graph& graph, const compile::Interface& interface,
                                           int64_t bytes);

}  // namespace tidemark::fit

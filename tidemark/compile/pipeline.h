// All passes, for one backend: from a traced graph to one that can be laid out.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "tidemark/compile/backends.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/types/size.h"

namespace tidemark::compile {

// The facts about a backend's machine that passes use.
passes::Machine machine_of(const Backend& backend, std::optional<int64_t> most_scratch = {});

// Called with the graph after each pass.
using PassObserver = std::function<void(std::string_view pass, const Graph& graph)>;

// The graph with a number for every open size. `values` are the values of the table's expressions.
Graph at_sizes(const Graph& graph, const SizeTable& sizes, std::span<const int64_t> values);

// Runs all passes, in execution order.
Graph optimise(Graph graph, const passes::PassOptions& options, const PassObserver& observe = {},
               const Backend& backend = backend_of(device::kHostMemory));

}  // namespace tidemark::compile

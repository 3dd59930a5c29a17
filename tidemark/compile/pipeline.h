// From a traced graph to one that is ready to be laid out: all passes, on this machine.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/types/size.h"

namespace tidemark::compile {

// What passes are told of the machine this process runs on.
passes::Machine this_machine();

// Called with the graph after each pass.
using PassObserver = std::function<void(std::string_view pass, const Graph& graph)>;

// The graph with every open size known. `values` are those of the table's expressions.
Graph at_sizes(const Graph& graph, const SizeTable& sizes, std::span<const int64_t> values);

// Runs all passes.
Graph optimise(Graph graph, const passes::PassOptions& options, const PassObserver& observe = {});

}  // namespace tidemark::compile

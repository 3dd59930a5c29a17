// The way from a traced graph to a program, in the order it is gone.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "tidemark/compile/lower.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/types/size.h"

namespace tidemark::compile {

struct PipelineOptions {
  bool fuse = true;                    // False: every op a step of its own.
  passes::Fusions* fusions = nullptr;  // Of the same graph at other sizes.
  // Of each result of the body, the parameter that it is the new value of, or -1.
  std::vector<int32_t> updates = {};
};

// Called with the graph after each pass.
using Watch = std::function<void(std::string_view pass, const Graph& graph)>;

// The graph with every open size known. `values` are those of the table's expressions.
Graph at_sizes(const Graph& graph, const SizeTable& sizes, std::span<const int64_t> values);

Graph optimise(Graph graph, const PipelineOptions& options, const Watch& watch = {});

}  // namespace tidemark::compile

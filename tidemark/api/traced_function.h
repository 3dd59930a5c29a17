// A function once traced: its graph and what the graph's parameters are; compiled, and run.
// Internal to api/.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tidemark/api/function_core.h"
#include "tidemark/api/trace.h"
#include "tidemark/compile/lower.h"
#include "tidemark/run/program.h"

namespace tidemark::detail {

struct TracedFunction {
  Graph graph;
  compile::Interface interface;
  std::vector<Trace::Parameter> parameters;  // Of the graph's body; empty ones are arguments.
  std::vector<int32_t> argument_leaves;      // Of each such, in order: which leaf of the call.
  std::vector<NumberMet> numbers;
  SizeTable sizes;  // Of the graph, where some are open; then it is optimised for each size.
  bool fuse = true;
};

struct CompiledFunction {
  std::shared_ptr<const run::Program> program;
  std::vector<bool> donated;        // By argument.
  std::vector<int64_t> sizes;       // Of the open ones.
  std::weak_ptr<const void> entry;  // Whose it is.

  // About what it takes in memory.
  int64_t bytes() const;
  // Bytes of results that are the call's own.
  int64_t result_bytes() const;
};

// Its graph for these sizes of the open ones.
Graph at_sizes(const TracedFunction& traced, const std::vector<int64_t>& sizes);

std::shared_ptr<CompiledFunction> compile_function(const TracedFunction& traced,
                                                   const std::vector<bool>& donated,
                                                   const std::vector<int64_t>& sizes,
                                                   compile::Placements& placements);

struct RunOptions {
  std::byte* arena = nullptr;  // The caller's: the arena, then the results.
  Profile* profile = nullptr;  // Measures what is touched.
};

// Takes all memory first; then nothing but a check in the program can fail, and a failed call
// changes no Variable.
std::vector<Tensor> run_function(const TracedFunction& traced, const CompiledFunction& compiled,
                                 std::span<const Argument> leaves, const RunOptions& options,
                                 Source at);

}  // namespace tidemark::detail

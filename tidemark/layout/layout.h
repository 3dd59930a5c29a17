// Turns a graph into a program: steps, aliases, buffers, lifetimes and offsets, which is all that a
// plan reports. emit.h makes the tasks and kernels before the first run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/compile/backends.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/plan/resize.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// Properties of the body's parameters and results that the graph does not have.
struct Interface {
  struct Parameter {
    ByteClass byte_class = ByteClass::arguments;
    bool donated = false;  // The program may overwrite its bytes after its last read.
    std::string name;
    Strides strides = {};  // In elements; empty if dense.
    int32_t memory = 0;    // The number of the memory that holds its bytes.
    // A plain number, which is passed by the call itself. It is copied to the program's memory if
    // that is not the host's.
    bool is_number = false;
  };
  struct Result {
    int32_t updates = -1;  // The parameter (a Variable) whose new value this is, or -1.
    std::string name;
  };
  std::vector<Parameter> parameters;
  std::vector<Result> results;
  // The memory of literals and of the carries and results of control flow. Any other node computes
  // in the memory of its operands, and its results are there too, including those of the program.
  int32_t home = 0;
  // How many bodies run at once of maps whose number is open; by default as many as for 0.
  std::optional<int64_t> bodies_at_once = {};
  // A step that would need more workspace than this runs on fewer threads, down to one.
  std::optional<int64_t> most_scratch = {};

  std::vector<int32_t> updates() const {
    std::vector<int32_t> list;
    for (const Result& result : results) list.push_back(result.updates);
    return list;
  }
};

// Decisions that programs of one graph for several sizes share: which nodes are fused, and how
// buffers are stacked. If the lifetimes of a program equal those of the latest one that was placed
// from scratch, its buffers keep their relative positions.
struct Placements {
  struct Arena {
    std::vector<plan::Lifetime> lifetimes;
    plan::Relation relation;
  };
  std::vector<Arena> arenas;
  passes::Fusions fusions;
  // Whether the program needs this many bytes or fewer is all that is asked: no better placement is
  // searched for.
  std::optional<int64_t> enough_bytes = {};
};

// A program without its tasks. Its steps, addresses, buffers, lifetimes and offsets are final.
struct Layout {
  std::shared_ptr<run::Program> program;
  std::vector<TaskPlan> tasks;  // One for each step that runs a task, in order.
  // For each node of the body, in order: its first step; then the number of steps.
  std::vector<int32_t> first_step;
};

// The options of passes for a program with this interface, which must outlive them. The bytes that
// a graph needs are those of its layout.
passes::PassOptions pass_options(const Interface& interface, bool fuse,
                                 passes::Fusions* fusions = nullptr);

// All sizes of the graph must be known. Makes no task and no kernel.
Layout layout(const Graph& graph, const Interface& interface, Placements& placements);
// For a graph that is laid out for one size only.
inline Layout layout(const Graph& graph, const Interface& interface) {
  Placements placements;
  return layout(graph, interface, placements);
}

}  // namespace tidemark::compile

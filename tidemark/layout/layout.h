// From a graph to a program: where every value lies, which is all that a plan says. emit.h makes
// its tasks and kernels when it first runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tidemark/compile/backends.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/plan/resize.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// What the outside says of the body's parameters and results.
struct Interface {
  struct Parameter {
    ByteClass byte_class = ByteClass::arguments;
    bool donated = false;  // The program may use its bytes once it has read it for the last time.
    std::string name;
    Strides strides = {};  // In elements; empty where it is dense.
  };
  struct Result {
    int32_t updates = -1;  // The parameter (a Variable) that this is the new value of.
    std::string name;
  };
  std::vector<Parameter> parameters;
  std::vector<Result> results;

  std::vector<int32_t> updates() const {
    std::vector<int32_t> list;
    for (const Result& result : results) list.push_back(result.updates);
    return list;
  }
};

// What earlier programs made of a graph have settled: which nodes are one kernel, and how buffers
// lie above each other. Programs of the same graph for other sizes keep the kernels, and where
// their buffers live as those of the latest one that was placed anew, these only move.
struct Placements {
  struct Arena {
    std::vector<plan::Lifetime> lifetimes;
    plan::Relation relation;
  };
  std::vector<Arena> arenas;
  passes::Fusions fusions;
};

// A program whose tasks are still to be made. Its steps, their addresses, buffers, lifetimes and
// offsets are settled.
struct Layout {
  std::shared_ptr<run::Program> program;
  std::vector<TaskPlan> tasks;  // Of the steps that run one, in order.
};

// What passes ask of a program with this interface, which must outlive it: the bytes that a graph
// needs are those of its layout.
passes::PassOptions pass_options(const Interface& interface, bool fuse,
                                 passes::Fusions* fusions = nullptr);

// Every size of the graph is known. Makes no task and no kernel.
Layout layout(const Graph& graph, const Interface& interface, Placements& placements);
// Of a graph that has one size only.
inline Layout layout(const Graph& graph, const Interface& interface) {
  Placements placements;
  return layout(graph, interface, placements);
}

}  // namespace tidemark::compile

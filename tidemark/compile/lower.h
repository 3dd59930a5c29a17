// From a graph to a program: where every value lies, and the steps that make them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"
#include "tidemark/plan/replace.h"
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

// What the first program made of a graph has settled: which nodes are one kernel, and how buffers
// lie above each other. Programs of the same graph for other sizes keep the kernels, and where
// their buffers live alike, these only move.
struct Placements {
  struct Arena {
    std::vector<plan::Lifetime> lifetimes;
    plan::Relation relation;
  };
  std::vector<Arena> arenas;
  passes::Fusions fusions;
};

// Every size of the graph is known. Throws what the tasks throw when they are made.
std::shared_ptr<run::Program> lower(const Graph& graph, const Interface& interface,
                                    Placements& placements);
// Of a graph that has one size only.
inline std::shared_ptr<run::Program> lower(const Graph& graph, const Interface& interface) {
  Placements placements;
  return lower(graph, interface, placements);
}

}  // namespace tidemark::compile

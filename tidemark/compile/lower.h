// From a graph to a program: where every value lies, and the steps that make them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/run/program.h"

namespace tidemark::compile {

// What the outside says of the body's parameters and results.
struct Interface {
  struct Parameter {
    ByteClass byte_class = ByteClass::arguments;
    bool donated = false;  // The program may use its bytes once it has read it for the last time.
    std::string name;
  };
  struct Result {
    int32_t updates = -1;  // The parameter (a Variable) that this is the new value of.
    std::string name;
  };
  std::vector<Parameter> parameters;
  std::vector<Result> results;
};

// Every size of the graph is known. Throws what the tasks throw when they are made.
std::shared_ptr<run::Program> lower(const Graph& graph, const Interface& interface);

}  // namespace tidemark::compile

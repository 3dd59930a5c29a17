// Runs a program's statements through the public functions, and its ops with all attributes through
// the catalogue. The same code runs eagerly and while a function is traced.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/truth/program_text.h"
#include "tidemark/tidemark.h"

namespace tidemark::truth {

// What the open sizes are.
using Sizes = std::map<std::string, Dim>;
// A sum of products: "2*n+1", "n-1".
Dim size_of(const std::string& text, const Sizes& sizes);

DType dtype_named(const std::string& name, const Program& program);

// Names and what they stand for. Held by pointer: a recomputed body runs after its statement.
struct Scope {
  std::shared_ptr<const Scope> outer;
  std::map<std::string, Tensor> values;
};

// What statements need besides values.
struct World {
  const Program& program;
  std::map<std::string, Variable> variables = {};
  std::map<std::string, Tensor> constants = {};
  std::vector<Tensor>* draws = nullptr;  // Random draws in the order they are made, where wanted.
  int64_t loop_bytes = 0;                // What Save::bytes of any loop has at least.
};

// What the program returns for these arguments.
std::vector<Tensor> interpret(const World& world, const std::vector<Tensor>& arguments);

}  // namespace tidemark::truth

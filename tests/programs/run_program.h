// Runs a lowered program on memory of our own, in ways that show where it goes beside its plan.
#pragma once

#include <string>
#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/run/program.h"

namespace tidemark::testing {

enum class Memory {
  planned,   // The arena as planned, and not a byte more: what lies behind it cannot be touched.
  repeated,  // The same on other rubbish.
  guarded,   // Every buffer in pages of its own, between pages that cannot be touched.
};

struct Outcome {
  std::vector<Tensor> results;
  std::vector<Tensor> parameters;  // As they are after the run.
};

Outcome run_program(run::Program& program, const std::vector<Tensor>& arguments, Memory memory);

// What is wrong with where the buffers lie, or nothing.
std::string placement_fault(const run::Program& program);

}  // namespace tidemark::testing

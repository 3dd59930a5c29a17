// Runs the programs of a traced function. Internal to the library.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "tidemark/function/compile_function.h"
#include "tidemark/function/function_call.h"
#include "tidemark/function/plan.h"

namespace tidemark::detail {

// An initializer that computes a traced tensor that depends on no argument and no Variable: the
// initial value of a Variable created inside a trace.
std::function<Tensor()> frozen(const Tensor& tensor, const std::string& variable, Source at);

struct RunOptions {
  std::byte* arena = nullptr;  // The caller's memory for the arena, then the results; or null.
  Profile* profile = nullptr;  // Receives measurements, if given.
  // The function whose budget limits copies of Variables, which a plan cannot foresee, and whose
  // calls may wait for memory.
  const FunctionOptions* function = nullptr;
};

// Allocates all memory first; after that only a check in the program can fail. A failed call
// changes no Variable. `given` receives the results, except the new values of Variables.
void run_function(const TracedGraph& traced, const CompiledFunction& compiled,
                  std::span<const Argument> leaves, const RunOptions& options,
                  std::span<Tensor> given, Source at);

}  // namespace tidemark::detail

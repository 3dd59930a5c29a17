// From a traced function to a program, and calls of it. Internal to the library.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tidemark/function/call_types.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/function/function_call.h"
#include "tidemark/function/plan.h"

namespace tidemark::detail {

// What the program is told of a captured tensor: where it lies, and how if it is not dense.
compile::Interface::Parameter capture_parameter(const Tensor& capture);

// The key of a call; specs are planned as dense. `profile`, if any, learns which arguments are
// donated, and who holds the rest.
ProgramKey program_key(const TracedGraph& traced, const Arguments& arguments,
                       std::span<const int64_t> sizes, Profile* profile = nullptr);
// Whether that is the key of a call, for these places of open sizes. Takes no heap.
bool is_key_of(const ProgramKey& key, const TracedGraph& traced, const Arguments& arguments,
               std::span<const SizePlace> open);
// Whether the program of a key can run a call of another: it may use up only what that call gives.
bool serves(const TracedGraph& traced, const ProgramKey& planned, const ProgramKey& call);

// Its graph for these sizes of the open ones. Where its loops keep other things for gradients at
// these sizes than the trace chose, the gradients are made again.
struct SizedGraph {
  Graph graph;
  bool is_as_traced = true;
};
SizedGraph graph_at(const TracedGraph& traced, std::span<const int64_t> sizes);

// Lays it out for a key; emits nothing.
std::shared_ptr<CompiledFunction> compile_function(const TracedGraph& traced, const ProgramKey& key,
                                                   compile::Placements& placements);

// A traced tensor that depends on no argument and no Variable, as something that computes it when
// it is first wanted: the initial value of a Variable made inside a trace.
std::function<Tensor()> frozen(const Tensor& tensor, const std::string& variable, Source at);

struct RunOptions {
  std::byte* arena = nullptr;  // The caller's: the arena, then the results.
  Profile* profile = nullptr;  // Measures what is touched.
  // Whose budget bounds the copies of Variables that a plan cannot foresee.
  const FunctionOptions* function = nullptr;
};

// Takes all memory first; then nothing but a check in the program can fail, and a failed call
// changes no Variable. `given` gets the results of the program but those that are Variables' new
// values.
void run_function(const TracedGraph& traced, const CompiledFunction& compiled,
                  std::span<const Argument> leaves, const RunOptions& options,
                  std::span<Tensor> given, Source at);

}  // namespace tidemark::detail

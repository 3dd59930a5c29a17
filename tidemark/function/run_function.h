// Compiles a traced function to a program, and runs it. Internal to the library.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tidemark/function/call_types.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/function/function_call.h"
#include "tidemark/function/plan.h"
#include "tidemark/passes/gradient/differentiate.h"

namespace tidemark::detail {

// The address of a captured tensor, and its strides if it is not dense.
compile::Interface::Parameter capture_parameter(const Tensor& capture);

// The key of a call; specs are planned as dense. Records in `profile`, if given, which arguments
// are donated and why the others are not.
ProgramKey program_key(const TracedGraph& traced, const Arguments& arguments,
                       std::span<const int64_t> sizes, Profile* profile = nullptr);
// Whether this is the key of a call, for these positions of open sizes. Does not allocate.
bool is_key_of(const ProgramKey& key, const TracedGraph& traced, const Arguments& arguments,
               std::span<const SizePlace> open);
// Whether the program of one key can serve a call of another: it may only consume arguments that
// the call donates.
bool serves(const TracedGraph& traced, const ProgramKey& planned, const ProgramKey& call);

// The graph for these values of the open sizes. If its loops store other residuals at these sizes
// than the trace chose, the gradients are made again.
struct SizedGraph {
  Graph graph;
  bool is_as_traced = true;
};
SizedGraph graph_at(const TracedGraph& traced, std::span<const int64_t> sizes);

// Makes the layout for a key; emits nothing.
std::shared_ptr<CompiledFunction> compile_function(const TracedGraph& traced, const ProgramKey& key,
                                                   compile::Placements& placements);

// What gradients keep, if not what the trace chose.
struct KeptChoice {
  int64_t most_kept = passes::kMostKept;  // By loops with Save::automatic.
  decltype(passes::GradientSettings::save_at) save_at = {};
  std::optional<Source> inlined = {};  // The line of a td::recompute that is left out.
};
// A program whose gradients keep this, for plans only: it has no tasks. Null if the gradients
// cannot be made again. A UserError if the choice is refused.
std::shared_ptr<const run::Program> program_keeping(const TracedGraph& traced,
                                                    const ProgramKey& key,
                                                    const KeptChoice& choice);

// An initializer that computes a traced tensor that depends on no argument and no Variable: the
// initial value of a Variable created inside a trace.
std::function<Tensor()> frozen(const Tensor& tensor, const std::string& variable, Source at);

struct RunOptions {
  std::byte* arena = nullptr;  // The caller's memory for the arena, then the results; or null.
  Profile* profile = nullptr;  // Receives measurements, if given.
  // The function whose budget limits copies of Variables, which a plan cannot foresee.
  const FunctionOptions* function = nullptr;
};

// Allocates all memory first; after that only a check in the program can fail. A failed call
// changes no Variable. `given` receives the results, except the new values of Variables.
void run_function(const TracedGraph& traced, const CompiledFunction& compiled,
                  std::span<const Argument> leaves, const RunOptions& options,
                  std::span<Tensor> given, Source at);

}  // namespace tidemark::detail

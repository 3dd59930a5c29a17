// A traced function, with its graph and the meaning of the graph's parameters; and a compiled one.
// Internal to the library.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/fit/fit.h"
#include "tidemark/function/budget.h"
#include "tidemark/layout/layout.h"
#include "tidemark/run/program.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

// A whole number that is an argument or an open size is converted to a dtype in the function. A
// call whose number does not fit is refused, as in eager code.
struct NumberCheck {
  int32_t leaf = -1;  // -1: the size.
  Dim size = 0;
  DType dtype = DType::u8;
  std::string op;
  Source at = Source::none();
};

struct TracedGraph {
  Graph graph;
  compile::Interface interface;
  std::vector<Trace::Parameter>
      parameters;  // The parameters of the graph's body; empty entries are arguments.
  std::vector<int32_t> argument_leaves;    // For each argument, its leaf in the call.
  std::vector<Trace::ReadBack> read_back;  // Values of the traced graph.
  std::vector<Source> recomputed;          // See Trace.
  std::vector<FrozenNumber> numbers;
  std::vector<NumberCheck> checks;
  SizeTable sizes;  // If sizes are open, the graph is optimised for each combination of them.
  bool fuse = true;
  // The graph before passes, where something reads it: a tape around the function, or gradients
  // that may be made again. Null where `graph` is that graph, or nothing does.
  std::shared_ptr<const Graph> as_traced;
  passes::GradientHistory gradients;  // Where they may be.
  std::optional<Budget> budget;       // The function's.
};

// The key of a program within its trace: the number of threads, the layout of each argument
// (below), and last the open sizes.
struct ProgramKey {
  // The layout of an argument: dense; dense and donated; or strided, followed by its strides.
  enum Argument : int64_t { dense, donated, strided };

  SmallVec<int64_t, 14> words;
  size_t sizes_at = 0;  // The index of the first size among the words.

  std::span<const int64_t> sizes() const {
    return std::span<const int64_t>(words).subspan(sizes_at);
  }
  friend bool operator==(const ProgramKey& a, const ProgramKey& b) { return a.words == b.words; }
  friend bool operator<(const ProgramKey& a, const ProgramKey& b) {
    return std::lexicographical_compare(a.words.begin(), a.words.end(), b.words.begin(),
                                        b.words.end());
  }
};
// A program of a trace. It has a layout, so that all of its memory is known; tasks and kernels are
// emitted before the first run.
struct CompiledFunction {
  std::shared_ptr<const run::Program> program;
  ProgramKey key;
  std::weak_ptr<const void> trace;  // The trace that owns it.
  // What it does to need fewer bytes than the usual program, and the work that takes.
  struct Changes {
    std::vector<fit::Decision> decisions;
    fit::Cost again, usual;  // Beside the usual program's work, and that work itself.
    int64_t usual_peak = 0;
  };
  std::optional<Changes> changes;

  // The source of each parameter of the program in a call.
  struct Parameter {
    enum class Kind : uint8_t { argument, number, capture, variable } kind = Kind::argument;
    bool in_place = false;  // A Variable that is written in place: its value must not be shared.
    int32_t leaf = -1;      // Of an argument or a number.
    int32_t variable = -1;  // The index of the Variable.
  };
  std::vector<Parameter> parameters;
  // Its Variables in lock order.
  struct VariableLock {
    VariableState* variable = nullptr;
    bool written = false;
  };
  std::vector<VariableLock> variables;
  mutable std::atomic<bool> has_first_values{
      false};          // All of them have values, since a call has succeeded.
  size_t numbers = 0;  // The number of parameters that are plain numbers.

  // Emits tasks and kernels, if not done yet. One thread at a time.
  void emit() const;
  bool is_emitted() const { return is_emitted_.load(std::memory_order_acquire); }
  const std::vector<compile::TaskPlan>& tasks() const { return layout_.tasks; }

  int64_t peak_bytes() const { return program->peak_bytes(); }

  explicit CompiledFunction(compile::Layout made)
      : program(made.program), layout_(std::move(made)) {}

 private:
  mutable compile::Layout layout_;
  mutable std::atomic<bool> is_emitted_{false};
};

}  // namespace tidemark::detail

// A function once traced, its graph and what the graph's parameters are; and compiled.
// Internal to the library.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/layout/layout.h"
#include "tidemark/run/program.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

// A whole number known only at the call, an argument or an open size, meets a dtype in the
// function: calls with one that does not fit are refused, as eager code refuses it.
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
  std::vector<Trace::Parameter> parameters;  // Of the graph's body; empty ones are arguments.
  std::vector<int32_t> argument_leaves;      // Of each such, in order: which leaf of the call.
  std::vector<Trace::ReadBack> read_back;    // Values of the graph as it was traced.
  std::vector<Source> recomputed;            // See Trace.
  std::vector<NumberMet> numbers;
  std::vector<NumberCheck> checks;
  SizeTable sizes;  // Of the graph, where some are open; then it is optimised for each size.
  bool fuse = true;
  // The graph before passes, where something reads it: a tape around the function, or a budget that
  // loops may keep less for. Null where `graph` is that graph, or nothing does.
  std::shared_ptr<const Graph> as_traced;
  passes::GradientHistory gradients;  // Where loops in it choose what they keep.
  std::optional<Bytes> budget;        // The function's.
};

// What tells the programs of one trace apart: the number of threads, what is known of each argument
// (below), and last the open sizes.
struct ProgramKey {
  // Of an argument: that it is dense; that it is, and its bytes may be used; that it is not, and
  // then its strides follow.
  enum Argument : int64_t { dense, donated, strided };

  SmallVec<int64_t, 14> words;
  size_t sizes_at = 0;  // Of the first size among the words.

  std::span<const int64_t> sizes() const {
    return std::span<const int64_t>(words).subspan(sizes_at);
  }
  friend bool operator==(const ProgramKey& a, const ProgramKey& b) { return a.words == b.words; }
  friend bool operator<(const ProgramKey& a, const ProgramKey& b) {
    return std::lexicographical_compare(a.words.begin(), a.words.end(), b.words.begin(),
                                        b.words.end());
  }
};
// A program of a trace: laid out, so that all of its memory is known; its tasks and kernels are
// made before it first runs.
struct CompiledFunction {
  std::shared_ptr<const run::Program> program;
  ProgramKey key;
  std::weak_ptr<const void> trace;  // Whose it is.

  // What a call puts at each parameter of the program.
  struct Parameter {
    enum class Kind : uint8_t { argument, number, capture, variable } kind = Kind::argument;
    bool in_place = false;  // A Variable written where it lies: it must be nobody else's.
    int32_t leaf = -1;      // Of an argument or a number.
    int32_t variable = -1;  // Which of the Variables it is.
  };
  std::vector<Parameter> parameters;
  // Its Variables in the order of their numbers, as they are locked.
  struct Locked {
    VariableState* variable = nullptr;
    bool written = false;
  };
  std::vector<Locked> variables;
  mutable std::atomic<bool> has_first_values{false};  // All of these; a call has succeeded.
  size_t numbers = 0;                                 // Parameters of that kind.

  // Makes tasks and kernels, where they are not there. One thread at a time.
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

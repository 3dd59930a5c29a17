// A user's function with its type erased, and one call of it: leaves go in and come out. The
// templates of arguments.h make them from users' types.
#pragma once

#include <any>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/base/text.h"
#include "tidemark/device/call_memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/device/wait_queue.h"
#include "tidemark/function/budget.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/tensor/spec.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {

struct FunctionOptions {
  std::string name = {};
  // The most bytes that a call may add, results included. A program that needs more computes values
  // again, lets loops keep less, or is refused (OverBudget). For a function that is called inside
  // another's trace, the other's budget applies.
  std::optional<Budget> budget = {};
  // How long a call waits where the memory limit leaves no room for its plan: td::wait_for(100ms).
  // Calls are served in the order in which they came. Without it, such a call is refused at once.
  std::optional<WaitFor> when_full = {};
  // Mixed precision: trainable f32 Variables are read as this dtype (Autocast, tensor/mode.h).
  std::optional<DType> autocast = {};
  bool jit = true;  // False: the same program unfused, for debugging.
  std::vector<TensorSpec> input_signature = {};
  Bytes cache_limit = Bytes(int64_t{256} << 20);
  bool check_captures = false;
};

namespace detail {

// One leaf of the arguments: a tensor, or a Dim.
struct Argument {
  Tensor tensor;  // Empty for a Dim. In a plan it may be a spec.
  Dim size = 0;   // Of a Dim.
  bool is_size = false;
  bool donated = false;  // Moved in: its memory may be reused if it is not shared.
};

// The non-leaf part of the arguments. Valid only during the call, and evaluated only if a trace is
// needed.
struct ArgumentStructure {
  const void* from = nullptr;
  // Everything that is not a leaf (lengths, names, static values) as text, one line for each part:
  // "argument 1: 3 items\n". Empty for a function of tensors alone.
  std::string (*key)(const void* from) = nullptr;
  // Whether the key of a copy is the same.
  bool (*is_like)(const void* from, const std::any& copy) = nullptr;
  // A copy of the arguments without their tensors, for tracing now or later.
  std::any (*copy)(const void* from) = nullptr;
  // The path of each leaf: "argument 0", "argument 1.image", ... For errors and reasons.
  std::vector<std::string> (*paths)(const void* from) = nullptr;
};

// The arguments of one call.
struct Arguments {
  device::CallList<Argument> leaves;
  ArgumentStructure from;

  std::string key() const { return from.key(from.from); }
  bool is_like(const std::any& copy) const { return from.is_like(from.from, copy); }
  std::any structure() const { return from.copy(from.from); }
  std::vector<std::string> paths() const { return from.paths(from.from); }
  std::string path(size_t leaf) const { return paths()[leaf]; }
};

// The result of tracing. The body runs the user's function on traced leaves.
struct TraceResult {
  std::vector<Tensor> leaves;  // The leaves of the result, traced or not; empty ones stay empty.
  std::vector<std::string> paths;  // "result", "result.loss", ...
  std::any structure;              // The result without its tensors; each call fills a copy.
  // What the function has captured and has changed since, one line for each: for languages that can
  // name it.
  std::function<std::string()> changed = {};
};
// Takes one Argument for each leaf, in order, with traced tensors and possibly open Dims, and the
// value of `Arguments::structure`.
using TraceBody =
    std::function<TraceResult(std::span<const Argument> leaves, const std::any& structure)>;

using CallResult = device::CallList<Tensor>;  // The leaves.
// Copies the result's structure before the call changes anything.
using ResultMaker = device::FunctionRef<void(const std::any& structure)>;

// A user's function with its type erased.
struct UserFunction {
  FunctionOptions options;
  TraceBody body;
  Source at = Source::none();  // The line that made it.

  // "function \"step\""
  std::string title() const {
    return options.name.empty() ? std::string("the function")
                                : cat("function \"", options.name, "\"");
  }
  // The mode that it is traced in when this thread calls it.
  Mode mode() const {
    Mode mode = Mode::now();
    if (options.autocast) mode.autocast = *options.autocast;
    return mode;
  }
};

}  // namespace detail
}  // namespace tidemark

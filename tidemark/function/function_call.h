// A function as whoever traces it sees it, and one call of it: leaves go in and come out. The
// templates of arguments.h make them of users' types.
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
#include "tidemark/tensor/spec.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {

struct FunctionOptions {
  std::string name = {};
  // The most bytes a call may add at once: a plan or a call above it is refused (OverBudget). Of a
  // function called while another is traced the other's counts.
  std::optional<Bytes> budget = {};
  bool jit = true;  // False: the same program unfused, for debugging.
  std::vector<TensorSpec> input_signature = {};
  Bytes cache_limit = Bytes(int64_t{256} << 20);
  bool check_captures = false;
};

namespace detail {

// One leaf of the arguments: a tensor, or a Dim.
struct Argument {
  Tensor tensor;  // Empty where the leaf is a Dim. Of a plan it may be a type without bytes.
  Dim size = 0;   // Of a Dim.
  bool is_size = false;
  bool donated = false;  // Moved in: its bytes may be used if nobody else holds them.
};

// What the arguments are beside their leaves. Can be asked only while the call runs; a call that
// needs no trace never asks.
struct ArgumentStructure {
  const void* from = nullptr;
  // All that is not a leaf: lengths, names, static values. Readable, one line a part, each ended:
  // "argument 1: 3 items\n". Empty for a function of tensors alone.
  std::string (*key)(const void* from) = nullptr;
  // Whether the key of a copy is the same.
  bool (*is_like)(const void* from, const std::any& copy) = nullptr;
  // A copy of the arguments without their tensors, for whoever traces, now or again.
  std::any (*copy)(const void* from) = nullptr;
  // Of each leaf: "argument 0", "argument 1.image", ... For errors and reasons.
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

// What a trace needs and gives. The body runs the user's function on traced leaves.
struct TraceResult {
  std::vector<Tensor> leaves;      // Of the result, traced or not; empty ones stay empty.
  std::vector<std::string> paths;  // "result", "result.loss", ...
  std::any structure;  // The result without its tensors, which each call puts in a copy.
};
// Gets one Argument per leaf, in order, whose tensors are traced (and Dims open where they are),
// and what `Arguments::structure` gave.
using TraceBody =
    std::function<TraceResult(std::span<const Argument> leaves, const std::any& structure)>;

using CallResult = device::CallList<Tensor>;  // The leaves.
// Makes a copy of the result without its tensors, before the call changes anything.
using ResultMaker = device::FunctionRef<void(const std::any& structure)>;

// A function as whoever traces it sees it.
struct UserFunction {
  FunctionOptions options;
  TraceBody body;
  Source at = Source::none();  // Where it was made.

  // "function \"step\""
  std::string title() const {
    return options.name.empty() ? std::string("the function")
                                : cat("function \"", options.name, "\"");
  }
};

}  // namespace detail
}  // namespace tidemark

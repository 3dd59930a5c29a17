#include "tidemark/tensor/composed.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/function/call_types.h"
#include "tidemark/function/function_trace.h"
#include "tidemark/function/program_key.h"
#include "tidemark/function/run_function.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {
namespace {

// A program is made when its calls have done about as much work as making it: some milliseconds.
// An element of a composite costs its passes over memory, a call its ops.
constexpr int64_t kWorkToCompile = 16 << 20, kWorkOfElement = 8, kWorkOfCall = 24576;
// The least recently used ones are dropped.
constexpr size_t kMostKept = 256;

using Words = Composition::Words;

struct Composed {
  std::atomic<int64_t> work{0};
  std::atomic<bool> is_taken{false};  // By the thread that makes the program.
  std::atomic<bool> is_ready{false};
  std::shared_ptr<FunctionTrace> trace;
  std::shared_ptr<CompiledFunction> program;
  int64_t used = 0;  // Under the table's lock.
};

struct WordsHash {
  size_t operator()(const Words& words) const {
    uint64_t hash = 0;
    for (const uint64_t word : words) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32;
    }
    return hash;
  }
};
struct WordsEqual {
  bool operator()(const Words& a, const Words& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};

class Table {
 public:
  std::shared_ptr<Composed> of(const Words& key) {
    const std::lock_guard guard(lock_);
    std::shared_ptr<Composed>& found = entries_[key];
    if (found == nullptr) {
      found = std::make_shared<Composed>();
      found->used = ++uses_;
      std::shared_ptr<Composed> made = found;
      if (entries_.size() > kMostKept) drop_oldest();
      return made;
    }
    found->used = ++uses_;
    return found;
  }

 private:
  void drop_oldest() {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
  }

  Mutex lock_;
  std::unordered_map<Words, std::shared_ptr<Composed>, WordsHash, WordsEqual> entries_;
  int64_t uses_ = 0;
};

Table& table() {
  static constinit MadeOnce<Table> made;
  return made.get();
}

// Whether a program can take this operand as it takes an argument.
bool is_plain(const Tensor& operand) {
  const TensorState* const state = TensorState::of(operand);
  return state != nullptr && state->kind == TensorState::Kind::concrete && !state->weak;
}

void add_type(Words& key, const ArrayRef& array) {
  key.push_back(static_cast<uint64_t>(array.dtype) << 8 | static_cast<uint64_t>(array.rank()));
  for (const Dim size : array.shape) key.push_back(static_cast<uint64_t>(int64_t{size}));
  const bool is_dense = array.is_contiguous();
  key.push_back(is_dense ? 1 : 0);
  if (is_dense) return;
  for (const int64_t stride : array.strides) key.push_back(static_cast<uint64_t>(stride));
}

Arguments arguments_of(const Tensors& operands) {
  Arguments arguments;
  for (const Tensor& operand : operands) arguments.leaves.push_back({.tensor = operand});
  arguments.from.from = &operands;
  arguments.from.copy = [](const void*) { return std::any(); };
  arguments.from.paths = [](const void* from) {
    return std::vector<std::string>(static_cast<const Tensors*>(from)->size(), "operand");
  };
  return arguments;
}

void make_program(Composed& made, const Tensors& operands, ComposedResults body, Source at) {
  const UserFunction function{.options = {.name = "composite"},
                              .body =
                                  [&](std::span<const Argument> leaves, const std::any&) {
                                    Tensors given;
                                    for (const Argument& leaf : leaves)
                                      given.push_back(leaf.tensor);
                                    TraceResult result;
                                    result.leaves = body(given);
                                    result.paths.assign(result.leaves.size(), "result");
                                    return result;
                                  },
                              .at = at};
  const Arguments arguments = arguments_of(operands);
  TraceInput input{.leaves = {}, .open = {}, .key = {}, .mode = function.mode()};
  for (const Argument& argument : arguments.leaves) input.leaves.push_back(leaf_type(argument, at));
  made.trace = trace_function(function, std::move(input), arguments.from, {}, at);
  compile::Placements placements;
  made.program = compile_function(made.trace->traced,
                                  program_key(made.trace->traced, arguments, {}), placements);
  made.program->emit();
  made.is_ready.store(true, std::memory_order_release);
}

// Whether there is a program now. Without memory for one, the ops run one by one.
bool is_ready(Composed& made, const Tensors& operands, ComposedResults body, Source at) {
  if (made.is_ready.load(std::memory_order_acquire)) return true;
  int64_t elements = 0;
  for (const Tensor& operand : operands) elements = std::max(elements, int64_t{operand.size()});
  const int64_t work = kWorkOfCall + elements * kWorkOfElement;
  if (made.work.fetch_add(work, std::memory_order_relaxed) < kWorkToCompile) return false;
  if (made.is_taken.exchange(true)) return false;
  try {
    make_program(made, operands, body, at);
    return true;
  } catch (const std::bad_alloc&) {
    made.is_taken.store(false);
    return false;
  } catch (...) {
    made.is_taken.store(false);
    throw;
  }
}

Tensors run_program(const Composed& made, const Tensors& operands, Source at) {
  const Arguments arguments = arguments_of(operands);
  device::CallList<Tensor> results(made.trace->given());
  run_function(made.trace->traced, *made.program, arguments.leaves, {}, results, at);
  CallResult leaves(made.trace->result_leaves.size());
  made.trace->give(results, leaves);
  return {std::move_iterator(leaves.begin()), std::move_iterator(leaves.end())};
}

bool runs_now(const Tensors& operands) {
  return !tracing() && std::all_of(operands.begin(), operands.end(), [](const Tensor& operand) {
    return is_plain(operand) && !is_watched({&operand});
  });
}

}  // namespace

Tensors composed_results(const Composition& what, const Tensors& operands, ComposedResults body,
                         Source at) {
  if (!runs_now(operands)) return body(operands);
  Words key = what.words();
  key.push_back(static_cast<uint64_t>(num_threads()));
  for (const Tensor& operand : operands) add_type(key, TensorState::of(operand)->array);
  const std::shared_ptr<Composed> made = table().of(key);
  const NoTape unrecorded;
  return is_ready(*made, operands, body, at) ? run_program(*made, operands, at) : body(operands);
}

Tensor composed(const Composition& what, Tensors operands, ComposedBody body, Source at) {
  if (!runs_now(operands)) return body(operands);
  const auto results = [&](const Tensors& given) { return Tensors{body(given)}; };
  return std::move(composed_results(what, operands, results, at)[0]);
}

}  // namespace tidemark::detail

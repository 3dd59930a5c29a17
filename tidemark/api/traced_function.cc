#include "tidemark/api/traced_function.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>

#include "tidemark/api/plan_data.h"
#include "tidemark/api/variable_state.h"
#include "tidemark/compile/eager.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/device/threads.h"
#include "tidemark/passes/passes.h"
#include "tidemark/run/paint.h"

namespace tidemark::detail {

int64_t CompiledFunction::bytes() const {
  return static_cast<int64_t>(program->steps.size() * (sizeof(run::Step) + 512) +
                              program->addresses.size() * sizeof(run::Address) +
                              program->buffers.size() * sizeof(run::Buffer));
}

int64_t CompiledFunction::result_bytes() const {
  int64_t bytes = 0;
  for (const run::Result& result : program->results)
    if (result.parameter < 0) bytes += result.bytes;
  return bytes;
}

Graph at_sizes(const TracedFunction& traced, const std::vector<int64_t>& sizes) {
  if (sizes.empty()) return traced.graph;
  return compile::at_sizes(traced.graph, traced.sizes, traced.sizes.evaluate(sizes));
}

std::shared_ptr<CompiledFunction> compile_function(const TracedFunction& traced,
                                                   const std::vector<bool>& donated,
                                                   const std::vector<int64_t>& sizes,
                                                   compile::Placements& placements) {
  compile::Interface interface = traced.interface;
  size_t argument = 0;
  for (size_t i = 0; i < interface.parameters.size(); ++i) {
    if (interface.parameters[i].byte_class == ByteClass::arguments)
      interface.parameters[i].donated = donated[argument++];
  }
  auto compiled = std::make_shared<CompiledFunction>();
  if (sizes.empty()) {
    compiled->program = compile::lower(traced.graph, interface, placements);
  } else {
    const Graph known = compile::optimise(at_sizes(traced, sizes), {.fuse = traced.fuse});
    compiled->program = compile::lower(known, interface, placements);
  }
  compiled->donated = donated;
  compiled->sizes = sizes;
  return compiled;
}

namespace {

// Calls take their memory one after another: of several that do not all fit, as many as fit run.
std::mutex taking;

// The memory of one call.
class Call {
 public:
  Call(const TracedFunction& traced, const CompiledFunction& compiled, const RunOptions& options,
       Source at)
      : traced_(traced),
        program_(*compiled.program),
        options_(options),
        at_(at),
        registers_(static_cast<size_t>(program_.registers)) {}

  std::vector<Tensor> run(std::span<const Argument> leaves) {
    lock_variables();
    // Declared ones get their first value now, which may be a call of its own.
    for (const Trace::Parameter& parameter : traced_.parameters)
      if (parameter.variable != nullptr) read_variable(*parameter.variable, at_);
    {
      const std::lock_guard guard(taking);
      take_parameters(leaves);
      take_results();
      take_arena();
    }
    if (options_.profile != nullptr) run::paint(registers_[run::kArena], program_.arena_bytes);
    {
      const SourceScope scope(at_);
      std::optional<device::AllTakePart> all;  // What is planned for all is touched by all.
      if (options_.profile != nullptr) all.emplace();
      std::vector<int64_t> touched;
      run::execute(program_, registers_, options_.profile != nullptr ? &touched : nullptr);
      for (size_t i = 0; i < touched.size(); ++i) {
        const run::DeviceArena& arena = program_.device_arenas[i];
        options_.profile->memories.push_back({memory_name(arena.memory), arena.bytes, touched[i]});
      }
    }
    if (options_.profile != nullptr) {
      int64_t results = 0;
      for (const run::Result& result : program_.results)
        if (result.parameter < 0) results += result.bytes;
      options_.profile->touched =
          run::touched_bytes(registers_[run::kArena], program_.arena_bytes) + results;
    }
    return commit();
  }

 private:
  // Those that are written, in the order of their numbers: calls that write the same run in turn.
  void lock_variables() {
    for (const compile::Interface::Result& result : traced_.interface.results) {
      if (result.updates < 0) continue;
      written_.push_back(traced_.parameters[static_cast<size_t>(result.updates)].variable.get());
    }
    std::sort(written_.begin(), written_.end(),
              [](const auto* a, const auto* b) { return a->id < b->id; });
    for (VariableState* variable : written_) locks_.emplace_back(variable->lock);
  }

  void take_parameters(std::span<const Argument> leaves) {
    size_t argument = 0;
    numbers_.reserve(traced_.parameters.size());  // So that none moves.
    for (size_t i = 0; i < traced_.parameters.size(); ++i) {
      const Trace::Parameter& parameter = traced_.parameters[i];
      Tensor held;
      if (parameter.variable != nullptr) {
        held = own_variable(*parameter.variable, i);
      } else if (parameter.capture.has_value()) {
        held = parameter.capture;
      } else {
        const auto leaf = static_cast<size_t>(traced_.argument_leaves[argument++]);
        const Tensor& given = leaves[leaf].tensor;
        if (state_of(given, at_).weak && !is_result(i)) {
          registers_[1 + i] = number_of(given, program_.parameters[i].dtype);
          held_.emplace_back();
          continue;
        }
        held = argument_of(given);
      }
      registers_[1 + i] = TensorState::of(held)->array.data;
      held_.push_back(std::move(held));
    }
  }

  bool is_result(size_t parameter) const {
    return std::any_of(program_.results.begin(), program_.results.end(),
                       [&](const run::Result& result) {
                         return result.parameter == static_cast<int32_t>(parameter);
                       });
  }

  // Views come in dense.
  Tensor argument_of(const Tensor& tensor) const {
    array_of(tensor, at_);  // A spec has no bytes.
    return dense(tensor, at_);
  }

  // Numbers come in exact, and stand in the call itself.
  std::byte* number_of(const Tensor& tensor, DType dtype) {
    const TensorState& state = state_of(tensor, at_);
    uint64_t& word = numbers_.emplace_back(0);
    if (dtype == DType::f64) {
      word = std::bit_cast<uint64_t>(state.number);
    } else {
      word = static_cast<uint64_t>(tensor.item<int64_t>(at_));
    }
    return reinterpret_cast<std::byte*>(&word);
  }

  // A Variable written in place must be nobody else's: snapshots that are alive keep their value.
  Tensor own_variable(const VariableState& variable, size_t parameter) {
    Tensor value = read_variable(variable, at_);
    const bool in_place = std::any_of(program_.results.begin(), program_.results.end(),
                                      [&](const run::Result& result) {
                                        return result.parameter == static_cast<int32_t>(parameter) &&
                 traced_.interface.results[static_cast<size_t>(&result - program_.results.data())]
                         .updates >= 0;
                                      });
    if (!in_place) return value;
    const TensorState& state = *TensorState::of(value);
    // One handle is the Variable's, one is ours.
    const bool shared = state.references.load() > 2 || state.storage->references.load() > 1 ||
                        !state.storage->writable;
    if (!shared) return value;
    Tensor copy = make_tensor(variable.dtype, variable.shape, at_, ByteClass::shadow);
    compile::run_copy(state.array, TensorState::of(copy)->array);
    return copy;
  }

  void take_results() {
    int64_t offset = program_.arena_bytes;
    for (size_t k = 0; k < program_.results.size(); ++k) {
      const run::Result& result = program_.results[k];
      Tensor made;
      if (result.parameter >= 0) {
        made = held_[static_cast<size_t>(result.parameter)];
      } else if (options_.arena != nullptr) {
        made = make_borrowed(options_.arena + offset, result.dtype, result.shape, {}, at_);
        offset += result.bytes;
      } else {
        made = make_tensor(result.dtype, result.shape, at_, result.byte_class);
      }
      registers_[static_cast<size_t>(program_.result_register(static_cast<int32_t>(k)))] =
          TensorState::of(made)->array.data;
      results_.push_back(std::move(made));
    }
  }

  void take_arena() {
    if (options_.arena != nullptr) {
      registers_[run::kArena] = options_.arena;
    } else if (program_.arena_bytes > 0) {
      arena_ = make_tensor(DType::u8, {program_.arena_bytes}, at_, ByteClass::temporaries);
      registers_[run::kArena] = TensorState::of(arena_)->array.data;
    }
  }

  // The run has succeeded: Variables get their values.
  std::vector<Tensor> commit() {
    held_.clear();
    std::vector<Tensor> given;
    for (size_t k = 0; k < results_.size(); ++k) {
      const int32_t updates = traced_.interface.results[k].updates;
      if (updates < 0) {
        retype(results_[k], program_.results[k]);
        given.push_back(std::move(results_[k]));
        continue;
      }
      VariableState& variable = *traced_.parameters[static_cast<size_t>(updates)].variable;
      const bool has_it = TensorState::of(variable.value) == TensorState::of(results_[k]);
      if (!has_it) write_variable(variable, std::move(results_[k]), at_);
    }
    return given;
  }

  // A donated argument's bytes may have become a result of another type.
  static void retype(const Tensor& tensor, const run::Result& result) {
    TensorState& state = *TensorState::of(tensor);
    if (state.array.dtype == result.dtype && state.array.shape == result.shape) return;
    state.array.dtype = result.dtype;
    state.array.shape = result.shape;
    state.array.strides = contiguous_strides(result.shape);
  }

  const TracedFunction& traced_;
  const run::Program& program_;
  const RunOptions& options_;
  Source at_;
  std::vector<std::byte*> registers_;
  std::vector<uint64_t> numbers_;
  std::vector<VariableState*> written_;
  std::vector<std::unique_lock<std::recursive_mutex>> locks_;
  std::vector<Tensor> held_;
  std::vector<Tensor> results_;
  Tensor arena_;
};

}  // namespace

namespace {

// The graph for the call that is being traced, and for calls of those sizes alone.
Graph with_sizes_read(Graph graph, const SizeTable& sizes) {
  for (Node& node : graph.nodes) {
    for (const TensorType& type : node.results) closed(type.shape);
    if (node.op == nullptr) continue;
    node.attrs.change_lists(node.op->attrs, [](int64_t word) {
      return Dim(word).is_traced() ? int64_t{Dim(word)} : word;
    });
  }
  return compile::at_sizes(graph, sizes, sizes.hints());
}

}  // namespace

std::function<Tensor()> frozen(const Tensor& tensor, const std::string& variable, Source at) {
  Trace& trace = *current_scope->trace;
  const Value value = value_of(tensor, at);
  if (current_scope != trace.body()) {
    throw UserError(cat(variable, " was made inside ", current_scope->what), at,
                    "make it before the loop or the branch");
  }
  auto traced = std::make_shared<TracedFunction>();
  traced->graph = trace.graph();
  traced->graph.body().results = {value};
  passes::remove_dead(traced->graph);
  const std::vector<int32_t> uses = count_uses(traced->graph);
  Region& body = traced->graph.body();
  std::vector<Value> kept;
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    if (uses[static_cast<size_t>(body.parameters[i].node)] == 0) continue;
    const Trace::Parameter& parameter = trace.parameters()[i];
    if (!parameter.capture.has_value()) {
      throw UserError(
          cat(variable, " starts with a value that depends on ",
              parameter.variable != nullptr ? "a Variable" : "an argument", " of the function"),
          at, "its first value is made once, before the first run; assign later ones");
    }
    kept.push_back(body.parameters[i]);
    traced->parameters.push_back(parameter);
    traced->interface.parameters.push_back({ByteClass::constants, false, "captured"});
  }
  body.parameters = std::move(kept);
  traced->graph = with_sizes_read(compact(traced->graph), trace.sizes());
  traced->interface.results.push_back({.updates = -1, .name = "initial value"});
  return [traced, at] {
    compile::Placements placements;
    const auto compiled = compile_function(*traced, {}, {}, placements);
    std::vector<Tensor> made = run_function(*traced, *compiled, {}, {}, at);
    return std::move(made[0]);
  };
}

std::vector<Tensor> run_function(const TracedFunction& traced, const CompiledFunction& compiled,
                                 std::span<const Argument> leaves, const RunOptions& options,
                                 Source at) {
  return Call(traced, compiled, options, at).run(leaves);
}

}  // namespace tidemark::detail

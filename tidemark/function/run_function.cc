#include "tidemark/function/run_function.h"

#include <algorithm>
#include <bit>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/out_of_memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/function/over_budget.h"
#include "tidemark/function/plan_data.h"
#include "tidemark/function/program_key.h"
#include "tidemark/run/paint.h"
#include "tidemark/run/watch.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

namespace {

// The locks of a call's Variables, in the global lock order: all of them while it reads their
// values, for a consistent snapshot, and those that it writes until the end.
class VariableLocks {
 public:
  explicit VariableLocks(const std::vector<CompiledFunction::VariableLock>& list) : list_(list) {}
  ~VariableLocks() { release_all(); }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

  void take_all() {
    for (const CompiledFunction::VariableLock& each : list_) each.variable->lock.lock();
    held_ = LockScope::all;
  }
  void release_all() {
    release([](const CompiledFunction::VariableLock&) { return true; });
    held_ = LockScope::none;
  }
  void keep_written() {
    release([](const CompiledFunction::VariableLock& each) { return !each.written; });
    held_ = LockScope::written;
  }

 private:
  enum class LockScope : uint8_t { none, written, all };
  template <class Which>
  void release(Which which) {
    for (const CompiledFunction::VariableLock& each : list_) {
      const bool held = held_ == LockScope::all || (held_ == LockScope::written && each.written);
      if (held && which(each)) each.variable->lock.unlock();
    }
  }

  const std::vector<CompiledFunction::VariableLock>& list_;
  LockScope held_ = LockScope::none;
};

// One call: binds arguments to the program's registers, allocates, runs. Everything that can fail
// comes before the first step: the call's own lists, results, the arena.
class Call {
 public:
  Call(const TracedGraph& traced, const CompiledFunction& compiled,
       std::span<const Argument> leaves, const RunOptions& options, Source at)
      : traced_(traced),
        compiled_(compiled),
        program_(*compiled.program),
        leaves_(leaves),
        options_(options),
        at_(at),
        registers_(static_cast<size_t>(program_.registers)),
        numbers_(compiled.numbers),
        locks_(compiled.variables),
        variables_(compiled.variables.size()) {
    results_.reserve(program_.results.size());
  }

  void run(std::span<Tensor> given) {
    for (const NumberCheck& check : traced_.checks)
      if (check.leaf >= 0) check_number(check);
    const ForkGate::Inside inside;
    make_first_values();
    if (options_.function != nullptr && options_.function->when_full.has_value())
      prepare_in_turn(*options_.function->when_full);
    else
      prepare();
    if (options_.profile == nullptr) {
      const SourceScope scope(at_);
      run::execute(program_, registers_);
    } else {
      run_measured(*options_.profile);
    }
    commit(given);
    first_values_.keep();
    compiled_.has_first_values.store(true, std::memory_order_release);
  }

 private:
  using Kind = CompiledFunction::Parameter::Kind;

  // Everything that can fail.
  void prepare() {
    locks_.take_all();
    bind_parameters();
    take_memory();
    locks_.keep_written();
  }

  void undo_preparing() {
    passed_on_.clear();
    results_.clear();
    arena_ = {};
    for (VariableBinding& bound : variables_) bound.value = {};
    locks_.release_all();
  }

  // Waits for memory where there is none. Meanwhile it holds no lock and no value of a Variable,
  // which calls that are running may need.
  void prepare_in_turn(WaitFor most) {
    device::QueuePlace place(most, at_.resolve());
    if (device::QueuePlace::is_queue()) place.wait(program_.bytes_in(device::kHostMemory));
    for (;;) {
      int64_t needed = 0;
      try {
        prepare();
        return place.served();
      } catch (const OutOfMemory& refused) {
        if (!refused.may_wait()) throw;
        needed = refused.asked().count;
      }
      undo_preparing();
      place.wait(std::max(needed, program_.bytes_in(device::kHostMemory)));
    }
  }

  void run_measured(Profile& profile) {
    std::byte* const arena = registers_[run::kArena];
    run::paint(arena, program_.arena_bytes);
    const SourceScope scope(at_);
    const device::AllTakePart all;  // All threads touch their share, as planned.
    run::Watch watch(program_, arena);
    run::Measurement measured;
    measured.watch = &watch;
    run::execute(program_, registers_, &measured);
    profile.time_ns = watch.now_ns();
    profile.touched = run::touched_bytes(arena, program_.arena_bytes) + program_.result_bytes();
    for (size_t i = 0; i < measured.touched.size(); ++i) {
      const run::DeviceArena& other = program_.device_arenas[i];
      const int64_t results = program_.result_bytes(other.memory);
      profile.memories.push_back(
          {memory_name(other.memory), other.bytes + results, measured.touched[i] + results});
      if (other.memory == program_.home) profile.touched = measured.touched[i] + results;
    }
    PlanAccess::add_seen(program_, watch, profile);
  }

  void check_number(const NumberCheck& check) const {
    const Tensor& given = leaves_[static_cast<size_t>(check.leaf)].tensor;
    check_fits(given.item<int64_t>(at_), check.dtype, check.op, check.at);
  }

  // Initializers run users' code, which may call functions: no Variable may be locked.
  void make_first_values() const {
    if (compiled_.has_first_values.load(std::memory_order_acquire)) return;
    // In the order of their first reads, as in eager code.
    for (size_t i = 0; i < traced_.parameters.size(); ++i) {
      const Trace::Parameter& parameter = traced_.parameters[i];
      if (parameter.variable != nullptr)
        make_first_value(*parameter.variable, program_.parameters[i].memory, at_);
    }
  }

  // Binds the address of each parameter.
  void bind_parameters() {
    size_t numbers = 0;
    for (size_t i = 0; i < compiled_.parameters.size(); ++i) {
      const CompiledFunction::Parameter& parameter = compiled_.parameters[i];
      std::byte*& place = registers_[1 + i];
      switch (parameter.kind) {
        case Kind::argument:
          place = placed_array_of(leaves_[static_cast<size_t>(parameter.leaf)].tensor, at_).data;
          break;
        case Kind::number: {
          uint64_t& word = numbers_[numbers++];
          word = exact(leaves_[static_cast<size_t>(parameter.leaf)].tensor,
                       program_.parameters[i].dtype);
          place = reinterpret_cast<std::byte*>(&word);
          break;
        }
        case Kind::capture:
          place = TensorState::of(traced_.parameters[i].capture)->array.data;
          break;
        case Kind::variable:
          place = bind_variable(i);
          break;
      }
    }
  }

  // Numbers are passed exactly, and stored in the call itself.
  uint64_t exact(const Tensor& tensor, DType dtype) const {
    if (dtype == DType::f64) return std::bit_cast<uint64_t>(state_of(tensor, at_).number);
    return static_cast<uint64_t>(tensor.item<int64_t>(at_));
  }

  struct VariableBinding {
    size_t parameter = 0;
    Tensor value;
    bool shared = false;  // It is written in place but a snapshot is alive: it is copied.
  };

  std::byte* bind_variable(size_t parameter) {
    VariableBinding& bound =
        variables_[static_cast<size_t>(compiled_.parameters[parameter].variable)];
    bound.parameter = parameter;
    bound.value = read_variable(*traced_.parameters[parameter].variable, at_);
    const TensorState& state = *TensorState::of(bound.value);
    check_memory(parameter, state);
    // One handle is the Variable's, one is ours.
    bound.shared = compiled_.parameters[parameter].in_place &&
                   (state.references.load() > 2 || state.storage->references.load() > 1 ||
                    !state.storage->writable);
    return state.array.data;
  }

  // Another thread may have moved it since the call was matched with this program.
  void check_memory(size_t parameter, const TensorState& state) const {
    const run::Place& planned = program_.parameters[parameter];
    if (state.memory() == planned.memory) [[likely]]
      return;
    throw UserError(cat(planned.name, " moved to ", device::memory_text(state.memory()),
                        " while a function that reads it was called"),
                    at_, "move Variables while no function runs");
  }

  // Everything the call needs, in one reservation: results, the arena, and copies of Variables of
  // which a snapshot is alive.
  void take_memory() {
    device::CallList<TensorWish> wished;
    wished.reserve(program_.results.size() + variables_.size() + 1);
    const auto wish = [&](DType dtype, const Shape& shape, ByteClass byte_class, int32_t memory) {
      TensorWish& made = wished.emplace_back();
      made.dtype = dtype;
      made.shape = &shape;
      made.byte_class = byte_class;
      made.memory = memory;
    };
    if (options_.arena == nullptr) {
      for (const run::Result& result : program_.results)
        if (result.parameter < 0)
          wish(result.dtype, result.shape, result.byte_class, result.memory);
    }
    check_shadow();
    const Shape arena{program_.arena_bytes};
    const bool own_arena = options_.arena == nullptr && program_.arena_bytes > 0;
    if (own_arena) wish(DType::u8, arena, ByteClass::temporaries, device::kHostMemory);
    for (const VariableBinding& bound : variables_) {
      const VariableState& variable = *traced_.parameters[bound.parameter].variable;
      if (bound.shared)
        wish(variable.dtype, variable.shape, ByteClass::shadow,
             program_.parameters[bound.parameter].memory);
    }
    make_tensors(wished, at_);
    TensorWish* next = wished.data() + (options_.arena == nullptr ? results_taken() : 0);
    if (own_arena) arena_ = std::move(next++->made);
    registers_[run::kArena] = own_arena ? TensorState::of(arena_)->array.data : options_.arena;
    for (VariableBinding& bound : variables_)
      if (bound.shared) copy_variable(bound, std::move(next++->made));
    take_results(wished.data());
    prepare_passing_on();
  }

  // Whether a Variable's new value is a parameter, whose bytes are copied after the run.
  bool is_passed_on(size_t k) const {
    const int32_t updates = traced_.interface.results[k].updates;
    return updates >= 0 && program_.results[k].parameter >= 0 &&
           program_.results[k].parameter != updates;
  }

  // Prepares these copies: kernels, and memory if a snapshot of the Variable is alive.
  void prepare_passing_on() {
    for (size_t k = 0; k < results_.size(); ++k) {
      if (!is_passed_on(k)) continue;
      const VariableState& variable = variable_of(k);
      const TensorState& now = *TensorState::of(variable.value);
      // One handle is the Variable's, one is ours.
      const bool in_place = now.references.load() <= 2 && now.storage->references.load() == 1;
      passed_on_.resize(results_.size());
      if (!in_place)
        passed_on_[k] =
            make_tensor_in(now.memory(), variable.dtype, variable.shape, at_, ByteClass::variables);
      if (now.kind == TensorState::Kind::device) continue;
      const compile::WorkspacePart preparing;
      compile::run_copy(array_of(results_[k], at_),
                        in_place ? now.array : TensorState::of(passed_on_[k])->array);
    }
  }

  VariableState& variable_of(size_t k) const {
    return *traced_.parameters[static_cast<size_t>(traced_.interface.results[k].updates)].variable;
  }

  // Whether a snapshot of a Variable is alive is known only at the call.
  void check_shadow() const {
    const FunctionOptions* const function = options_.function;
    if (function == nullptr || !function->budget.has_value()) return;
    int64_t needed = compiled_.peak_bytes();
    for (const VariableBinding& bound : variables_)
      if (bound.shared) needed += TensorState::of(bound.value)->storage->bytes;
    const Bytes budget = function->budget->bytes();
    if (needed == compiled_.peak_bytes() || needed <= budget.count) return;
    std::string names;
    for (const VariableBinding& bound : variables_) {
      if (!bound.shared) continue;
      names += (names.empty() ? "" : ", ") + traced_.parameters[bound.parameter].variable->name;
    }
    throw OverBudget(
        cat(function->name.empty() ? "the function" : function->name, ": needs ", needed,
            " bytes at once, the budget is ", budget.count,
            " bytes: ", needed - compiled_.peak_bytes(),
            " of them are copies of Variables whose tensors are still held (", names, ")"),
        at_, cat("let go of tensors read from them before the call; .budget = ", needed, "_B fits"),
        budget, needed);
  }

  size_t results_taken() const {
    return static_cast<size_t>(
        std::count_if(program_.results.begin(), program_.results.end(),
                      [](const run::Result& result) { return result.parameter < 0; }));
  }

  void copy_variable(VariableBinding& bound, Tensor copy) {
    copy_elements(bound.value, copy, at_);
    bound.value = std::move(copy);
    registers_[1 + bound.parameter] = TensorState::of(bound.value)->array.data;
  }

  void take_results(TensorWish* made) {
    int64_t offset = program_.arena_bytes;
    for (size_t k = 0; k < program_.results.size(); ++k) {
      const run::Result& result = program_.results[k];
      Tensor& taken = results_.emplace_back();
      if (result.parameter >= 0) {
        taken = parameter_of(static_cast<size_t>(result.parameter));
      } else if (options_.arena == nullptr) {
        taken = std::move(made++->made);
      } else {
        taken = make_borrowed(options_.arena + offset, result.dtype, result.shape, {}, at_);
        offset += result.bytes;
      }
      registers_[static_cast<size_t>(program_.result_register(static_cast<int32_t>(k)))] =
          TensorState::of(taken)->array.data;
    }
  }

  const Tensor& parameter_of(size_t i) const {
    const CompiledFunction::Parameter& parameter = compiled_.parameters[i];
    if (parameter.leaf >= 0) return leaves_[static_cast<size_t>(parameter.leaf)].tensor;
    if (parameter.kind == Kind::capture) return traced_.parameters[i].capture;
    return variables_[static_cast<size_t>(parameter.variable)].value;
  }

  // The run has succeeded: assign the Variables.
  void commit(std::span<Tensor> given) {
    const compile::WorkspacePart copies(compile::kNowhere, 0);
    for (size_t k = 0; k < passed_on_.size(); ++k) {
      if (!passed_on_[k].has_value()) continue;
      copy_elements(results_[k], passed_on_[k], at_);
      results_[k] = std::move(passed_on_[k]);
    }
    for (VariableBinding& bound : variables_) bound.value = {};
    auto next = given.begin();
    for (size_t k = 0; k < results_.size(); ++k) {
      const int32_t updates = traced_.interface.results[k].updates;
      if (updates < 0) {
        retype(results_[k], program_.results[k]);
        *next++ = std::move(results_[k]);
        continue;
      }
      VariableState& variable = variable_of(k);
      const bool has_it = TensorState::of(variable.value) == TensorState::of(results_[k]);
      if (!has_it) write_variable(variable, std::move(results_[k]), at_);
    }
  }

  // A donated argument's memory may have become a result of another type.
  static void retype(const Tensor& tensor, const run::Result& result) {
    TensorState& state = *TensorState::of(tensor);
    if (state.array.dtype == result.dtype && state.array.shape == result.shape) return;
    state.array.dtype = result.dtype;
    state.array.shape = result.shape;
    state.array.strides = contiguous_strides(result.shape);
  }

  FirstValues first_values_;  // Destroyed last, when the call holds no Variable's value any more.
  const TracedGraph& traced_;
  const CompiledFunction& compiled_;
  const run::Program& program_;
  std::span<const Argument> leaves_;
  const RunOptions& options_;
  Source at_;
  device::CallList<std::byte*> registers_;
  device::CallList<uint64_t> numbers_;
  VariableLocks locks_;
  device::CallList<VariableBinding> variables_;
  device::CallList<Tensor> results_;
  device::CallList<Tensor> passed_on_;  // For each result: the copy of it that a Variable gets.
  Tensor arena_;
};

}  // namespace

namespace {

// The graph for the sizes of the call being traced only.
Graph with_sizes_read(Graph graph, const SizeTable& sizes) {
  for (Node& node : graph.nodes) {
    for (const TensorType& type : node.results) closed(type.shape);
    if (node.op == nullptr) continue;
    node.attrs.change_sizes([](Dim size) { return size.is_traced() ? Dim(int64_t{size}) : size; });
  }
  return compile::at_sizes(graph, sizes, sizes.hints());
}

}  // namespace

std::function<Tensor()> frozen(const Tensor& tensor, const std::string& variable, Source at) {
  Trace& trace = *current_scope()->trace;
  const Value value = value_of(tensor, at);
  auto traced = std::make_shared<TracedGraph>();
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
          at,
          "an initial value is computed once, before the first run; assign such values instead");
    }
    kept.push_back(body.parameters[i]);
    traced->parameters.push_back(parameter);
    traced->interface.parameters.push_back(capture_parameter(parameter.capture));
  }
  body.parameters = std::move(kept);
  traced->graph = with_sizes_read(compact(traced->graph), trace.sizes());
  traced->interface.results.push_back({.updates = -1, .name = "initial value"});
  return [traced, at] {
    compile::Placements placements;
    ProgramKey key;
    key.words.push_back(num_threads());
    key.sizes_at = 1;
    const auto compiled = compile_function(*traced, key, placements);
    compiled->emit();
    Tensor made;
    run_function(*traced, *compiled, {}, {}, {&made, 1}, at);
    return made;
  };
}

void run_function(const TracedGraph& traced, const CompiledFunction& compiled,
                  std::span<const Argument> leaves, const RunOptions& options,
                  std::span<Tensor> given, Source at) {
  Call(traced, compiled, leaves, options, at).run(given);
}

}  // namespace tidemark::detail

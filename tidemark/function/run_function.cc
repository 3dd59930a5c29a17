#include "tidemark/function/run_function.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>

#include "tidemark/base/lock.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/fit/fit.h"
#include "tidemark/function/over_budget.h"
#include "tidemark/function/plan_data.h"
#include "tidemark/grad/save_choice.h"
#include "tidemark/layout/emit.h"
#include "tidemark/passes/gradient/differentiate_again.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/passes/passes.h"
#include "tidemark/run/paint.h"
#include "tidemark/run/watch.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

void CompiledFunction::emit() const {
  if (is_emitted()) return;
  compile::emit(layout_);
  is_emitted_.store(true, std::memory_order_release);
}

namespace {

// The graph before passes.
Graph as_traced(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (traced.as_traced != nullptr) return *traced.as_traced;
  if (sizes.empty()) return traced.graph;
  return compile::at_sizes(traced.graph, traced.sizes, traced.sizes.evaluate(sizes));
}

// Whether loops keep at these sizes what the trace chose.
bool keep_the_same(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (sizes.empty() || !traced.gradients.has_choices()) return true;
  const std::vector<int64_t> values = traced.sizes.evaluate(sizes);
  const auto value = [&](Dim size) { return traced.sizes.value_of(size, values); };
  const std::vector<passes::LoopCost>& costs = traced.gradients.costs;
  return std::all_of(costs.begin(), costs.end(), [&](const passes::LoopCost& cost) {
    return passes::automatic_choice(cost, passes::kMostKept, value) == cost.chosen;
  });
}

// Nothing where the gradients have to stay as they are.
std::optional<Graph> made_again(const TracedGraph& traced, std::span<const int64_t> sizes,
                                const KeptChoice& choice) {
  SizeTable known;
  return passes::differentiate_again(as_traced(traced, sizes), traced.gradients,
                                     {.choose_within = choice_by_plans(known, traced.fuse),
                                      .most_kept = choice.most_kept,
                                      .save_at = choice.save_at},
                                     choice.inlined);
}

}  // namespace

SizedGraph graph_at(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (!keep_the_same(traced, sizes))
    if (std::optional<Graph> graph = made_again(traced, sizes, {}))
      return {std::move(*graph), false};
  return {as_traced(traced, sizes), true};
}

// ---- keys ---------------------------------------------------------------------------------------

namespace {

// Dense except for broadcast axes, which have a single element in memory.
bool is_dense(const ArrayRef& array) {
  int64_t expected = 1;
  for (int64_t axis = array.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = array.shape[axis];
    if (extent == 0) return true;
    const int64_t stride = array.strides[static_cast<size_t>(axis)];
    if (extent == 1 || stride == 0) continue;
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

}  // namespace

compile::Interface::Parameter capture_parameter(const Tensor& capture) {
  const ArrayRef& array = TensorState::of(capture)->array;
  return {ByteClass::constants, false, "captured", is_dense(array) ? Strides{} : array.strides};
}

namespace {

// Whether an argument is donated: it was moved in and is not shared.
bool may_use(const Argument& argument, const TensorState& state) {
  if (state.kind == TensorState::Kind::spec) return state.donated;
  return argument.donated && owns_whole_storage(state);
}

}  // namespace

namespace {

// The words of a key except for open sizes: calls word(number) for each, in order.
template <class Word>
void for_each_word(const TracedGraph& traced, const Arguments& arguments, Word word) {
  word(num_threads());
  for (const int32_t leaf : traced.argument_leaves) {
    const Argument& argument = arguments.leaves[static_cast<size_t>(leaf)];
    const TensorState& state = *TensorState::of(argument.tensor);
    const bool donated = !state.weak && may_use(argument, state);
    if (donated || state.kind == TensorState::Kind::spec || is_dense(state.array)) {
      word(donated ? ProgramKey::donated : ProgramKey::dense);
      continue;
    }
    word(ProgramKey::strided);
    for (const int64_t stride : state.array.strides) word(stride);
  }
}

void note_donations(const TracedGraph& traced, const Arguments& arguments, Profile& profile) {
  for (const int32_t leaf : traced.argument_leaves) {
    const auto at = static_cast<size_t>(leaf);
    const Argument& argument = arguments.leaves[at];
    const TensorState& state = *TensorState::of(argument.tensor);
    if (state.weak) continue;
    if (may_use(argument, state))
      profile.donated.push_back(arguments.path(at));
    else if (argument.donated)
      profile.not_donated.push_back(cat(arguments.path(at), ": somebody else holds its bytes"));
  }
}

}  // namespace

ProgramKey program_key(const TracedGraph& traced, const Arguments& arguments,
                       std::span<const int64_t> sizes, Profile* profile) {
  if (profile != nullptr) note_donations(traced, arguments, *profile);
  ProgramKey key;
  for_each_word(traced, arguments, [&](int64_t word) { key.words.push_back(word); });
  key.sizes_at = key.words.size();
  for (const int64_t size : sizes) key.words.push_back(size);
  return key;
}

bool is_key_of(const ProgramKey& key, const TracedGraph& traced, const Arguments& arguments,
               std::span<const SizePlace> open) {
  size_t at = 0;
  bool same = true;
  const auto compare = [&](int64_t word) {
    same = same && at < key.words.size() && key.words[at] == word;
    ++at;
  };
  for_each_word(traced, arguments, compare);
  for (const SizePlace place : open) compare(size_at(arguments.leaves, place));
  return same && at == key.words.size();
}

namespace {

// Visits the layouts of the arguments in a key: visit(first word, strides).
template <class Visit>
void for_each_argument(const TracedGraph& traced, const ProgramKey& key, Visit visit) {
  size_t at = 1;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    if (!traced.parameters[i].is_argument()) continue;
    const auto rank =
        static_cast<size_t>(traced.graph.type(traced.graph.body().parameters[i]).shape.rank());
    const auto said = static_cast<ProgramKey::Argument>(key.words[at++]);
    const size_t strides = said == ProgramKey::strided ? rank : 0;
    visit(i, said, std::span<const int64_t>(key.words).subspan(at, strides));
    at += strides;
  }
}

}  // namespace

bool serves(const TracedGraph& traced, const ProgramKey& planned, const ProgramKey& call) {
  if (planned.words[0] != call.words[0]) return false;
  if (!std::equal(planned.sizes().begin(), planned.sizes().end(), call.sizes().begin(),
                  call.sizes().end()))
    return false;
  // A donated argument is also dense.
  ProgramKey kept = call;
  size_t place = 1;
  for_each_argument(
      traced, call, [&](size_t, ProgramKey::Argument said, std::span<const int64_t> strides) {
        if (said == ProgramKey::donated && place < planned.sizes_at)
          kept.words[place] = planned.words[place] == ProgramKey::dense ? ProgramKey::dense : said;
        place += 1 + strides.size();
      });
  return kept == planned;
}

// ---- compiling ----------------------------------------------------------------------------------

namespace {

void check_sizes(const TracedGraph& traced, std::span<const int64_t> sizes) {
  for (const NumberCheck& check : traced.checks) {
    if (check.leaf >= 0) continue;
    const int64_t size = traced.sizes.value_of(check.size, traced.sizes.evaluate(sizes));
    check_fits(size, check.dtype, check.op, check.at);
  }
}

// By parameter: whether a result, or the new value of a Variable, aliases it.
struct ParameterUse {
  ParameterUse(const TracedGraph& traced, const run::Program& program)
      : is_result(program.parameters.size()), is_updated(program.parameters.size()) {
    for (size_t k = 0; k < program.results.size(); ++k) {
      if (program.results[k].parameter < 0) continue;
      const auto parameter = static_cast<size_t>(program.results[k].parameter);
      is_result[parameter] = true;
      if (traced.interface.results[k].updates >= 0) is_updated[parameter] = true;
    }
  }
  std::vector<bool> is_result, is_updated;
};

// The source of each parameter in a call, computed once.
void prepare_calls(const TracedGraph& traced, CompiledFunction& compiled) {
  using Kind = CompiledFunction::Parameter::Kind;
  const ParameterUse given(traced, *compiled.program);
  size_t argument = 0;
  int32_t variables = 0;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    CompiledFunction::Parameter& made = compiled.parameters.emplace_back();
    if (traced.parameters[i].variable != nullptr) {
      made.kind = Kind::variable;
      made.in_place = given.is_updated[i];
      made.variable = variables++;
    } else if (!traced.parameters[i].is_argument()) {
      made.kind = Kind::capture;
    } else {
      made.leaf = traced.argument_leaves[argument++];
      if (!traced.parameters[i].weak || given.is_result[i]) continue;
      made.kind = Kind::number;
      ++compiled.numbers;
    }
  }
  std::vector<bool> written(traced.parameters.size());
  for (const compile::Interface::Result& result : traced.interface.results)
    if (result.updates >= 0) written[static_cast<size_t>(result.updates)] = true;
  for (size_t i = 0; i < traced.parameters.size(); ++i)
    if (VariableState* const variable = traced.parameters[i].variable.get())
      compiled.variables.push_back({variable, written[i]});
  std::sort(compiled.variables.begin(), compiled.variables.end(),
            [](const auto& a, const auto& b) { return a.variable->id < b.variable->id; });
}

}  // namespace

namespace {

compile::Layout laid_out(const TracedGraph& traced, Graph graph,
                         const compile::Interface& interface, compile::Placements& placements) {
  const Graph optimised = compile::optimise(
      std::move(graph), compile::pass_options(interface, traced.fuse, &placements.fusions), {},
      compile::backend_of(interface.home));
  return compile::layout(optimised, interface, placements);
}

// Where loops keep other things than in the trace, nodes and buffers are others, and lie by
// themselves.
compile::Layout laid_out(const TracedGraph& traced, std::span<const int64_t> sizes,
                         const compile::Interface& interface, compile::Placements& placements) {
  if (sizes.empty()) return compile::layout(traced.graph, interface, placements);
  SizedGraph sized = graph_at(traced, sizes);
  compile::Placements own;
  return laid_out(traced, std::move(sized.graph), interface, sized.is_as_traced ? placements : own);
}

std::optional<compile::Layout> laid_out(const TracedGraph& traced, std::span<const int64_t> sizes,
                                        const compile::Interface& interface,
                                        const KeptChoice& choice) {
  std::optional<Graph> graph = made_again(traced, sizes, choice);
  if (!graph) return {};
  compile::Placements own;
  return laid_out(traced, std::move(*graph), interface, own);
}

compile::Interface interface_of(const TracedGraph& traced, const ProgramKey& key) {
  compile::Interface interface = traced.interface;
  for_each_argument(traced, key,
                    [&](size_t i, ProgramKey::Argument said, std::span<const int64_t> strides) {
                      interface.parameters[i].donated = said == ProgramKey::donated;
                      interface.parameters[i].strides = Strides(strides);
                    });
  return interface;
}

// A function over its budget has its loops keep the least that they can, where that takes less.
std::shared_ptr<CompiledFunction> within_budget(const TracedGraph& traced, const ProgramKey& key,
                                                const compile::Interface& interface,
                                                compile::Layout usual) {
  const int64_t peak = usual.program->peak_bytes();
  const bool is_over = traced.budget && peak > traced.budget->count;
  if (is_over) {
    Graph graph = traced.graph;
    if (!key.sizes().empty())
      graph = compile::optimise(graph_at(traced, key.sizes()).graph,
                                compile::pass_options(interface, traced.fuse), {},
                                compile::backend_of(interface.home));
    std::vector<fit::Alternative> alternatives;
    alternatives.push_back({std::move(graph)});
    fit::Frontier frontier(std::move(alternatives), interface);
    std::optional<fit::Fit> fit = frontier.at_most(traced.budget->count);
    if (fit) return std::make_shared<CompiledFunction>(std::move(fit->layout));
  }
  if (is_over && traced.gradients.has_choices()) {
    std::optional<compile::Layout> least =
        laid_out(traced, key.sizes(), interface, KeptChoice{.most_kept = 0});
    if (least && least->program->peak_bytes() < peak) {
      auto compiled = std::make_shared<CompiledFunction>(std::move(*least));
      compiled->most_kept = 0;
      return compiled;
    }
  }
  return std::make_shared<CompiledFunction>(std::move(usual));
}

}  // namespace

std::shared_ptr<CompiledFunction> compile_function(const TracedGraph& traced, const ProgramKey& key,
                                                   compile::Placements& placements) {
  const compile::Interface interface = interface_of(traced, key);
  check_sizes(traced, key.sizes());
  auto compiled =
      within_budget(traced, key, interface, laid_out(traced, key.sizes(), interface, placements));
  compiled->key = key;
  prepare_calls(traced, *compiled);
  return compiled;
}

std::shared_ptr<const run::Program> program_keeping(const TracedGraph& traced,
                                                    const ProgramKey& key,
                                                    const KeptChoice& choice) {
  if (traced.gradients.requests.empty()) return nullptr;
  const std::optional<compile::Layout> made =
      laid_out(traced, key.sizes(), interface_of(traced, key), choice);
  return made ? made->program : nullptr;
}

// ---- running ------------------------------------------------------------------------------------

namespace {

// The locks of a call's Variables, in the global lock order: all of them while it reads their
// values, for a consistent snapshot, and those that it writes until the end.
class VariableLocks {
 public:
  explicit VariableLocks(const std::vector<CompiledFunction::VariableLock>& list) : list_(list) {}
  ~VariableLocks() {
    release([](const CompiledFunction::VariableLock&) { return true; });
  }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

  void take_all() {
    for (const CompiledFunction::VariableLock& each : list_) each.variable->lock.lock();
    held_ = LockScope::all;
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
    locks_.take_all();
    bind_parameters();
    take_memory();
    locks_.keep_written();
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
    if (needed == compiled_.peak_bytes() || needed <= function->budget->count) return;
    std::string names;
    for (const VariableBinding& bound : variables_) {
      if (!bound.shared) continue;
      names += (names.empty() ? "" : ", ") + traced_.parameters[bound.parameter].variable->name;
    }
    throw OverBudget(
        cat(function->name.empty() ? "the function" : function->name, ": needs ", needed,
            " bytes at once, the budget is ", function->budget->count,
            " bytes: ", needed - compiled_.peak_bytes(),
            " of them are copies of Variables of which a tensor ", "is still held (", names, ")"),
        at_, cat("let go of tensors read from them before the call; .budget = ", needed, "_B fits"),
        *function->budget, needed);
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

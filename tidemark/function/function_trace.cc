#include "tidemark/function/function_trace.h"

#include <algorithm>

#include "tidemark/base/heap.h"
#include "tidemark/device/memory.h"
#include "tidemark/function/held_bytes.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

constexpr int kMostNested = 64, kMostOfOne = 15;
// Arguments may have any strides; placements are cached for this many kinds of arguments.
constexpr size_t kMostPlacements = 32;

}  // namespace

// A linked list on the stack, independent of the lifetime of other thread-local objects.
constinit thread_local const TracingNow* TracingNow::innermost_ = nullptr;

TracingNow::TracingNow(const UserFunction& function, Source at)
    : function_(&function), outer_(innermost_) {
  int nested = 0, same = 0;
  for (const TracingNow* each = outer_; each != nullptr; each = each->outer_) {
    ++nested;
    same += each->function_ == &function ? 1 : 0;
  }
  if (nested >= kMostNested || same > kMostOfOne) {
    throw UserError(
        cat(function.title(), " calls itself while it is traced, in an endless recursion"), at,
        "a branch of td::cond is traced whether or not it is taken; write the "
        "recursion as td::while_loop, or pass the depth as td::Static<int>");
  }
  innermost_ = this;
}
TracingNow::~TracingNow() { innermost_ = outer_; }

bool TracingNow::fuses() {
  bool fuses = true;
  for (const TracingNow* each = innermost_; each != nullptr; each = each->outer_)
    fuses = each->function_->options.jit;
  return fuses;
}

// ---- programs -----------------------------------------------------------------------------------

namespace {

// An item of a std::map, with the tree's three links and colour.
template <class Item>
constexpr int64_t kNodeBytes = static_cast<int64_t>(sizeof(Item) + 4 * sizeof(void*));

}  // namespace

int64_t Programs::entry_bytes(const Table::value_type& entry) {
  return kNodeBytes<Table::value_type> + held_bytes(*entry.second.program);
}
int64_t Programs::entry_bytes(const PlacementTable::value_type& entry) {
  return kNodeBytes<PlacementTable::value_type> + heap_bytes(entry.first) +
         held_bytes(entry.second);
}

std::shared_ptr<const CompiledFunction> Programs::known(const ProgramKey& key) {
  if (last_ == nullptr || !(last_->first == key)) {
    const auto found = table_.find(key);
    if (found == table_.end()) return nullptr;
    last_ = &*found;
  }
  last_->second.used = ++uses_;
  return last_->second.program;
}

void DroppedOnce::add(size_t hash) noexcept try {
  ++dropped_;
  constexpr size_t most = 4096;
  if (hashes_.size() >= most) hashes_.clear();
  hashes_.insert(hash);
} catch (const std::bad_alloc&) {
}

namespace {

size_t hash_of(std::span<const int64_t> words) {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(words.data()), words.size_bytes()});
}

}  // namespace

std::shared_ptr<const CompiledFunction> Programs::find(const ProgramKey& key) {
  const std::lock_guard guard(lock_);
  return known(key);
}

std::shared_ptr<const CompiledFunction> Programs::find_or_make(const ProgramKey& key,
                                                               int64_t limit_bytes, Make make) {
  const std::lock_guard guard(lock_);
  if (auto program = known(key)) return program;
  const auto start = std::chrono::steady_clock::now();
  const std::span<const int64_t> words = key.words;
  const std::vector<int64_t> but_sizes(words.begin(),
                                       words.begin() + static_cast<int64_t>(key.sizes_at));
  // A dropped placement is recomputed identically, by compiling for the first sizes.
  if (placements_.size() >= kMostPlacements && !placements_.contains(but_sizes)) {
    for (const auto& entry : placements_) bytes_ -= entry_bytes(entry);
    placements_.clear();
  }
  // If compilation fails, the placement is not kept: a partial one would give another plan.
  compile::Placements trial;
  if (const auto known = placements_.find(but_sizes); known != placements_.end())
    trial = known->second;
  const std::shared_ptr<CompiledFunction> made = make(key, trial);
  const auto [placements, is_new] = placements_.try_emplace(but_sizes);
  if (!is_new) bytes_ -= entry_bytes(*placements);
  placements->second = std::move(trial);
  bytes_ += entry_bytes(*placements);
  compile_ms_ += milliseconds_since(start);
  last_ = &*table_.insert_or_assign(key, StoredProgram{made, ++uses_}).first;
  bytes_ += entry_bytes(*last_);
  dropped_.note_made(hash_of(words));
  limit_bytes_ = limit_bytes;
  drop_beyond(limit_bytes);
  held_ = static_cast<int64_t>(table_.size());
  dropped_count_ = dropped_.dropped();
  remade_ = dropped_.remade();
  return made;
}

void Programs::emit(const CompiledFunction& program) {
  if (program.is_emitted()) return;
  const std::lock_guard guard(lock_);
  if (program.is_emitted()) return;
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = held_bytes(program);
  program.emit();
  compile_ms_ += milliseconds_since(start);
  const auto entry = table_.find(program.key);
  if (entry == table_.end() || entry->second.program.get() != &program) return;
  bytes_ += held_bytes(program) - before;
  drop_beyond(limit_bytes_);
  held_ = static_cast<int64_t>(table_.size());
  dropped_count_ = dropped_.dropped();
}

void Programs::drop_beyond(int64_t limit_bytes) {
  while (table_.size() > 1 && bytes_ > limit_bytes) {
    const auto oldest = std::min_element(
        table_.begin(), table_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes_ -= entry_bytes(*oldest);
    dropped_.add(hash_of(oldest->first.words));
    if (last_ == &*oldest) last_ = nullptr;
    table_.erase(oldest);
  }
}

double Programs::compile_ms() const {
  const std::lock_guard guard(lock_);
  return compile_ms_;
}

// ---- one trace ----------------------------------------------------------------------------------

SizeList FunctionTrace::sizes_of(const LeafTypes& call) const {
  SizeList sizes;
  for (const SizePlace place : input.open) sizes.push_back(size_at(call, place));
  return sizes;
}

SizeList FunctionTrace::sizes_of(std::span<const Argument> call) const {
  SizeList sizes;
  for (const SizePlace place : input.open) sizes.push_back(size_at(call, place));
  return sizes;
}

bool FunctionTrace::lies_as_traced() {
  const int64_t now = variable_moves();
  if (moves == now) return true;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    if (traced.parameters[i].variable == nullptr) continue;
    const int32_t then = traced.interface.parameters[i].memory;
    if (memory_of(*traced.parameters[i].variable).value_or(then) != then) return false;
  }
  moves = now;
  return true;
}

bool FunctionTrace::admits(std::span<const int64_t> sizes) const {
  return sizes.empty() || traced.sizes.broken(traced.sizes.evaluate(sizes)) == nullptr;
}

int64_t FunctionTrace::bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(FunctionTrace) + input.key.size() +
                                       input.leaves.size() * sizeof(input.leaves[0]) +
                                       input.open.size() * sizeof(SizePlace) + reason.size());
  for (const std::string& path : paths) bytes += static_cast<int64_t>(sizeof(path) + path.size());
  return bytes + held_bytes(traced) + programs.bytes();
}

std::shared_ptr<const CompiledFunction> FunctionTrace::program_for(
    const std::shared_ptr<FunctionTrace>& self, const ProgramKey& key, int64_t limit_bytes) {
  const auto make = [&](const ProgramKey& wanted, compile::Placements& placements) {
    // Placement depends only on the trace and the sizes, not on earlier calls.
    ProgramKey first = wanted;
    first.words.resize(first.sizes_at);
    for (const int64_t size : sizes_of(input.leaves)) first.words.push_back(size);
    if (placements.arenas.empty() && !(first == wanted))
      compile_function(traced, first, placements);
    auto made = compile_function(traced, wanted, placements);
    made->trace = self;
    return made;
  };
  return programs.find_or_make(key, limit_bytes, make);
}

std::shared_ptr<ProgramFrontier> LatestFrontier::of(const TracedGraph& traced,
                                                    const ProgramKey& key) {
  const std::lock_guard guard(lock_);
  if (frontier_ == nullptr || !key_ || !(*key_ == key)) {
    frontier_ = std::make_shared<ProgramFrontier>(traced, key);
    key_ = key;
  }
  return frontier_;
}

std::shared_ptr<const CompiledFunction> FunctionTrace::program_within(
    const std::shared_ptr<FunctionTrace>& self, const ProgramKey& key, int64_t bytes) {
  auto made = frontiers.of(traced, key)->within(bytes);
  made->trace = self;
  return made;
}

CallResult FunctionTrace::run(const CompiledFunction& compiled, const Arguments& arguments,
                              const RunOptions& options, ResultMaker make, Source at) {
  programs.emit(compiled);
  make(result_structure);
  CallResult leaves(result_leaves.size());
  device::CallList<Tensor> results(given());
  run_function(traced, compiled, arguments.leaves, options, results, at);
  give(results, leaves);
  return leaves;
}

size_t FunctionTrace::given() const {
  return static_cast<size_t>(
      std::count_if(result_leaves.begin(), result_leaves.end(), [](int32_t i) { return i >= 0; }));
}

void FunctionTrace::give(std::span<Tensor> results, CallResult& leaves) const {
  for (size_t i = 0; i < result_leaves.size(); ++i)
    if (result_leaves[i] >= 0)
      leaves[i] = std::move(results[static_cast<size_t>(result_leaves[i])]);
}

// ---- tracing ------------------------------------------------------------------------------------

namespace {

// The body's results: the leaves, then the new values of Variables.
void add_results(Trace& trace, const TraceResult& result, FunctionTrace& made, Source call) {
  Region& region = trace.graph().body();
  std::vector<compile::Interface::Result>& said = made.traced.interface.results;
  for (size_t i = 0; i < result.leaves.size(); ++i) {
    if (!result.leaves[i].has_value()) {
      made.result_leaves.push_back(-1);
      continue;
    }
    const Tensor leaf = tensor_of(result.leaves[i], call);
    made.result_leaves.push_back(static_cast<int32_t>(region.results.size()));
    region.results.push_back(value_of(leaf, call));
    said.push_back({.updates = -1, .name = result.paths[i]});
  }
  for (const auto& [variable, value] : trace.body()->written) {
    region.results.push_back(value_of(value, call));
    said.push_back({.updates = trace.parameter_of(*variable), .name = variable->name});
  }
}

void add_parameters(const Trace& trace, FunctionTrace& made) {
  const LeafTypes& leaves = made.input.leaves;
  size_t leaf = 0;
  for (const Trace::Parameter& parameter : trace.parameters()) {
    std::vector<compile::Interface::Parameter>& said = made.traced.interface.parameters;
    if (parameter.variable != nullptr) {
      said.push_back({ByteClass::variables, false, parameter.variable->name});
    } else if (!parameter.is_argument()) {
      said.push_back(capture_parameter(parameter.capture));
    } else {
      while (leaves[leaf].is_size || leaves[leaf].is_empty) ++leaf;
      said.push_back({ByteClass::arguments, false, made.paths[leaf]});
      made.traced.argument_leaves.push_back(static_cast<int32_t>(leaf++));
    }
  }
}

// Numbers that are arguments, and the dtypes they are converted to.
void add_checks(Trace& trace, TracedGraph& traced) {
  for (const Trace::NumberUse& use : trace.number_uses()) {
    const Node& node = trace.graph().node(use.number);
    if (node.op != nullptr && node.op->literal == Literal::size)
      traced.checks.push_back({-1, node.attrs.read().size(), use.dtype, use.op, use.at});
    size_t argument = 0;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      if (!parameter.is_argument()) continue;
      const int32_t leaf = traced.argument_leaves[argument++];
      if (parameter.value == use.number)
        traced.checks.push_back({leaf, 0, use.dtype, use.op, use.at});
    }
  }
}

std::vector<Argument> stand_ins_for(Trace& trace, const FunctionTrace& made, Source call) {
  LeafTypes traced = made.input.leaves;
  for (const SizePlace place : made.input.open) {
    set_size(traced, place,
             trace.sizes().add_argument(size_at(traced, place), text_of(place, made.paths)));
  }
  std::vector<Argument> stand_ins(traced.size());
  for (size_t i = 0; i < traced.size(); ++i) {
    const LeafType& leaf = traced[i];
    stand_ins[i].is_size = leaf.is_size;
    stand_ins[i].size = leaf.size;
    if (leaf.is_size || leaf.is_empty) continue;
    const bool weak = leaf.weak != Weak::no;
    const TensorType type{weak ? number_dtype(leaf.weak) : leaf.type.dtype, leaf.type.shape};
    stand_ins[i].tensor = trace.argument(type, weak, call, leaf.repeats);
  }
  return stand_ins;
}

// A trace without open sizes is optimised once; others for each size.
void optimise(FunctionTrace& made, const compile::PassObserver& watch) {
  if (!watch && !made.input.open.empty()) return;
  const SizeList sizes = made.sizes_of(made.input.leaves);
  Graph known = graph_at(made.traced, sizes).graph;
  if (watch) watch("trace", known);
  known = compile::optimise(std::move(known),
                            compile::pass_options(made.traced.interface, made.traced.fuse), watch,
                            compile::backend_of(made.traced.interface.home));
  if (made.input.open.empty()) made.traced.graph = std::move(known);
}

// Whether gradients could keep something else: what loops keep, or functions that they run again.
bool may_be_made_again(const passes::GradientHistory& history,
                       const std::vector<Source>& recomputed) {
  return history.can_repeat && (!history.loops.empty() || !recomputed.empty());
}

// Whether a budget may want the graph before passes: gradients of contractions can be computed for
// a part of the batch at a time. Of a very large program, another graph would take too much memory.
bool may_be_cut(const TracedGraph& traced) {
  constexpr size_t kMostNodes = 8000;
  return traced.fuse && traced.graph.nodes.size() <= kMostNodes &&
         std::any_of(traced.graph.nodes.begin(), traced.graph.nodes.end(), [](const Node& node) {
           return node.gradient_of != nullptr && node.op != nullptr &&
                  node.op->family == Family::contract;
         });
}

// A parameter, for people: "argument 0", "Variable w", "a captured tensor".
std::string named(const FunctionTrace& made, size_t parameter) {
  const Trace::Parameter& which = made.traced.parameters[parameter];
  if (which.capture.has_value()) return "a captured tensor";
  const std::string& name = made.traced.interface.parameters[parameter].name;
  return which.variable == nullptr ? name : cat("Variable ", name);
}

// The memory of each parameter, and the one that the program computes in: that of those which do
// not lie in the host's. A Variable without a value gets its first one there.
void place_parameters(FunctionTrace& made, Source call) {
  compile::Interface& interface = made.traced.interface;
  constexpr int32_t unknown = LeafType::kAnyMemory;
  size_t argument = 0;
  int32_t first = 0;  // The parameter that says which.
  for (size_t i = 0; i < made.traced.parameters.size(); ++i) {
    const Trace::Parameter& parameter = made.traced.parameters[i];
    compile::Interface::Parameter& placed = interface.parameters[i];
    if (parameter.variable != nullptr) {
      placed.memory = memory_of(*parameter.variable).value_or(unknown);
    } else if (parameter.capture.has_value()) {
      placed.memory = TensorState::of(parameter.capture)->memory();
    } else {
      const auto leaf = static_cast<size_t>(made.traced.argument_leaves[argument++]);
      placed.memory = made.input.leaves[leaf].memory;
      placed.is_number = parameter.weak;
    }
    if (placed.memory <= device::kHostMemory || placed.memory == interface.home) continue;
    if (interface.home != device::kHostMemory) {
      const auto known = static_cast<size_t>(first);
      throw UserError(cat("a function computes in one memory: ", named(made, known), " lies in ",
                          device::memory_text(interface.home), ", ", placed.name, " in ",
                          device::memory_text(placed.memory)),
                      call, cat("copy one of them first: td::transfer(x, ", interface.home, ")"));
    }
    interface.home = placed.memory;
    first = static_cast<int32_t>(i);
  }
  for (compile::Interface::Parameter& placed : interface.parameters)
    if (placed.memory == unknown) placed.memory = placed.is_number ? 0 : interface.home;
  for (LeafType& leaf : made.input.leaves)
    if (leaf.memory == unknown) leaf.memory = leaf.weak == Weak::no ? interface.home : 0;
}

}  // namespace

std::shared_ptr<FunctionTrace> trace_function(const UserFunction& function, TraceInput input,
                                              const ArgumentStructure& structure,
                                              const TraceOptions& options, Source call) {
  const auto start = std::chrono::steady_clock::now();
  const TracingNow now(function, call);
  const ModeScope mode(input.mode);
  auto made = std::make_shared<FunctionTrace>();
  made->moves = variable_moves();
  made->input = std::move(input);
  made->reason = options.reason;
  made->paths = structure.paths(structure.from);
  made->argument_structure = structure.copy(structure.from);
  Trace trace(function.title(), function.at);
  trace.fuses = TracingNow::fuses();
  trace.freeze = frozen;
  const SizeScope sizes(&trace.sizes());
  if (options.retraced) trace.set_retraced(made->reason);
  const std::vector<Argument> stand_ins = stand_ins_for(trace, *made, call);
  {
    const EnterScope entered(trace.body());
    TraceResult result = function.body(stand_ins, made->argument_structure);
    add_results(trace, result, *made, call);
    made->result_structure = std::move(result.structure);
    made->changed = std::move(result.changed);
  }
  add_parameters(trace, *made);
  add_checks(trace, made->traced);
  made->traced.parameters = trace.parameters();
  made->traced.read_back = trace.read_back();
  made->traced.recomputed = std::move(trace.recomputed());
  made->traced.numbers = trace.numbers();
  made->traced.graph = std::move(trace.graph());
  made->traced.sizes = std::move(trace.sizes());
  made->traced.fuse = function.options.jit;
  made->traced.budget = function.options.budget;
  if (may_be_made_again(trace.gradients(), made->traced.recomputed))
    made->traced.gradients = std::move(trace.gradients());
  place_parameters(*made, call);
  made->trace_ms = milliseconds_since(start);
  const auto optimising = std::chrono::steady_clock::now();
  const bool is_read = taping() || !made->traced.gradients.requests.empty();
  if ((is_read || may_be_cut(made->traced)) && made->input.open.empty())
    made->traced.as_traced = std::make_shared<const Graph>(made->traced.graph);
  if (options.optimised) optimise(*made, options.watch);
  made->optimise_ms = milliseconds_since(optimising);
  return made;
}

std::shared_ptr<FunctionTrace> trace_again(const UserFunction& function, const FunctionTrace& trace,
                                           Source call, const compile::PassObserver& watch,
                                           bool optimised) {
  ArgumentStructure kept;
  kept.from = &trace;
  kept.copy = [](const void* from) {
    return static_cast<const FunctionTrace*>(from)->argument_structure;
  };
  kept.paths = [](const void* from) { return static_cast<const FunctionTrace*>(from)->paths; };
  const TraceOptions options{.reason = "traced again to look at it",
                             .retraced = true,
                             .watch = watch,
                             .optimised = optimised};
  return trace_function(function, trace.input, kept, options, call);
}

namespace {

std::vector<Tensor> captures_of(const FunctionTrace& trace) {
  std::vector<Tensor> list;
  for (const Trace::Parameter& parameter : trace.traced.parameters)
    if (parameter.capture.has_value()) list.push_back(parameter.capture);
  return list;
}

std::string shown(const Tensor& tensor) {
  constexpr int64_t few = 8;
  const bool is_short = tensor.rank() <= 1 && tensor.size() <= few;
  const Source at = TensorState::of(tensor)->at;
  return cat(TensorType{tensor.dtype(), tensor.shape()}, is_short ? cat(" ", tensor) : "",
             at.known() ? cat(" of ", at.text()) : "");
}

// Captured tensors are compared by their elements, since a tensor that the function itself makes is
// a new one in each trace.
std::string changed_captures(const FunctionTrace& trace, const FunctionTrace& again) {
  const std::vector<Tensor> was = captures_of(trace), is = captures_of(again);
  std::string changed;
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    if (identical(was[i], is[i])) continue;
    changed += cat("the captured Tensor ", shown(was[i]), " was frozen into the program, and is ",
                   shown(is[i]), " now\n");
  }
  if (changed.empty() && was.size() != is.size())
    changed =
        "the function was traced differently this time: it captures another number of Tensors\n";
  return changed;
}

}  // namespace

std::string changes_of(const UserFunction& function, const FunctionTrace& trace, Source call) {
  const std::shared_ptr<FunctionTrace> again = trace_again(function, trace, call);
  const std::vector<FrozenNumber>&was = trace.traced.numbers, &is = again->traced.numbers;
  std::string changed = trace.changed ? trace.changed() : std::string();
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    const bool same_line = was[i].at.line == is[i].at.line &&
                           std::string_view(was[i].at.file) == std::string_view(is[i].at.file);
    if (!same_line) {
      return changed + cat("the function does other things now, from ", was[i].at.text(), " on\n");
    }
    if (was[i].value != is[i].value &&
        !(was[i].value != was[i].value && is[i].value != is[i].value)) {
      changed += cat(was[i].at.text(), ": ", was[i].value, " was frozen into the program, and is ",
                     is[i].value, " now\n");
    }
  }
  changed += changed_captures(trace, *again);
  if (changed.empty() && (was.size() != is.size() ||
                          trace.traced.graph.nodes.size() != again->traced.graph.nodes.size()))
    changed = "the function does other things now: it has another number of operations\n";
  return changed;
}

}  // namespace tidemark::detail

#include "tidemark/api/function_core.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

#include "tidemark/api/call_types.h"
#include "tidemark/api/plan_data.h"
#include "tidemark/api/structure.h"
#include "tidemark/api/trace.h"
#include "tidemark/api/traced_function.h"
#include "tidemark/api/variable_state.h"
#include "tidemark/base/output.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/text.h"

namespace tidemark::detail {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Functions this thread is tracing now, innermost last.
thread_local std::vector<const void*> tracing_now;
constexpr size_t kMostNested = 64;

class TracingNow {
 public:
  TracingNow(const void* core, const std::string& name, Source at) {
    if (std::count(tracing_now.begin(), tracing_now.end(), core) >= 16 ||
        tracing_now.size() >= kMostNested) {
      throw UserError(cat(name, " calls itself while it is traced, without an end"), at,
                      "a branch of td::cond is traced whether or not it is taken; write the "
                      "recursion as td::while_loop, or pass the depth as td::Static<int>");
    }
    tracing_now.push_back(core);
  }
  ~TracingNow() { tracing_now.pop_back(); }
  TracingNow(const TracingNow&) = delete;
  TracingNow& operator=(const TracingNow&) = delete;
};

}  // namespace

// ---- one trace ----------------------------------------------------------------------------------

struct FunctionCore::Impl {
  struct Entry {
    LeafTypes leaves;             // Of the call that was traced.
    std::vector<SizePlace> open;  // Sizes of them that may be others, in the order of the table.
    std::string title;            // Of the function.
    std::string key;
    std::string reason;
    std::any argument_structure;
    std::any result_structure;
    TracedFunction traced;
    std::vector<int32_t> result_leaves;  // Of each leaf: a result of the program, or -1.
    // By threads, donations and open sizes.
    struct Held {
      std::shared_ptr<const CompiledFunction> program;
      int64_t used = 0;  // When, counted in uses.
    };
    std::map<std::vector<int64_t>, Held> programs;
    std::map<std::vector<int64_t>, compile::Placements> placements;  // By the same but the sizes.
    int64_t program_bytes = 0, uses = 0;
    std::mutex programs_lock;
    std::atomic<int64_t> calls{0};
    std::vector<Argument> stand_ins;  // The arguments' paths and sizes, without tensors.
    double trace_ms = 0, compile_ms = 0;
    std::atomic<int64_t> bytes{0};

    std::vector<int64_t> sizes_of(const LeafTypes& call) const {
      std::vector<int64_t> sizes;
      for (const SizePlace place : open) sizes.push_back(size_at(call, place));
      return sizes;
    }
  };
  // A trace that serves a call, and the call's sizes for it.
  struct Found {
    std::shared_ptr<Entry> entry;
    std::vector<int64_t> sizes;
    explicit operator bool() const { return entry != nullptr; }
  };

  FunctionOptions options;
  TraceBody body;
  Source at = Source::none();
  mutable std::mutex lock;
  mutable std::vector<std::shared_ptr<Entry>> entries;  // Most recently used first.
  mutable int64_t traces = 0, evictions = 0, in_a_row = 0;
  mutable bool warned = false;
  // Sizes that the function reads as numbers, by key: they stay closed.
  mutable std::map<std::pair<std::string, SizePlace>, Source> read;

  std::string title() const {
    return options.name.empty() ? std::string("the function")
                                : cat("function \"", options.name, "\"");
  }

  // Runs the user's function on stand-ins for these leaves.
  std::shared_ptr<Entry> trace(const Arguments& arguments, LeafTypes leaves,
                               std::vector<SizePlace> open, std::string reason, Source call,
                               const compile::Watch& watch = {}) const {
    const auto start = std::chrono::steady_clock::now();
    const TracingNow now(this, title(), call);
    auto entry = std::make_shared<Entry>();
    entry->leaves = std::move(leaves);
    entry->open = std::move(open);
    entry->title = title();
    entry->key = arguments.key;
    entry->reason = std::move(reason);
    entry->argument_structure = arguments.structure();
    Trace trace(title(), at);
    const SizeScope sizes(&trace.sizes());
    LeafTypes traced = entry->leaves;
    for (const SizePlace place : entry->open) {
      set_size(traced, place,
               trace.sizes().add_argument(size_at(entry->leaves, place),
                                          text_of(place, arguments.leaves)));
    }
    if (traces > 0) trace.set_retraced(entry->reason);
    std::vector<Argument> stand_ins;
    for (size_t i = 0; i < arguments.leaves.size(); ++i) {
      const LeafType& leaf = traced[i];
      Argument stand_in;
      stand_in.path = arguments.leaves[i].path;
      stand_in.is_size = leaf.is_size;
      stand_in.size = leaf.size;
      if (!leaf.is_size && !leaf.is_empty) {
        const bool weak = leaf.weak != Weak::no;
        const TensorType type{weak ? number_dtype(leaf.weak) : leaf.type.dtype, leaf.type.shape};
        stand_in.tensor = trace.argument(type, weak, call);
      }
      Argument kept = stand_in;
      kept.tensor = {};
      entry->stand_ins.push_back(std::move(kept));
      stand_ins.push_back(std::move(stand_in));
    }
    TraceResult result;
    {
      const EnterScope entered(trace.body());
      result = body(stand_ins, entry->argument_structure);
      entry->traced = finish(trace, result, arguments, entry->leaves, entry->result_leaves, call);
    }
    entry->result_structure = std::move(result.structure);
    entry->trace_ms = milliseconds_since(start);
    const auto compiling = std::chrono::steady_clock::now();
    entry->traced.sizes = std::move(trace.sizes());
    entry->traced.fuse = options.jit;
    if (watch || entry->open.empty()) {
      Graph known = at_sizes(entry->traced, entry->sizes_of(entry->leaves));
      if (watch) watch("trace", known);
      known = compile::optimise(std::move(known), {.fuse = options.jit}, watch);
      if (entry->open.empty()) entry->traced.graph = std::move(known);
    }
    entry->compile_ms = milliseconds_since(compiling);
    return entry;
  }

  // The body's results: the leaves, then what Variables became.
  static TracedFunction finish(Trace& trace, const TraceResult& result, const Arguments& arguments,
                               const LeafTypes& leaves, std::vector<int32_t>& result_leaves,
                               Source call) {
    TracedFunction traced;
    Region& region = trace.graph().body();
    for (size_t i = 0; i < result.leaves.size(); ++i) {
      if (!result.leaves[i].has_value()) {
        result_leaves.push_back(-1);
        continue;
      }
      const Tensor leaf = tensor_of(result.leaves[i], call);
      result_leaves.push_back(static_cast<int32_t>(region.results.size()));
      region.results.push_back(value_of(leaf, call));
      traced.interface.results.push_back({.updates = -1, .name = result.paths[i]});
    }
    const auto is_variable = [&](const auto& written, size_t i) {
      return trace.parameters()[i].variable == written.first;
    };
    for (const auto& written : trace.body()->written) {
      size_t which = 0;
      while (!is_variable(written, which)) ++which;
      region.results.push_back(value_of(written.second, call));
      traced.interface.results.push_back(
          {.updates = static_cast<int32_t>(which), .name = written.first->name});
    }
    size_t argument = 0;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      compile::Interface::Parameter said;
      if (parameter.variable != nullptr) {
        said = {ByteClass::variables, false, parameter.variable->name};
      } else if (parameter.capture.has_value()) {
        said = {ByteClass::constants, false, "captured"};
      } else {
        while (leaves[argument].is_size || leaves[argument].is_empty) ++argument;
        said = {ByteClass::arguments, false, arguments.leaves[argument].path};
        traced.argument_leaves.push_back(static_cast<int32_t>(argument++));
      }
      traced.interface.parameters.push_back(std::move(said));
    }
    traced.parameters = trace.parameters();
    traced.numbers = trace.numbers();
    traced.graph = std::move(trace.graph());
    return traced;
  }

  // That the function reads a size as a number, of `what`; empty where it does not.
  std::string read_note(const std::string& what, SizePlace place, const std::string& key) const {
    const auto found = read.find({key, place});
    if (found == read.end()) return {};
    const Source line = found->second;
    return cat("; ", what, " is read as a number", line.known() ? cat(" at ", line.text()) : "",
               ", so each size has a trace of its own");
  }

  // Why these leaves have no trace: how they differ from those of the last call.
  std::string reason_for(const LeafTypes& leaves, const Arguments& arguments) const {
    if (entries.empty()) return traces == 0 ? "first call" : "its trace was dropped from the cache";
    const Entry& last = *entries.front();
    if (last.key != arguments.key) return key_change(last.key, arguments.key);
    if (last.leaves.size() != leaves.size()) return "the number of tensors changed";
    for (size_t i = 0; i < leaves.size(); ++i) {
      const LeafType &was = last.leaves[i], &is = leaves[i];
      if (!are_alike({was}, {is}))
        return cat(arguments.leaves[i].path, ": ", text_of(was), " became ", text_of(is));
    }
    for (const SizePlace place : places_of(leaves)) {
      const Dim was = size_at(last.leaves, place), is = size_at(leaves, place);
      const bool is_open = std::binary_search(last.open.begin(), last.open.end(), place) &&
                           !read.contains({arguments.key, place});
      if (was == is || is_open) continue;
      return cat(text_of(place, arguments.leaves), ": ", was, " became ", is,
                 read_note("it", place, arguments.key));
    }
    if (!match(leaves, last.leaves, last.open)) return "its trace was dropped from the cache";
    const SizeTable& sizes = last.traced.sizes;
    const SizeTable::Guard* const broken = sizes.broken(sizes.evaluate(last.sizes_of(leaves)));
    if (broken == nullptr) return "its trace was dropped from the cache";
    return cat("the last trace serves only sizes with ", sizes.text(*broken));
  }

  Found find(const LeafTypes& leaves, const std::string& key) const {
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = *entries[i];
      if (entry.key != key || !match(leaves, entry.leaves, entry.open)) continue;
      std::vector<int64_t> sizes = entry.sizes_of(leaves);
      const SizeTable& table = entry.traced.sizes;
      if (!sizes.empty() && table.broken(table.evaluate(sizes)) != nullptr) continue;
      std::rotate(entries.begin(), entries.begin() + static_cast<int64_t>(i),
                  entries.begin() + static_cast<int64_t>(i) + 1);
      in_a_row = 0;
      return {entries.front(), std::move(sizes)};
    }
    return {};
  }

  // Which sizes the trace of a call leaves open: those of the signature, and Dims; else those seen
  // with another size before. What is 1 may broadcast, and stays closed.
  std::vector<SizePlace> to_open(const LeafTypes& leaves, const std::string& key,
                                 const std::vector<SizePlace>& asked) const {
    std::vector<SizePlace> chosen = asked;
    const bool has_signature = !options.input_signature.empty();
    if (has_signature) {
      const std::vector<SizePlace> said = open_places(options.input_signature, leaves);
      chosen.insert(chosen.end(), said.begin(), said.end());
    }
    for (const SizePlace place : places_of(leaves)) {
      const Dim is = size_at(leaves, place);
      const auto differs = [&](const std::shared_ptr<Entry>& entry) {
        if (entry->key != key || !are_alike(entry->leaves, leaves)) return false;
        const Dim was = size_at(entry->leaves, place);
        return std::binary_search(entry->open.begin(), entry->open.end(), place) ||
               (was != is && was != 1);
      };
      if (place.axis < 0 ||
          (!has_signature && is != 1 && std::any_of(entries.begin(), entries.end(), differs)))
        chosen.push_back(place);
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    std::erase_if(chosen, [&](SizePlace place) { return read.contains({key, place}); });
    return chosen;
  }

  // A spec's open sizes get one to be traced with: that of a call before, or any.
  std::vector<SizePlace> fill_in(LeafTypes& leaves, const std::string& key) const {
    constexpr int64_t some = 64;
    std::vector<SizePlace> asked;
    for (const SizePlace place : places_of(leaves)) {
      if (!size_at(leaves, place).is_open()) continue;
      asked.push_back(place);
      const auto like = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
        return entry->key == key && are_alike(entry->leaves, leaves);
      });
      set_size(leaves, place, like == entries.end() ? Dim(some) : size_at((*like)->leaves, place));
    }
    return asked;
  }

  // What a trace read as numbers stays closed from now on.
  void note_read(Entry& entry, const Arguments& arguments) const {
    constexpr size_t most = 4096;
    if (read.size() > most) read.clear();
    for (const SizeTable::Closed& closed : entry.traced.sizes.closed()) {
      const SizePlace place = entry.open[static_cast<size_t>(closed.argument)];
      read.insert_or_assign({entry.key, place}, closed.at);
      entry.reason += read_note(text_of(place, arguments.leaves), place, entry.key);
    }
  }

  void warn_of_many(const std::string& reason, Source call) const {
    if (++in_a_row < 6 || warned) return;
    warned = true;
    warn(cat(title(), " was traced 6 times in a row; the last time because of: ", reason,
             "\n  pass what changes as a Tensor (a run-time value) or a Dim (a run-time size), or "
             "give a signature with open sizes: {.input_signature = {td::spec({td::open, 784})}}"),
         call);
  }

  Found entry_for(const Arguments& arguments, Source call) const {
    LeafTypes leaves;
    leaves.reserve(arguments.leaves.size());
    for (const Argument& argument : arguments.leaves) leaves.push_back(leaf_type(argument, call));
    if (!options.input_signature.empty())
      check_signature(options.input_signature, leaves, arguments.leaves, title(), call);
    std::string reason;
    std::vector<SizePlace> open;
    {
      const std::lock_guard guard(lock);
      const std::vector<SizePlace> asked = fill_in(leaves, arguments.key);
      if (Found known = find(leaves, arguments.key)) return known;
      reason = reason_for(leaves, arguments);
      open = to_open(leaves, arguments.key, asked);
    }
    std::shared_ptr<Entry> entry = trace(arguments, leaves, open, reason, call);
    entry->bytes = bytes_of(*entry);
    const std::lock_guard guard(lock);
    // Another thread may have traced the same meanwhile.
    if (Found known = find(leaves, arguments.key)) return known;
    ++traces;
    note_read(*entry, arguments);
    entries.insert(entries.begin(), entry);
    warn_of_many(reason, call);
    evict();
    return {entry, entry->sizes_of(leaves)};
  }

  // About what a trace takes: its graph and programs.
  static int64_t bytes_of(const Entry& entry) {
    int64_t bytes = static_cast<int64_t>(sizeof(Entry) + entry.key.size());
    for (const Node& node : entry.traced.graph.nodes)
      bytes += static_cast<int64_t>(sizeof(Node) + node.results.size() * sizeof(TensorType));
    return bytes + entry.traced.sizes.bytes() + entry.program_bytes;
  }

  void evict() const {
    int64_t held = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      held += entries[i]->bytes;
      if (i == 0 || held <= options.cache_limit.count) continue;
      evictions += static_cast<int64_t>(entries.size() - i);
      entries.resize(i);
      return;
    }
  }

  // The program for these sizes, and for arguments of which those marked may be used up.
  std::shared_ptr<const CompiledFunction> program_for(const Found& found,
                                                      const std::vector<bool>& donated) const {
    Entry& entry = *found.entry;
    std::vector<int64_t> which = {num_threads()};
    which.insert(which.end(), donated.begin(), donated.end());
    which.insert(which.end(), found.sizes.begin(), found.sizes.end());
    std::shared_ptr<const CompiledFunction> program;
    {
      const std::lock_guard guard(entry.programs_lock);
      const auto known = entry.programs.find(which);
      if (known != entry.programs.end()) {
        known->second.used = ++entry.uses;
        return known->second.program;
      }
      const auto start = std::chrono::steady_clock::now();
      auto made = compile_at(entry, donated, found.sizes);
      made->entry = found.entry;
      program = made;
      entry.compile_ms += milliseconds_since(start);
      entry.program_bytes += program->bytes();
      entry.programs[which] = {program, ++entry.uses};
      drop_programs(entry);
      entry.bytes = bytes_of(entry);
    }
    const std::lock_guard guard(lock);
    evict();
    return program;
  }

  // With the plans for other sizes of what is open, for which the function need not be there.
  static Plan plan_of(const std::shared_ptr<Entry>& entry, const std::vector<bool>& donated,
                      const std::vector<int64_t>& sizes,
                      std::shared_ptr<const CompiledFunction> program) {
    std::string title = entry->title;
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes.size(); ++i) {
      names.push_back(text_of(entry->open[i], entry->stand_ins));
      title += cat(i == 0 ? ", for " : ", ", names.back(), " = ", sizes[i]);
    }
    Plan plan = PlanAccess::make(std::move(title), std::move(program));
    if (sizes.empty()) return plan;
    const auto at_sizes = [entry, donated](const std::vector<int64_t>& others, Source at) {
      const SizeTable& table = entry->traced.sizes;
      if (const SizeTable::Guard* broken = table.broken(table.evaluate(others)))
        throw UserError(cat("at: this trace serves only sizes with ", table.text(*broken)), at,
                        "plan by a spec with the sizes themselves: fn.plan(td::spec({64, 784}))");
      std::shared_ptr<CompiledFunction> made;
      {
        const std::lock_guard guard(entry->programs_lock);
        made = compile_at(*entry, donated, others);
      }
      made->entry = entry;
      return plan_of(entry, donated, others, made);
    };
    return PlanAccess::make_open(std::move(plan), std::move(names), at_sizes);
  }

  // Where things lie is a function of the trace and the sizes, whatever came before.
  static std::shared_ptr<CompiledFunction> compile_at(Entry& entry,
                                                      const std::vector<bool>& donated,
                                                      const std::vector<int64_t>& sizes) {
    std::vector<int64_t> variant = {num_threads()};
    variant.insert(variant.end(), donated.begin(), donated.end());
    compile::Placements& placements = entry.placements[variant];
    const std::vector<int64_t> first = entry.sizes_of(entry.leaves);
    if (placements.arenas.empty() && first != sizes)
      compile_function(entry.traced, donated, first, placements);
    return compile_function(entry.traced, donated, sizes, placements);
  }

  // Those not used for the longest time, until the rest takes half of what the cache may.
  void drop_programs(Entry& entry) const {
    while (entry.programs.size() > 1 && entry.program_bytes > options.cache_limit.count / 2) {
      const auto oldest = std::min_element(
          entry.programs.begin(), entry.programs.end(),
          [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      entry.program_bytes -= oldest->second.program->bytes();
      entry.programs.erase(oldest);
    }
  }

  CallResult give(const std::shared_ptr<Entry>& entry, std::vector<Tensor> results) const {
    CallResult called;
    for (const int32_t leaf : entry->result_leaves)
      called.leaves.push_back(leaf < 0 ? Tensor() : results[static_cast<size_t>(leaf)]);
    called.structure = &entry->result_structure;
    called.entry = entry;
    return called;
  }

  // Inside another trace the function is written out where it is called.
  CallResult inlined(const Arguments& arguments, Source call) const {
    const TracingNow now(this, title(), call);
    const auto structure = std::make_shared<std::any>();
    TraceResult result = body(arguments.leaves, arguments.structure());
    *structure = std::move(result.structure);
    CallResult called;
    called.leaves = std::move(result.leaves);
    called.structure = structure.get();
    called.entry = structure;
    return called;
  }

  std::shared_ptr<Entry> trace_again(const Entry& entry, Source call,
                                     const compile::Watch& watch = {}) const {
    Arguments arguments;
    arguments.key = entry.key;
    arguments.structure = [&entry] { return entry.argument_structure; };
    arguments.leaves = entry.stand_ins;
    return trace(arguments, entry.leaves, entry.open, "traced again to look at it", call, watch);
  }

  // Traces again, and compares what was frozen.
  std::string changes_of(const Entry& entry, Source call) const {
    const std::shared_ptr<Entry> again = trace_again(entry, call);
    const std::vector<NumberMet>&was = entry.traced.numbers, &is = again->traced.numbers;
    std::string changed;
    for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
      const bool same_line = was[i].at.line == is[i].at.line &&
                             std::string_view(was[i].at.file) == std::string_view(is[i].at.file);
      if (!same_line) {
        return changed +
               cat("the function does other things now, from ", was[i].at.text(), " on\n");
      }
      if (was[i].value != is[i].value &&
          !(was[i].value != was[i].value && is[i].value != is[i].value)) {
        changed += cat(was[i].at.text(), ": ", was[i].value,
                       " was frozen into the program, and is ", is[i].value, " now\n");
      }
    }
    if (changed.empty() && (was.size() != is.size() ||
                            entry.traced.graph.nodes.size() != again->traced.graph.nodes.size()))
      changed = "the function does other things now: it has another number of operations\n";
    return changed;
  }

  std::vector<bool> donations(const TracedFunction& traced, const Arguments& arguments,
                              Profile* profile) const {
    std::vector<bool> donated;
    for (const int32_t leaf : traced.argument_leaves) {
      const Argument& argument = arguments.leaves[static_cast<size_t>(leaf)];
      const TensorState& state = *TensorState::of(argument.tensor);
      bool may = argument.donated && !state.weak;
      if (may && state.kind == TensorState::Kind::concrete) {
        may =
            is_sole(state) && state.array.is_contiguous() &&
            state.storage->bytes == granted_bytes(state.array.size() * size_of(state.array.dtype));
        if (!may && profile != nullptr)
          profile->not_donated.push_back(cat(argument.path, ": somebody else holds its bytes"));
      }
      if (may && profile != nullptr) profile->donated.push_back(argument.path);
      donated.push_back(may);
    }
    return donated;
  }
};

FunctionCore::FunctionCore(FunctionOptions options, TraceBody body, Source at)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  impl_->body = std::move(body);
  impl_->at = at;
}
FunctionCore::~FunctionCore() = default;

CallResult FunctionCore::call(Arguments arguments, Source at) const {
  if (tracing()) return impl_->inlined(arguments, at);
  const Impl::Found found = impl_->entry_for(arguments, at);
  const std::shared_ptr<Impl::Entry>& entry = found.entry;
  const std::vector<bool> donated = impl_->donations(entry->traced, arguments, nullptr);
  const auto compiled = impl_->program_for(found, donated);
  const int64_t number = entry->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (impl_->options.check_captures && number > 1 && (number & (number - 1)) == 0) {
    const std::string changed = impl_->changes_of(*entry, at);
    if (!changed.empty())
      warn(cat(impl_->title(), " has captured state that changed:\n", changed,
               "  pass it as a Tensor argument, or keep it in a Variable"),
           at);
  }
  return impl_->give(entry, run_function(entry->traced, *compiled, arguments.leaves, {}, at));
}

Plan FunctionCore::plan(Arguments arguments, const PlanOptions&, Source at) const {
  const Impl::Found found = impl_->entry_for(arguments, at);
  const std::shared_ptr<Impl::Entry>& entry = found.entry;
  std::vector<bool> donated;
  for (const int32_t leaf : entry->traced.argument_leaves) {
    const Argument& argument = arguments.leaves[static_cast<size_t>(leaf)];
    donated.push_back(argument.donated &&
                      TensorState::of(argument.tensor)->kind == TensorState::Kind::concrete &&
                      is_sole(*TensorState::of(argument.tensor)));
  }
  return impl_->plan_of(entry, donated, found.sizes, impl_->program_for(found, donated));
}

std::pair<CallResult, Profile> FunctionCore::profile(Arguments arguments, Source at) const {
  const Impl::Found found = impl_->entry_for(arguments, at);
  const std::shared_ptr<Impl::Entry>& entry = found.entry;
  Profile profile;
  const std::vector<bool> donated = impl_->donations(entry->traced, arguments, &profile);
  const auto compiled = impl_->program_for(found, donated);
  profile.planned = PlanAccess::make(impl_->title(), compiled).peak();
  RunOptions options;
  options.profile = &profile;
  CallResult called =
      impl_->give(entry, run_function(entry->traced, *compiled, arguments.leaves, options, at));
  return {std::move(called), std::move(profile)};
}

CallResult FunctionCore::run_in(const Plan& plan, std::span<std::byte> arena, Arguments arguments,
                                Source at) const {
  const Impl::Found found = impl_->entry_for(arguments, at);
  const std::shared_ptr<Impl::Entry>& entry = found.entry;
  const auto compiled = PlanAccess::compiled(plan);
  if (compiled->entry.lock() != entry || compiled->sizes != found.sizes ||
      compiled->program->threads != num_threads()) {
    throw UserError(
        "run_in: the plan was made for other arguments, or for another number of threads", at,
        "plan with the types of these arguments: fn.plan(arguments...)");
  }
  if (static_cast<int64_t>(arena.size()) < plan.arena().count ||
      reinterpret_cast<uintptr_t>(arena.data()) % kAlignment != 0) {
    throw UserError(cat("run_in: the plan needs ", plan.arena().count, " bytes aligned to ",
                        kAlignment, ", the arena has ", arena.size(), " at an address that is ",
                        reinterpret_cast<uintptr_t>(arena.data()) % kAlignment, " past such a one"),
                    at, "give plan.arena() bytes: std::aligned_alloc(64, plan.arena().count)");
  }
  RunOptions options;
  options.arena = arena.data();
  return impl_->give(entry, run_function(entry->traced, *compiled, arguments.leaves, options, at));
}

CacheInfo FunctionCore::cache_info() const {
  const std::lock_guard guard(impl_->lock);
  CacheInfo info;
  info.limit = impl_->options.cache_limit;
  info.traces = impl_->traces;
  info.evictions = impl_->evictions;
  for (const auto& entry : impl_->entries) {
    CacheEntry row;
    LeafTypes leaves = entry->leaves;
    for (const SizePlace place : entry->open) {
      if (!impl_->read.contains({entry->key, place})) set_size(leaves, place, open);
    }
    for (size_t i = 0; i < leaves.size(); ++i)
      row.signature += (i == 0 ? "" : ", ") + text_of(leaves[i]);
    row.reason = entry->reason;
    {
      const std::lock_guard programs(entry->programs_lock);
      row.bytes = Impl::bytes_of(*entry);
      row.compile_ms = entry->compile_ms;
    }
    row.calls = entry->calls.load();
    row.trace_ms = entry->trace_ms;
    info.bytes = info.bytes + row.bytes;
    info.entries.push_back(std::move(row));
  }
  return info;
}

void FunctionCore::clear_cache() const {
  std::vector<std::shared_ptr<Impl::Entry>> dropped;
  const std::lock_guard guard(impl_->lock);
  dropped.swap(impl_->entries);
  impl_->read.clear();
}

std::string FunctionCore::report() const {
  const std::lock_guard guard(impl_->lock);
  std::ostringstream out;
  out << impl_->title() << ", " << impl_->entries.size() << " traces\n";
  for (const auto& entry : impl_->entries) {
    for (const NumberMet& number : entry->traced.numbers)
      out << "  number " << number.value << " frozen at " << number.at.text() << '\n';
    for (const Trace::Parameter& parameter : entry->traced.parameters) {
      if (parameter.capture.has_value()) {
        out << "  captured tensor " << type_of(parameter.capture, Source::none()) << ", made at "
            << parameter.capture.source().text() << '\n';
      }
      if (parameter.variable != nullptr) {
        out << "  Variable " << parameter.variable->name << ' ' << parameter.variable->type()
            << '\n';
      }
    }
  }
  return out.str();
}

std::string FunctionCore::check_captures(Source at) const {
  std::vector<std::shared_ptr<Impl::Entry>> entries;
  {
    const std::lock_guard guard(impl_->lock);
    entries = impl_->entries;
  }
  std::string changed;
  for (const auto& entry : entries) changed += impl_->changes_of(*entry, at);
  return changed;
}

std::string FunctionCore::text(std::string_view pass) const {
  std::shared_ptr<Impl::Entry> entry;
  {
    const std::lock_guard guard(impl_->lock);
    if (impl_->entries.empty()) return "";
    entry = impl_->entries.front();
  }
  if (pass.empty()) return to_text(entry->traced.graph, {.sources = true});
  std::string text;
  std::string known;
  const compile::Watch watch = [&](std::string_view name, const Graph& graph) {
    if (name == pass) text = to_text(compact(graph), {.sources = true});
    known += cat(known.empty() ? "" : ", ", name);
  };
  impl_->trace_again(*entry, impl_->at, watch);
  if (text.empty())
    throw UserError(cat("text: there is no pass ", pass), Source::none(), cat("one of: ", known));
  return text;
}

const std::string& FunctionCore::name() const { return impl_->options.name; }

}  // namespace tidemark::detail

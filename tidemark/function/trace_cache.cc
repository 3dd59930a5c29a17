#include "tidemark/function/trace_cache.h"

#include <algorithm>
#include <set>

#include "tidemark/base/output.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/function/function_plan.h"
#include "tidemark/structure/structure.h"

namespace tidemark::detail {

namespace {

size_t hash_of(const TraceInput& input) {
  std::string text = cat(input.mode.training ? "training " : "", input.mode.autocast, input.key);
  for (const LeafType& leaf : input.leaves) text += cat(" ", text_of(leaf));
  return std::hash<std::string>()(text);
}

std::string counted(size_t count, const char* what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

// A suggested limit in whole MiB: at least twice the limit, and four times what is held.
int64_t larger_limit(int64_t limit, int64_t held) {
  int64_t enough = std::max(2 * limit, int64_t{1} << 20);
  while (enough < 4 * held) enough *= 2;
  return enough;
}

}  // namespace

// ---- finding ------------------------------------------------------------------------------------

// The program of the last call, if this one matches it. Does not allocate.
std::shared_ptr<const TraceCache::Ready> TraceCache::find_last(const Arguments& arguments,
                                                               Mode mode) const {
  const std::lock_guard guard(lock_);
  if (last_ == nullptr) return nullptr;
  FunctionTrace& trace = *last_->trace;
  const TraceInput& input = trace.input;
  if (input.mode != mode || !arguments.is_like(trace.argument_structure) ||
      !match(arguments.leaves, input.leaves, input.open) || !trace.lies_as_traced())
    return nullptr;
  // Equal sizes have passed the guards before.
  if (!is_key_of(last_->compiled->key, trace.traced, arguments, input.open)) return nullptr;
  ++trace.calls;
  return last_;
}

std::shared_ptr<const TraceCache::Ready> TraceCache::ready_for(const Arguments& arguments,
                                                               Source call) {
  if (auto last = find_last(arguments, function_.mode())) return last;
  const Match found = trace_for(arguments, call);
  const ProgramKey key = program_key(found.trace->traced, arguments, found.sizes);
  auto ready = std::make_shared<Ready>();
  ready->trace = found.trace;
  ready->compiled = program_for(found, key, call);
  // A call that matches the last one has been checked then.
  if (function_.options.budget.has_value()) {
    const PlanMaker plans(function_, found.trace);
    ready->compiled = plans.within_budget(std::move(ready->compiled));
    plans.check(ready->compiled, call);
  }
  emit(*found.trace, *ready->compiled, call);
  const std::lock_guard guard(lock_);
  ++found.trace->calls;
  // Another thread may have used another trace, or cleared the cache.
  if (!traces_.empty() && traces_.front() == found.trace) last_ = ready;
  return ready;
}

bool TraceCache::serves(FunctionTrace& trace, const Call& call, SizeList& sizes) const {
  const TraceInput& input = trace.input;
  if (input.mode != call.mode || input.key != call.key ||
      !match(call.leaves, input.leaves, input.open) || !trace.lies_as_traced())
    return false;
  sizes = trace.sizes_of(call.leaves);
  return trace.admits(sizes);
}

TraceCache::Match TraceCache::find(const Call& call) {
  for (size_t i = 0; i < traces_.size(); ++i) {
    SizeList sizes;
    if (serves(*traces_[i], call, sizes)) return used(i, std::move(sizes));
  }
  return {};
}

// The same lookup for a call of concrete tensors, before building the full key.
TraceCache::Match TraceCache::find_known(const Arguments& arguments, Mode mode) {
  const std::lock_guard guard(lock_);
  for (size_t i = 0; i < traces_.size(); ++i) {
    const TraceInput& input = traces_[i]->input;
    if (input.mode != mode || !arguments.is_like(traces_[i]->argument_structure) ||
        !match(arguments.leaves, input.leaves, input.open) || !traces_[i]->lies_as_traced())
      continue;
    SizeList sizes = traces_[i]->sizes_of(arguments.leaves);
    if (traces_[i]->admits(sizes)) return used(i, std::move(sizes));
  }
  return {};
}

// Moves it to the front.
TraceCache::Match TraceCache::used(size_t trace, SizeList sizes) {
  if (trace != 0) last_ = nullptr;
  const auto found = traces_.begin() + static_cast<int64_t>(trace);
  std::rotate(traces_.begin(), found, found + 1);
  in_a_row_ = 0;
  return {traces_.front(), std::move(sizes)};
}

// A trace that differs only in sizes.
bool TraceCache::is_like(const FunctionTrace& trace, const Call& call) const {
  return trace.input.mode == call.mode && trace.input.key == call.key &&
         are_alike(trace.input.leaves, call.leaves);
}

// ---- reasons ------------------------------------------------------------------------------------

// The reason that the function reads size `what` as a number; empty if it does not.
std::string TraceCache::read_note(const std::string& what, SizePlace place,
                                  const std::string& key) const {
  const auto found = read_.find({key, place});
  if (found == read_.end()) return {};
  const Source line = found->second;
  return cat("; ", what, " is read as a number", line.known() ? cat(" at ", line.text()) : "",
             ", so each size has a trace of its own");
}

// Why these leaves have no trace: their difference from those of the last call.
std::string TraceCache::reason_for(const Call& call) const {
  constexpr const char* dropped = "its trace was dropped from the cache";
  if (traces_.empty()) return made_ == 0 ? "first call" : dropped;
  const FunctionTrace& last = *traces_.front();
  const LeafTypes &was_leaves = last.input.leaves, &leaves = call.leaves;
  const std::string& key = call.key;
  if (last.input.mode.training != call.mode.training)
    return call.mode.training ? "evaluation became training" : "training became evaluation";
  if (last.input.mode.autocast != call.mode.autocast)
    return cat("Autocast: ", last.input.mode.autocast, " became ", call.mode.autocast);
  if (last.input.key != key) return key_change(last.input.key, key);
  if (was_leaves.size() != leaves.size()) return "the number of tensors changed";
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafType &was = was_leaves[i], &is = leaves[i];
    if (!are_alike({was}, {is}))
      return cat(call.arguments.path(i), ": ", text_of(was), " became ", text_of(is));
  }
  for (const SizePlace place : places_of(leaves)) {
    const Dim was = size_at(was_leaves, place), is = size_at(leaves, place);
    const bool is_open =
        std::binary_search(last.input.open.begin(), last.input.open.end(), place) &&
        !read_.contains({key, place});
    if (was == is || is_open) continue;
    return cat(text_of(place, call.arguments.paths()), ": ", was, " became ", is,
               read_note("it", place, key));
  }
  if (!match(leaves, was_leaves, last.input.open)) return dropped;
  const SizeTable& sizes = last.traced.sizes;
  const SizeTable::Guard* const broken = sizes.broken(sizes.evaluate(last.sizes_of(leaves)));
  if (broken == nullptr) return dropped;
  return cat("the last trace serves only sizes with ", sizes.text(*broken));
}

void TraceCache::warn_of_many(const std::string& reason, Source call) {
  if (++in_a_row_ < 6 || warned_) return;
  warned_ = true;
  warn(cat(function_.title(), " was traced 6 times in a row; the last time because of: ", reason,
           "\n  pass what changes as a Tensor (a run-time value) or a Dim (a run-time size), or "
           "give a signature with open sizes: {.input_signature = {td::spec({td::open, 784})}}"),
       call);
}

// ---- open sizes ---------------------------------------------------------------------------------

// The sizes that a trace leaves open: Dims and open sizes of the signature; without a signature,
// sizes that differed in earlier calls. A size of 1 may broadcast and is never opened.
std::vector<SizePlace> TraceCache::to_open(const Call& call,
                                           const std::vector<SizePlace>& asked) const {
  const LeafTypes& leaves = call.leaves;
  const std::string& key = call.key;
  std::vector<SizePlace> chosen = asked;
  const std::vector<TensorSpec>& signature = function_.options.input_signature;
  if (!signature.empty()) {
    const std::vector<SizePlace> said = open_places(signature, leaves);
    chosen.insert(chosen.end(), said.begin(), said.end());
  }
  for (const SizePlace place : places_of(leaves)) {
    const Dim is = size_at(leaves, place);
    const auto differs = [&](const std::shared_ptr<FunctionTrace>& trace) {
      if (!is_like(*trace, call)) return false;
      const TraceInput& input = trace->input;
      const Dim was = size_at(input.leaves, place);
      return std::binary_search(input.open.begin(), input.open.end(), place) ||
             (was != is && was != 1);
    };
    if (place.axis < 0 ||
        (signature.empty() && is != 1 && std::any_of(traces_.begin(), traces_.end(), differs)))
      chosen.push_back(place);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::erase_if(chosen, [&](SizePlace place) { return read_.contains({key, place}); });
  return chosen;
}

// A spec's open sizes get an example for tracing: from an earlier call, or arbitrary.
std::vector<SizePlace> TraceCache::fill_in(Call& call) const {
  constexpr int64_t some = 64;
  std::vector<SizePlace> asked;
  for (const SizePlace place : places_of(call.leaves)) {
    if (!size_at(call.leaves, place).is_open()) continue;
    asked.push_back(place);
    const auto like = std::find_if(traces_.begin(), traces_.end(),
                                   [&](const auto& trace) { return is_like(*trace, call); });
    set_size(call.leaves, place,
             like == traces_.end() ? Dim(some) : size_at((*like)->input.leaves, place));
  }
  return asked;
}

// Sizes that a trace has read as numbers are not opened from now on.
void TraceCache::note_read(FunctionTrace& trace) {
  constexpr size_t most = 4096;
  if (read_.size() > most) read_.clear();
  const TraceInput& input = trace.input;
  for (const SizeTable::Specialization& closed : trace.traced.sizes.closed()) {
    const SizePlace place = input.open[static_cast<size_t>(closed.argument)];
    read_.insert_or_assign({input.key, place}, closed.at);
    trace.reason += read_note(text_of(place, trace.paths), place, input.key);
  }
}

// ---- the whole ----------------------------------------------------------------------------------

TraceCache::Match TraceCache::trace_for(const Arguments& arguments, Source call_at) {
  const Mode mode = function_.mode();
  if (Match known = find_known(arguments, mode)) return known;
  Call call{.leaves = {}, .arguments = arguments, .key = arguments.key(), .mode = mode};
  for (const Argument& argument : arguments.leaves)
    call.leaves.push_back(leaf_type(argument, call_at));
  const std::vector<TensorSpec>& signature = function_.options.input_signature;
  if (!signature.empty())
    check_signature(signature, call.leaves, arguments, function_.title(), call_at);
  TraceInput input{.leaves = {}, .open = {}, .key = call.key, .mode = mode};
  TraceOptions options;
  {
    const std::lock_guard guard(lock_);
    const std::vector<SizePlace> asked = fill_in(call);
    if (Match known = find(call)) return known;
    options.reason = reason_for(call);
    options.retraced = made_ > 0;
    input.open = to_open(call, asked);
    input.leaves = call.leaves;
  }
  const std::shared_ptr<FunctionTrace> made =
      trace_function(function_, std::move(input), arguments.from, options, call_at);
  const std::lock_guard guard(lock_);
  // Another thread may have traced the same call meanwhile.
  if (Match known = find(call)) return known;
  Match found{made, made->sizes_of(call.leaves)};
  note_read(*made);
  account_.set_reason(made->reason);
  made->hash = hash_of(made->input);
  traces_.reserve(traces_.size() + 1);
  // From here on the trace is in the cache; nothing can fail before it is counted.
  traces_.insert(traces_.begin(), made);
  ++made_;
  last_ = nullptr;
  dropped_.note_made(made->hash);
  evict();
  warn_of_many(options.reason, call_at);
  warn_of_limit(call_at);
  return found;
}

std::shared_ptr<const CompiledFunction> TraceCache::program_for(const Match& found,
                                                                const ProgramKey& key,
                                                                Source call) {
  if (auto known = found.trace->programs.find(key)) {
    const std::lock_guard guard(lock_);
    if (!is_noted_) note_held();
    return known;
  }
  auto made = found.trace->program_for(found.trace, key, room_for(*found.trace));
  const std::lock_guard guard(lock_);
  evict();
  warn_of_limit(call);
  return made;
}

void TraceCache::emit(FunctionTrace& trace, const CompiledFunction& program, Source call) {
  if (program.is_emitted()) return;
  const int64_t code_before = compile::code_made_here();
  trace.programs.emit(program);
  const std::lock_guard guard(lock_);
  code_bytes_ += compile::code_made_here() - code_before;
  evict();
  warn_of_limit(call);
}

// The bytes that the programs of one trace may use: what other traces leave, and at least half of
// the limit, for which older traces make room.
int64_t TraceCache::room_for(const FunctionTrace& trace) const {
  const std::lock_guard guard(lock_);
  const int64_t limit = function_.options.cache_limit.count;
  int64_t left = limit;
  for (const auto& each : traces_)
    left -= each.get() == &trace ? trace.bytes() - trace.programs.bytes() : each->bytes();
  return std::max(limit / 2, left);
}

void TraceCache::evict() {
  int64_t held = 0;
  for (size_t i = 0; i < traces_.size(); ++i) {
    held += traces_[i]->bytes();
    if (i == 0 || held <= function_.options.cache_limit.count) continue;
    for (size_t gone = i; gone < traces_.size(); ++gone) note_dropped(*traces_[gone]);
    traces_.resize(i);
    break;
  }
  note_held();
}

void TraceCache::note_dropped(const FunctionTrace& trace) noexcept {
  dropped_.add(trace.hash);
  const Programs::Counts counts = trace.programs.counts();
  gone_.dropped += counts.held + counts.dropped;
  gone_.remade += counts.remade;
}

// Counts of all traces so far.
Programs::Counts TraceCache::programs() const {
  Programs::Counts all = gone_;
  for (const auto& trace : traces_) {
    const Programs::Counts counts = trace->programs.counts();
    all.held += counts.held;
    all.dropped += counts.dropped;
    all.remade += counts.remade;
  }
  return all;
}

// A cache that is too small compiles at every call, which is otherwise invisible.
void TraceCache::warn_of_limit(Source call) {
  const Programs::Counts counts = programs();
  const int64_t remade = dropped_.remade() + counts.remade;
  if (warned_of_limit_ || remade == 0) return;
  warned_of_limit_ = true;
  int64_t held = 0;
  for (const auto& trace : traces_) held += trace->bytes();
  warn(cat(function_.title(), function_.at.known() ? cat(" (", function_.at.text(), ")") : "",
           " compiles a program again that its cache has dropped: the cache holds ",
           counted(traces_.size(), "trace"), " and ", counted(counts.held, "program"), " in ",
           Bytes(held), " of its limit of ", function_.options.cache_limit, ", has dropped ",
           counted(dropped_.dropped(), "trace"), " and ", counted(counts.dropped, "program"),
           ", and made ", remade,
           " of them again\n  give it a larger limit, such as {.cache_limit = ",
           larger_limit(function_.options.cache_limit.count, held) >> 20,
           "_MiB}; cache_info() lists what it holds"),
       call);
}

// If there is no memory for the update, the next call repeats it.
void TraceCache::note_held() noexcept try {
  is_noted_ = false;
  FunctionSums held{
      .traces = static_cast<int64_t>(traces_.size()), .traced = made_, .code_bytes = code_bytes_};
  std::set<const device::Storage*> captured;
  for (const auto& trace : traces_) {
    held.bytes += trace->bytes();
    for (const Trace::Parameter& parameter : trace->traced.parameters)
      if (parameter.capture.has_value())
        captured.insert(TensorState::of(parameter.capture)->storage);
  }
  held.captured = static_cast<int64_t>(captured.size());
  for (const device::Storage* storage : captured) held.captured_bytes += storage->bytes;
  account_.set(held);
  is_noted_ = true;
} catch (const std::bad_alloc&) {
}

std::vector<std::shared_ptr<FunctionTrace>> TraceCache::all() const {
  const std::lock_guard guard(lock_);
  return traces_;
}

int64_t TraceCache::calls_of(const FunctionTrace& trace) const {
  const std::lock_guard guard(lock_);
  return trace.calls;
}

CacheInfo TraceCache::info() const {
  const std::lock_guard guard(lock_);
  CacheInfo info;
  info.limit = function_.options.cache_limit;
  info.traces = made_;
  const Programs::Counts counts = programs();
  info.evictions = dropped_.dropped() + counts.dropped;
  info.remade = dropped_.remade() + counts.remade;
  for (const auto& trace : traces_) {
    CacheEntry row;
    LeafTypes leaves = trace->input.leaves;
    for (const SizePlace place : trace->input.open) {
      if (!read_.contains({trace->input.key, place})) set_size(leaves, place, open);
    }
    for (size_t i = 0; i < leaves.size(); ++i)
      row.signature += (i == 0 ? "" : ", ") + text_of(leaves[i]);
    row.reason = trace->reason;
    row.bytes = trace->bytes();
    row.compile_ms = trace->optimise_ms + trace->programs.compile_ms();
    row.calls = trace->calls;
    row.trace_ms = trace->trace_ms;
    info.bytes = info.bytes + row.bytes;
    info.entries.push_back(std::move(row));
  }
  return info;
}

void TraceCache::clear() {
  std::vector<std::shared_ptr<FunctionTrace>> dropped;
  std::shared_ptr<const Ready> last;
  const std::lock_guard guard(lock_);
  dropped.swap(traces_);
  last.swap(last_);
  read_.clear();
  note_held();
}

}  // namespace tidemark::detail

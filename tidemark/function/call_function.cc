// A call of a Function: trace, plan and compile if it is the first of its kind, then run.
#include <algorithm>
#include <sstream>

#include "tidemark/base/output.h"
#include "tidemark/base/text.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/function/function_core.h"
#include "tidemark/function/function_plan.h"
#include "tidemark/function/loop_choices.h"
#include "tidemark/function/plan_data.h"
#include "tidemark/function/recorded_call.h"
#include "tidemark/function/trace_cache.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

FunctionCore::FunctionCore(FunctionOptions options, TraceBody body, Source at)
    : function_{std::move(options), std::move(body), at},
      cache_(std::make_unique<TraceCache>(function_)) {}
FunctionCore::~FunctionCore() = default;

// ---- calls --------------------------------------------------------------------------------------

// Inside another trace the function is inlined.
CallResult FunctionCore::inlined(const Arguments& arguments, ResultMaker make, Source at) const {
  const TracingNow now(function_, at);
  const ModeScope mode(function_.mode());
  TraceResult result = function_.body(arguments.leaves, arguments.structure());
  make(result.structure);
  return {std::move_iterator(result.leaves.begin()), std::move_iterator(result.leaves.end())};
}

void FunctionCore::check_captures_sometimes(const FunctionTrace& trace, Source at) const {
  const int64_t number = cache_->calls_of(trace);
  if (number < 2 || (number & (number - 1)) != 0) return;
  const std::string changed = changes_of(function_, trace, at);
  if (changed.empty()) return;
  warn(cat(function_.title(), " has captured state that changed:\n", changed,
           "  pass it as a Tensor argument, or keep it in a Variable"),
       at);
}

namespace {

void refuse_tape_elsewhere(const FunctionTrace& trace, Source at) {
  const int32_t home = trace.traced.interface.home;
  if (home == device::kHostMemory) return;
  throw UserError(cat("a tape cannot record a call that computes in ", device::memory_text(home)),
                  at,
                  "take the gradient inside the function, with a tape of its own; or pause this "
                  "one: const auto pause = tape.stop_recording()");
}

// The caller's arena is the host's.
void refuse_arena_elsewhere(const FunctionTrace& trace, Source at) {
  const int32_t home = trace.traced.interface.home;
  if (home == device::kHostMemory) return;
  throw UserError(cat("run_in: the function computes in ", device::memory_text(home),
                      ", the arena is the host's"),
                  at, "call the function: it takes its own arena there");
}

}  // namespace

CallResult FunctionCore::call(const Arguments& arguments, ResultMaker make, Source at) const {
  // As in bind_op: a trace takes the call, a tape records it, otherwise it runs.
  if (tracing()) return inlined(arguments, make, at);
  if (taping()) [[unlikely]] {
    const TraceCache::Match found = cache_->trace_for(arguments, at);
    refuse_tape_elsewhere(*found.trace, at);
    if (auto recorded = recorded_call(function_, found.trace, found.sizes, arguments, make, at))
      return std::move(*recorded);
  }
  const std::shared_ptr<const TraceCache::Ready> ready = cache_->ready_for(arguments, at);
  FunctionTrace& trace = *ready->trace;
  if (function_.options.check_captures) check_captures_sometimes(trace, at);
  RunOptions options;
  options.function = &function_.options;
  return trace.run(*ready->compiled, arguments, options, make, at);
}

Plan FunctionCore::plan(const Arguments& arguments, const PlanOptions& options, Source at) const {
  const TraceCache::Match found = cache_->trace_for(arguments, at);
  PlanMaker plans(function_, found.trace);
  if (options.budget.has_value()) plans.budget = options.budget;
  const ProgramKey key = program_key(found.trace->traced, arguments, found.sizes);
  auto program = cache_->program_for(found, key, at);
  if (options.budget.has_value())
    program = plans.program_for(key);
  else if (plans.budget.has_value())
    program = plans.within_budget(std::move(program));
  Plan plan = plans.make(program, at);
  if (program->program->kept.empty() || program->changes) return plan;
  return PlanAccess::with_other_choices(std::move(plan),
                                        other_choices(found.trace->traced, *program));
}

int64_t FunctionCore::largest(const Arguments& arguments, const Budget& budget, Source at) const {
  const TraceCache::Match found = cache_->trace_for(arguments, at);
  PlanMaker plans(function_, found.trace);
  plans.budget = budget;
  return plans.largest(program_key(found.trace->traced, arguments, found.sizes), at);
}

Bytes FunctionCore::saved_for_gradient(const Arguments& arguments, Source at) const {
  const TraceCache::Match found = cache_->trace_for(arguments, at);
  return detail::saved_for_gradient(function_, found.trace, found.sizes, at);
}

namespace {

// A tape would run its own forward program, not the requested one.
void refuse_under_tape(const char* what, const FunctionTrace& trace, const Arguments& arguments,
                       Source at) {
  if (!is_recorded(trace, arguments, at)) return;
  throw UserError(
      cat(what, ": a tape watches values that this call reads, but cannot record the call"), at,
      "call the function for its gradient, or pause the tape: const auto pause = "
      "tape.stop_recording()");
}

}  // namespace

std::pair<CallResult, Profile> FunctionCore::profile(const Arguments& arguments, ResultMaker make,
                                                     Source at) const {
  const TraceCache::Match found = cache_->trace_for(arguments, at);
  FunctionTrace& trace = *found.trace;
  refuse_under_tape("profile", trace, arguments, at);
  Profile profile;
  const ProgramKey key = program_key(trace.traced, arguments, found.sizes, &profile);
  const auto compiled = cache_->program_for(found, key, at);
  profile.function = function_.title();
  PlanMaker(function_, found.trace).check(compiled, at);
  cache_->emit(trace, *compiled, at);
  profile.planned = compiled->peak_bytes();
  RunOptions options;
  options.profile = &profile;
  options.function = &function_.options;
  CallResult called = trace.run(*compiled, arguments, options, make, at);
  return {std::move(called), std::move(profile)};
}

CallResult FunctionCore::run_in(const Plan& plan, std::span<std::byte> arena,
                                const Arguments& arguments, ResultMaker make, Source at) const {
  const TraceCache::Match found = cache_->trace_for(arguments, at);
  FunctionTrace& trace = *found.trace;
  refuse_under_tape("run_in", trace, arguments, at);
  refuse_arena_elsewhere(trace, at);
  const auto compiled = PlanAccess::compiled(plan);
  if (compiled->trace.lock() != found.trace ||
      !serves(trace.traced, compiled->key, program_key(trace.traced, arguments, found.sizes))) {
    throw UserError(
        "run_in: the plan was made for other arguments, or for another number of threads", at,
        "plan with the types of these arguments: fn.plan(arguments...)");
  }
  if (static_cast<int64_t>(arena.size()) < plan.arena().count ||
      reinterpret_cast<uintptr_t>(arena.data()) % kAlignment != 0) {
    throw UserError(
        cat("run_in: the plan needs ", plan.arena().count, " bytes aligned to ", kAlignment,
            ", the arena has ", arena.size(), " at an address that is off by ",
            reinterpret_cast<uintptr_t>(arena.data()) % kAlignment),
        at, "give plan.arena() bytes: std::aligned_alloc(64, plan.arena().count)");
  }
  cache_->emit(trace, *compiled, at);
  RunOptions options;
  options.arena = arena.data();
  return trace.run(*compiled, arguments, options, make, at);
}

// ---- looking at it ------------------------------------------------------------------------------

CacheInfo FunctionCore::cache_info() const { return cache_->info(); }
void FunctionCore::clear_cache() const { cache_->clear(); }

std::string FunctionCore::report() const {
  const auto traces = cache_->all();
  TextStream out;
  out << function_.title() << ", " << traces.size() << " traces\n";
  for (const auto& trace : traces) {
    for (const FrozenNumber& number : trace->traced.numbers)
      out << "  number " << number.value << " frozen at " << number.at.text() << '\n';
    for (const Trace::Parameter& parameter : trace->traced.parameters) {
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
  std::string changed;
  for (const auto& trace : cache_->all()) changed += changes_of(function_, *trace, at);
  return changed;
}

std::string FunctionCore::text(std::string_view pass) const {
  const auto traces = cache_->all();
  if (traces.empty()) return "";
  if (pass.empty()) return to_text(traces[0]->traced.graph, {.sources = true});
  std::string text;
  std::string known;
  const compile::PassObserver watch = [&](std::string_view name, const Graph& graph) {
    if (name == pass) text = to_text(compact(graph), {.sources = true});
    known += cat(known.empty() ? "" : ", ", name);
  };
  trace_again(function_, *traces[0], function_.at, watch);
  if (text.empty())
    throw UserError(cat("text: there is no pass ", pass), Source::none(), cat("one of: ", known));
  return text;
}

}  // namespace tidemark::detail

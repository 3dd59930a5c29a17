// Plan: the memory a function will need, before it runs. Profile: the memory it used.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"
#include "tidemark/device/storage.h"
#include "tidemark/function/budget.h"
#include "tidemark/tensor/spec.h"

namespace tidemark {

namespace run {
struct Program;
}
namespace detail {
class FunctionCore;
struct PlanAccess;
}  // namespace detail

struct PlanOptions {
  std::optional<Budget> budget = {};  // Overrides the function's own.
};

// Something that a program does to need fewer bytes than it would without a budget.
struct PlanDecision {
  std::string what;   // "computes matmul again"
  std::string line;   // "model.cc:41"; empty if it concerns the whole program.
  std::string layer;  // "block_3/dense", or empty.
  int64_t times = 1;
  Bytes bytes;           // Of the values that are not held meanwhile.
  double flop = 0;       // Of the work that is done again.
  double more_work = 0;  // The same as a share of all work of the usual program, in time.
  std::string op = {};   // What is computed again: "matmul", "multiply + add"; empty if nothing is.
};

// A program of a function: a point of the trade between bytes and work.
struct TradeoffPoint {
  Bytes peak;
  double flop = 0, bytes_moved = 0;  // Work done again, beside that of the usual program.
  double more_work = 0;              // The same as a share of the usual program's work, in time.
  double estimated_ms = 0;           // Of a call; rough.
};
// A list; docs/plan_json.md has the schema.
std::string to_json(const std::vector<TradeoffPoint>& points);

// One step of the timeline.
struct PlanStep {
  std::string name;   // "matmul", "group of 5: exp, sum, ..."
  std::string line;   // "train.cc:41"
  std::string layer;  // "encoder/dense" (name_scope.h), or empty.
  Bytes in_use;       // While it runs: outputs and arena.
};

// A tensor that is live at the peak.
struct PlanTensor {
  std::string type;  // "f32[64, 784]"
  std::string line;
  std::string layer;
  std::string reason;  // "temporaries: made by matmul, read last by step 7 (add)"
  Bytes bytes;
  // Why it is there at the peak: "made by this step", "made by exp, kept for step 7 (add)". Empty
  // for a result.
  std::string held_for;
};

// A buffer of a call: its lifetime and offset.
struct PlanBuffer {
  std::string name;  // The op that makes it, or the path of a result.
  std::string type;
  std::string line;
  std::string layer;
  std::string reason;
  ByteClass byte_class = ByteClass::temporaries;
  Bytes bytes;
  int64_t offset = 0;          // In its arena; results follow the arena, as in run_in.
  int64_t begin = 0, end = 0;  // Its lifetime in steps, half-open.
  std::string memory;          // "host", or a device's; each has its own arena.
  int arena = 0;               // 0: the call's; k: that of the body of the k-th map.
};

// The part of the peak that belongs to a line or a layer.
struct PlanBlame {
  std::string where;  // Empty: outside any layer.
  Bytes bytes;
  int64_t tensors = 0;
};

// A td::recompute in the path of a gradient. The call is also planned without it.
struct PlanRecompute {
  std::string line;
  int64_t times = 0;  // The number of its calls in the function.
  Bytes peak;         // Of this plan.
  Bytes without;      // The peak without rematerialization.
  Bytes saves() const { return without - peak; }
};

// The needs of a call in one memory.
struct PlanMemory {
  std::string name;  // "host", or a device's.
  Bytes bytes;
  Bytes load;  // The largest sum of live bytes; no placement can use less.
};

// The result of `fn.plan(...)`; nothing ran and nothing was allocated.
class Plan {
 public:
  struct Data;  // Internal.

  Plan();
  ~Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;

  // Lists are references into the plan; for a temporary plan, as in `for (auto& step :
  // f.plan(x).timeline())`, they are copies.

  // The peak of a call: the most bytes it adds, besides the Variables.
  Bytes peak() const;
  // The most bytes the next call adds: the peak plus the bytes of Variables that have no value yet,
  // which the call allocates. Temporary memory of initializers is not included.
  Bytes first_call() const;
  // The least budget under which the function compiles: with values that are computed again, loops
  // that keep less, and so on. Searched for when it is first asked.
  Bytes floor() const;
  // Programs from the peak of the usual one down to the floor. None needs more bytes and more work
  // than another.
  std::vector<TradeoffPoint> tradeoff() const;
  // The plan of the same call within a budget. OverBudget if there is none.
  Plan within(Budget budget, Source at = Source::here()) const;
  // What the program does to stay within its budget; empty if it needs to do nothing. Largest
  // first.
  std::vector<PlanDecision> decisions() const;
  // What a call computes, in scalar operations, and moves, in bytes of operands and results. A run
  // counts the same (Profile), unless trips or branches are known only then: a loop of an unknown
  // number of trips counts as one trip here, and a branch as the larger side.
  double flop() const;
  double bytes_moved() const;
  // Work that is done again because of the budget, as a share of all work, in time.
  double more_work() const;
  // The peak that the call would have without a budget.
  Bytes usual_peak() const;
  // The largest sum of live bytes in the arena: a lower bound for every placement.
  Bytes load() const;
  // The open sizes, in order ("argument 0, dimension 0"), and the plan for other values of them.
  // Nothing is traced, run or allocated for it.
  const std::vector<std::string>& open_sizes() const&;
  std::vector<std::string> open_sizes() &&;
  Plan at(const std::vector<int64_t>& sizes, Source at = Source::here()) const;
  // The bytes that run_in needs: the arena and the results.
  Bytes arena() const;
  Bytes of(ByteClass byte_class) const;
  // The host's first. Every figure above is of the memory that the function computes in, but for
  // arena().
  std::vector<PlanMemory> memories() const;
  const std::vector<PlanStep>& timeline() const&;
  std::vector<PlanStep> timeline() &&;
  // The index in the timeline of the step with the peak; -1 if there are no steps.
  int64_t peak_step() const;
  const std::vector<PlanTensor>& at_peak() const&;
  std::vector<PlanTensor> at_peak() &&;
  // The bytes in use at the peak by line or layer, largest first. They add up to
  // timeline()[peak_step()].
  std::vector<PlanBlame> by_line() const;
  std::vector<PlanBlame> by_layer() const;
  // Every buffer that has an offset, in the order of creation; results last. Computed at each call.
  std::vector<PlanBuffer> buffers() const;
  // The savings of each td::recompute, in the order of lines.
  std::vector<PlanRecompute> recomputes() const;
  // For people.
  std::string explain() const;
  std::string to_text() const;
  // docs/plan_json.md has the schema.
  std::string to_json() const;

 private:
  friend struct detail::PlanAccess;
  std::shared_ptr<const Data> data_;
};
std::ostream& operator<<(std::ostream& out, const Plan& plan);

// The memory a run used, for one memory.
struct ProfileMemory {
  std::string name;
  Bytes planned;
  Bytes touched;  // The highest byte of that arena that the run changed.
};

// The measurements of one step. In a loop a step runs many times, in a branch perhaps never.
struct ProfileStep {
  std::string name;
  std::string line;
  std::string layer;
  Bytes planned;  // Bytes in use according to the plan.
  // Bytes in use as measured: results, and the blocks of the arena that a step had used by then and
  // a later step would use again.
  Bytes in_use;
  int64_t runs = 0;
  int64_t time_ns = 0;  // Of all its runs; for a loop or map, including its body.
  // What all its runs computed, in scalar operations, and moved, in operands and results. The steps
  // of a body have their own.
  double flop = 0, bytes_moved = 0;
};

// An interval in which a thread worked on a step.
struct ProfileSlice {
  int32_t step = 0;
  int32_t thread = 0;                // 0: the caller.
  int64_t begin_ns = 0, end_ns = 0;  // Since the run began.
};

// A measured run.
struct Profile {
  // As JSON; docs/plan_json.md has the schema.
  std::string to_json() const;

  std::string function;
  Bytes planned;
  Bytes touched;  // The highest byte of the arena that the run changed, and the results.
  std::vector<ProfileStep> steps;    // As Plan::timeline().
  std::vector<ProfileSlice> slices;  // The first 100,000, in the order they ended.
  int64_t slices_left_out = 0;
  int64_t time_ns = 0;                   // From the first step to the last.
  double flop = 0, bytes_moved = 0;      // Of all steps, as often as they ran.
  std::vector<ProfileMemory> memories;   // Memories other than the host's.
  std::vector<std::string> donated;      // Arguments whose memory was reused.
  std::vector<std::string> not_donated;  // "argument 0: another tensor holds its bytes"
};
std::ostream& operator<<(std::ostream& out, const Profile& profile);

struct CacheEntry {
  std::string signature;
  std::string
      reason;  // The reason of the trace: "first call", "argument 0, dimension 1: 128 became 129".
  Bytes bytes;
  int64_t calls = 0;
  double trace_ms = 0, compile_ms = 0;
};
struct CacheInfo {
  std::vector<CacheEntry> entries;  // Most recently used first.
  Bytes bytes, limit;
  int64_t traces = 0, evictions = 0;  // Traces made; traces and programs evicted.
  int64_t remade = 0;                 // Traces and programs made again after their eviction.
};
std::ostream& operator<<(std::ostream& out, const CacheInfo& info);

}  // namespace tidemark

// What a function will need, before it runs; and what it needed, after.
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
  std::optional<Bytes> budget = {};  // In place of the function's own.
};

// One step of the timeline.
struct PlanStep {
  std::string name;   // "matmul", "group of 5: exp, sum, ..."
  std::string line;   // "train.cc:41"
  std::string layer;  // "encoder/dense" (name_scope.h), or nothing.
  Bytes in_use;       // While it runs: outputs and arena.
};

// Something alive at the peak.
struct PlanTensor {
  std::string type;  // "f32[64, 784]"
  std::string line;
  std::string layer;
  std::string reason;  // "temporaries: made by matmul, read last by step 7 (add)"
  Bytes bytes;
};

// Bytes of a call, when they are wanted and where they lie.
struct PlanBuffer {
  std::string name;  // The op that makes it, or what a result is called.
  std::string type;
  std::string line;
  std::string layer;
  std::string reason;
  ByteClass byte_class = ByteClass::temporaries;
  Bytes bytes;
  int64_t offset = 0;          // In its arena. Results lie behind it, as run_in lays them.
  int64_t begin = 0, end = 0;  // The steps over which it is wanted, half-open.
  std::string memory;          // "host", or a device's: each has an arena of its own.
  int arena = 0;               // 0: the call's; k: that of a body of the k-th map.
};

// How much of the peak belongs to a line or to a layer.
struct PlanBlame {
  std::string where;  // Empty: outside of any layer.
  Bytes bytes;
  int64_t tensors = 0;
};

// A td::recompute that gradients go through. The same call is planned without it.
struct PlanRecompute {
  std::string line;
  int64_t times = 0;  // Calls of it in the function.
  Bytes peak;         // Of this plan.
  Bytes without;      // The peak of the call where the function is not run again.
  Bytes saves() const { return without - peak; }
};

// What a call needs in one memory.
struct PlanMemory {
  std::string name;  // "host", or a device's.
  Bytes bytes;
  Bytes load;  // The most of it alive at once.
};

// What `fn.plan(...)` gives: nothing ran and nothing was allocated.
class Plan {
 public:
  struct Data;  // Internal.

  Plan();
  ~Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;

  // Lists are parts of the plan; of a plan that ends with the statement, as in
  // `for (auto& step : f.plan(x).timeline())`, they are copies.

  // The most bytes a call adds at once, beside the Variables.
  Bytes peak() const;
  // The most bytes the next call adds: the peak and, where Variables have no value yet, their
  // bytes, which the call makes and which stay. Not counted is what an initializer needs beyond
  // that while it runs.
  Bytes first_call() const;
  // The least budget under which the function can be compiled: the peak, since nothing is computed
  // again to save memory unless the program says so.
  Bytes floor() const;
  // The most bytes of the arena alive at once: no placement can go below it.
  Bytes load() const;
  // Where sizes are open: which they are, in order ("argument 0, dimension 0"), and the plan for
  // other values of them. Nothing is traced, run or allocated for it.
  const std::vector<std::string>& open_sizes() const&;
  std::vector<std::string> open_sizes() &&;
  Plan at(const std::vector<int64_t>& sizes, Source at = Source::here()) const;
  // What run_in needs: the arena and the results.
  Bytes arena() const;
  Bytes of(ByteClass byte_class) const;
  // The host's first. Every figure above is of the host's memory.
  std::vector<PlanMemory> memories() const;
  const std::vector<PlanStep>& timeline() const&;
  std::vector<PlanStep> timeline() &&;
  // Which step has the peak, as a number of the timeline; -1 where there is none.
  int64_t peak_step() const;
  const std::vector<PlanTensor>& at_peak() const&;
  std::vector<PlanTensor> at_peak() &&;
  // Whose bytes are in use at the peak, the most first. They add up to timeline()[peak_step()].
  std::vector<PlanBlame> by_line() const;
  std::vector<PlanBlame> by_layer() const;
  // Everything that has a place, in the order it is made; results last. Made anew at each call.
  std::vector<PlanBuffer> buffers() const;
  // What each td::recompute saves, in the order of lines.
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

// What a run needed in one memory.
struct ProfileMemory {
  std::string name;
  Bytes planned;
  Bytes touched;  // The highest byte of its arena there that the run changed.
};

// What a run did in one step. In a loop a step runs many times, in a branch perhaps never.
struct ProfileStep {
  std::string name;
  std::string line;
  std::string layer;
  Bytes planned;  // In use by the plan.
  // In use as the run saw it: results, and the blocks of the arena that had been handed to a step
  // by then and would be again.
  Bytes in_use;
  int64_t runs = 0;
  int64_t time_ns = 0;  // Of all runs; of a loop or a map all that runs in it.
};

// A stretch of time in which a thread worked on a step.
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
  std::vector<ProfileMemory> memories;   // Those beside the host's.
  std::vector<std::string> donated;      // Arguments whose bytes were used.
  std::vector<std::string> not_donated;  // "argument 0: another tensor holds its bytes"
};
std::ostream& operator<<(std::ostream& out, const Profile& profile);

struct CacheEntry {
  std::string signature;
  std::string
      reason;  // Why it was traced: "first call", "argument 0, dimension 1: 128 became 129".
  Bytes bytes;
  int64_t calls = 0;
  double trace_ms = 0, compile_ms = 0;
};
struct CacheInfo {
  std::vector<CacheEntry> entries;  // Most recently used first.
  Bytes bytes, limit;
  int64_t traces = 0, evictions = 0;  // Traces made; traces and programs dropped.
  int64_t remade = 0;                 // Traces and programs made again after they had been dropped.
};
std::ostream& operator<<(std::ostream& out, const CacheInfo& info);

}  // namespace tidemark

// One trace of a function: the calls it serves, and the programs compiled from it. Internal to the
// library.
#pragma once

#include <any>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tidemark/base/lock.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/device/threads.h"
#include "tidemark/function/call_types.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/function/function_call.h"
#include "tidemark/function/program_key.h"
#include "tidemark/function/run_function.h"

namespace tidemark::detail {

// The call that the user's function is traced for.
struct TraceInput {
  LeafTypes leaves;             // The leaf types of the call.
  std::vector<SizePlace> open;  // Open sizes, in the order of the table.
  std::string key;              // Arguments::key
  Mode mode;                    // Of the thread that calls: mode.h.
};

using SizeList = SmallVec<int64_t, 6>;

// A bounded set of hashes of dropped entries, to count entries that are made again.
class DroppedOnce {
 public:
  // Without memory for the hash, the entry is only counted.
  void add(size_t hash) noexcept;
  void note_made(size_t hash) { remade_ += hashes_.contains(hash) ? 1 : 0; }
  int64_t dropped() const { return dropped_; }
  int64_t remade() const { return remade_; }

 private:
  std::set<size_t> hashes_;
  int64_t dropped_ = 0, remade_ = 0;
};

// Programs by key; the least recently used ones are dropped.
class Programs {
 public:
  // `make` compiles a missing program, given the placement of programs of other sizes.
  using Make = device::FunctionRef<std::shared_ptr<CompiledFunction>(const ProgramKey&,
                                                                     compile::Placements&)>;
  std::shared_ptr<const CompiledFunction> find(const ProgramKey& key);
  std::shared_ptr<const CompiledFunction> find_or_make(const ProgramKey& key, int64_t limit_bytes,
                                                       Make make);
  // Emits the kernels of a program if not done yet; called before it runs.
  void emit(const CompiledFunction& program);
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  double compile_ms() const;
  struct Counts {
    int64_t held = 0, dropped = 0,
            remade = 0;  // remade: compiled again after they had been dropped.
  };
  // Never waits for a program that is being compiled.
  Counts counts() const {
    return {held_.load(std::memory_order_relaxed), dropped_count_.load(std::memory_order_relaxed),
            remade_.load(std::memory_order_relaxed)};
  }

 private:
  struct StoredProgram {
    std::shared_ptr<const CompiledFunction> program;
    int64_t used = 0;  // The time of the last use, counted in uses.
  };
  using Table = std::map<ProgramKey, StoredProgram>;
  using PlacementTable = std::map<std::vector<int64_t>, compile::Placements>;
  static int64_t entry_bytes(const Table::value_type& entry);
  static int64_t entry_bytes(const PlacementTable::value_type& entry);
  std::shared_ptr<const CompiledFunction> known(const ProgramKey& key);
  void drop_beyond(int64_t limit_bytes);

  mutable Mutex lock_;
  Table table_;
  Table::value_type* last_ = nullptr;  // The most recently used program, tried first.
  PlacementTable placements_;          // By keys without the sizes.
  std::atomic<int64_t> bytes_{0}, held_{0}, dropped_count_{0}, remade_{0};
  int64_t uses_ = 0, limit_bytes_ = 0;
  DroppedOnce dropped_;
  double compile_ms_ = 0;
};

struct GradientPair;

// The forward and backward programs that tapes use for calls of one trace (recorded_call.h), by
// open sizes and by the parameters whose gradients are needed.
struct GradientPairs {
  using Key = std::pair<std::vector<int64_t>, std::vector<bool>>;
  Mutex lock;
  std::map<Key, std::shared_ptr<const GradientPair>> table;
};

// The frontier of one key, that of the latest request: plans for several budgets follow each other.
class LatestFrontier {
 public:
  std::shared_ptr<ProgramFrontier> of(const TracedGraph& traced, const ProgramKey& key);

 private:
  Mutex lock_;
  std::optional<ProgramKey> key_;
  std::shared_ptr<ProgramFrontier> frontier_;
};

struct FunctionTrace {
  TraceInput input;
  std::string reason;              // Why it was traced.
  std::vector<std::string> paths;  // Of the arguments' leaves.
  std::any argument_structure, result_structure;
  std::function<std::string()> changed;  // TraceResult::changed
  TracedGraph traced;
  std::vector<int32_t> result_leaves;  // For each leaf: a result of the program, or -1.
  size_t hash = 0;                     // Of the input; set by the cache.
  int64_t calls = 0;                   // Counted by the cache, under its lock.
  int64_t moves = 0;                   // variable_moves() when its Variables were looked at last.
  double trace_ms = 0, optimise_ms = 0;
  Programs programs;
  GradientPairs pairs;
  LatestFrontier frontiers;

  // The open sizes of a call.
  SizeList sizes_of(const LeafTypes& call) const;
  SizeList sizes_of(std::span<const Argument> call) const;
  // Whether its Variables lie in the memories that it was traced for. Under the cache's lock.
  bool lies_as_traced();
  // Whether the trace serves these sizes: its guards hold.
  bool admits(std::span<const int64_t> sizes) const;
  // An estimate of the bytes of its graph and programs.
  int64_t bytes() const;
  // The program for a key; a missing one is laid out.
  std::shared_ptr<const CompiledFunction> program_for(const std::shared_ptr<FunctionTrace>& self,
                                                      const ProgramKey& key, int64_t limit_bytes);
  // The program for a key within so many bytes; the one that needs the fewest if none is.
  std::shared_ptr<const CompiledFunction> program_within(const std::shared_ptr<FunctionTrace>& self,
                                                         const ProgramKey& key, int64_t bytes);
  // Runs one of its programs, and emits it first if needed. All results are allocated before it
  // runs.
  CallResult run(const CompiledFunction& compiled, const Arguments& arguments,
                 const RunOptions& options, ResultMaker make, Source at);
  // How many results of a program are returned to the caller; the others are new values of
  // Variables.
  size_t given() const;
  // The leaves of the caller's result, from these.
  void give(std::span<Tensor> results, CallResult& leaves) const;
};

// StoredProgram while a function is traced or inlined in another: endless recursion is a UserError.
class TracingNow {
 public:
  TracingNow(const UserFunction& function, Source at);
  ~TracingNow();
  TracingNow(const TracingNow&) = delete;
  TracingNow& operator=(const TracingNow&) = delete;

  // Whether the program that this thread traces is fused; the outermost function decides.
  static bool fuses();

 private:
  static constinit thread_local const TracingNow* innermost_;
  const UserFunction* function_;
  const TracingNow* outer_;
};

struct TraceOptions {
  std::string reason;
  bool retraced = false;  // It was traced before: creating a Variable is refused.
  compile::PassObserver watch = {};
  bool optimised = true;  // False: the graph stays as traced.
};
// Runs the user's function on placeholders.
std::shared_ptr<FunctionTrace> trace_function(const UserFunction& function, TraceInput input,
                                              const ArgumentStructure& structure,
                                              const TraceOptions& options, Source call);
// Traces the same call again.
std::shared_ptr<FunctionTrace> trace_again(const UserFunction& function, const FunctionTrace& trace,
                                           Source call, const compile::PassObserver& watch = {},
                                           bool optimised = true);
// Traces again and reports which frozen plain numbers have changed.
std::string changes_of(const UserFunction& function, const FunctionTrace& trace, Source call);

}  // namespace tidemark::detail

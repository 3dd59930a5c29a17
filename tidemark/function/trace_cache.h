// The cache of a function's traces, looked up by the types of a call. It is bounded in bytes, drops
// the least recently used, and records the reason for each trace. Internal to the library.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/account/accounts.h"
#include "tidemark/base/lock.h"
#include "tidemark/function/function_trace.h"

namespace tidemark::detail {

class TraceCache {
 public:
  // A trace that serves a call, and the call's open sizes for it.
  struct Match {
    std::shared_ptr<FunctionTrace> trace;
    SizeList sizes;
    explicit operator bool() const { return trace != nullptr; }
  };

  // The program that a call runs, kept alive meanwhile.
  struct Ready {
    std::shared_ptr<FunctionTrace> trace;
    std::shared_ptr<const CompiledFunction> compiled;
  };

  explicit TraceCache(const UserFunction& function)
      : function_(function),
        account_(function.options.name, function.at, function.options.cache_limit) {}
  TraceCache(const TraceCache&) = delete;
  TraceCache& operator=(const TraceCache&) = delete;

  // Finds or makes everything that a call needs, and counts the call.
  std::shared_ptr<const Ready> ready_for(const Arguments& arguments, Source call);
  // The trace for a call or a plan; may run the user's function.
  Match trace_for(const Arguments& arguments, Source call);
  std::shared_ptr<const CompiledFunction> program_for(const Match& found, const ProgramKey& key,
                                                      Source call);
  // Emits the kernels of a program that is about to run.
  void emit(FunctionTrace& trace, const CompiledFunction& program, Source call);
  // Most recently used first.
  std::vector<std::shared_ptr<FunctionTrace>> all() const;
  int64_t calls_of(const FunctionTrace& trace) const;
  CacheInfo info() const;
  void clear();

 private:
  // The lookup key of a call.
  struct Call {
    LeafTypes leaves;
    const Arguments& arguments;
    std::string key;
    Mode mode;
  };
  std::shared_ptr<const Ready> find_last(const Arguments& arguments, Mode mode) const;
  Match find_known(const Arguments& arguments, Mode mode);
  Match find(const Call& call);
  Match used(size_t trace, SizeList sizes);
  bool serves(FunctionTrace& trace, const Call& call, SizeList& sizes) const;
  bool is_like(const FunctionTrace& trace, const Call& call) const;
  std::string reason_for(const Call& call) const;
  std::vector<SizePlace> to_open(const Call& call, const std::vector<SizePlace>& asked) const;
  std::vector<SizePlace> fill_in(Call& call) const;
  std::string read_note(const std::string& what, SizePlace place, const std::string& key) const;
  void note_read(FunctionTrace& trace);
  void warn_of_many(const std::string& reason, Source call);
  int64_t room_for(const FunctionTrace& trace) const;
  void evict();
  void note_dropped(const FunctionTrace& trace) noexcept;
  Programs::Counts programs() const;
  void warn_of_limit(Source call);
  void note_held() noexcept;

  const UserFunction& function_;
  mutable Mutex lock_;
  std::vector<std::shared_ptr<FunctionTrace>> traces_;  // Most recently used first.
  std::shared_ptr<const Ready> last_;  // The last call's, if its trace is the first one above.
  int64_t made_ = 0, in_a_row_ = 0;
  DroppedOnce dropped_;     // Traces.
  Programs::Counts gone_;   // Counts of programs of dropped traces.
  int64_t code_bytes_ = 0;  // Machine code compiled for this function.
  bool warned_ = false, warned_of_limit_ = false;
  bool is_noted_ = true;  // The account is up to date.
  // By key: sizes that the function reads as numbers, which are never opened.
  std::map<std::pair<std::string, SizePlace>, Source> read_;
  FunctionAccount account_;
};

}  // namespace tidemark::detail

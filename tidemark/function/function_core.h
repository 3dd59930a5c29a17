// The untyped core of every Function: the cache of traces and programs, their plans and runs. The
// templates of function.h convert arguments to leaves and leaves to results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tidemark/function/function_call.h"
#include "tidemark/function/plan.h"

namespace tidemark::detail {

class TraceCache;
struct FunctionTrace;

class FunctionCore {
 public:
  FunctionCore(FunctionOptions options, TraceBody body, Source at);
  ~FunctionCore();
  FunctionCore(const FunctionCore&) = delete;
  FunctionCore& operator=(const FunctionCore&) = delete;

  CallResult call(const Arguments& arguments, ResultMaker make, Source at) const;
  Plan plan(const Arguments& arguments, const PlanOptions& options, Source at) const;
  int64_t largest(const Arguments& arguments, const Budget& budget, Source at) const;
  Bytes saved_for_gradient(const Arguments& arguments, Source at) const;
  std::pair<CallResult, Profile> profile(const Arguments& arguments, ResultMaker make,
                                         Source at) const;
  CallResult run_in(const Plan& plan, std::span<std::byte> arena, const Arguments& arguments,
                    ResultMaker make, Source at) const;
  CacheInfo cache_info() const;
  void clear_cache() const;
  std::string report() const;
  std::string check_captures(Source at) const;
  std::string text(std::string_view pass) const;
  const std::string& name() const { return function_.options.name; }

 private:
  CallResult inlined(const Arguments& arguments, ResultMaker make, Source at) const;
  void check_captures_sometimes(const FunctionTrace& trace, Source at) const;

  UserFunction function_;
  std::unique_ptr<TraceCache> cache_;
};

}  // namespace tidemark::detail

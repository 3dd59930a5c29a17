// What is behind every Function, whatever its signature: the cache of traces and programs, their
// plans and runs. The templates of function.h turn arguments into leaves and results back.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/api/plan.h"
#include "tidemark/api/tensor.h"

namespace tidemark {

struct FunctionOptions {
  std::string name = {};
  std::optional<Bytes> budget = {};
  bool jit = true;  // False: the same program unfused, for debugging.
  std::vector<TensorSpec> input_signature = {};
  Bytes cache_limit = Bytes(int64_t{64} << 20);
  bool check_captures = false;
};

namespace detail {

// One leaf of the arguments: a tensor, or a Dim.
struct Argument {
  Tensor tensor;  // Empty where the leaf is a Dim.
  Dim size = 0;   // Of a Dim.
  bool is_size = false;
  bool donated = false;  // Moved in: its bytes may be used if nobody else holds them.
  bool insists = false;  // td::donate: or it is an error.
  std::string path;      // "argument 0", "argument 1.image", ...: for errors and reasons.
};

// What a trace needs and gives. The body runs the user's function on traced leaves.
struct TraceResult {
  std::vector<Tensor> leaves;  // Of the result, traced or not.
  std::vector<std::string> paths;
  std::any structure;  // The result itself, whose leaves each call replaces in a copy.
};
// Gets one Argument per leaf, in order, whose tensors are traced (and Dims open where they are).
using TraceBody = std::function<TraceResult(std::span<const Argument> leaves)>;

struct CallResult {
  std::vector<Tensor> leaves;
  const std::any* structure = nullptr;  // Lives as long as `entry`.
  std::shared_ptr<const void> entry;
};

class FunctionCore {
 public:
  FunctionCore(FunctionOptions options, TraceBody body, Source at);
  ~FunctionCore();
  FunctionCore(const FunctionCore&) = delete;
  FunctionCore& operator=(const FunctionCore&) = delete;

  // `key` says all that is not a leaf: structure, lengths, names, static values. `key_text` says
  // the same for people, one line per part, for retrace reasons.
  CallResult call(std::vector<Argument> leaves, const std::string& key, Source at) const;
  Plan plan(std::vector<Argument> leaves, const std::string& key, const PlanOptions& options,
            Source at) const;
  std::pair<CallResult, Profile> profile(std::vector<Argument> leaves, const std::string& key,
                                         Source at) const;
  CallResult run_in(const Plan& plan, std::span<std::byte> arena, std::vector<Argument> leaves,
                    const std::string& key, Source at) const;
  CacheInfo cache_info() const;
  void clear_cache() const;
  std::string report() const;
  std::string check_captures(Source at) const;
  std::string text(std::string_view pass) const;
  const std::string& name() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail
}  // namespace tidemark

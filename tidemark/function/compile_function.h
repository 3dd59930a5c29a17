// Compiles a traced function to programs: the usual one, and others that need fewer bytes. Internal
// to the library.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/base/lock.h"
#include "tidemark/fit/fit.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/passes/gradient/differentiate_again.h"

namespace tidemark::detail {

// The graph for these values of the open sizes. If its loops store other residuals at these sizes
// than the trace chose, the gradients are made again.
struct SizedGraph {
  Graph graph;
  bool is_as_traced = true;
};
SizedGraph graph_at(const TracedGraph& traced, std::span<const int64_t> sizes);

// Makes the layout for a key; emits nothing.
std::shared_ptr<CompiledFunction> compile_function(const TracedGraph& traced, const ProgramKey& key,
                                                   compile::Placements& placements);

// The programs of one key, from the usual one down to the one that needs the fewest bytes.
class ProgramFrontier {
 public:
  // The trace must outlive the frontier.
  ProgramFrontier(const TracedGraph& traced, const ProgramKey& key);

  // The first program that needs at most this many bytes; the one that needs the fewest if none
  // does.
  std::shared_ptr<CompiledFunction> within(int64_t bytes);
  int64_t floor_bytes();
  std::vector<fit::Frontier::Point> points();
  fit::Cost usual_cost() const { return fit::cost_of(*usual_, Graph::kBody); }

 private:
  fit::Fit fit_within(int64_t bytes);
  fit::Frontier& frontier();

  const TracedGraph& traced_;
  const ProgramKey key_;
  const compile::Interface interface_;
  const std::shared_ptr<const Graph> usual_;  // Optimised.
  int64_t usual_peak_;
  bool has_automatic_chunk_;
  Mutex lock_;
  std::optional<fit::Frontier> frontier_;  // Made when no program without more work fits.
};

// The bytes of the function with bf16 in place of f32, if that fits into so many.
std::optional<int64_t> peak_in_bf16(const TracedGraph& traced, const ProgramKey& key,
                                    int64_t bytes);

// The same with the layer at a path in a td::recompute, as far as its gradients can be made again.
std::optional<int64_t> peak_with_recomputed(const TracedGraph& traced, const ProgramKey& key,
                                            const std::string& layer, int64_t bytes);

// What gradients keep, if not what the trace chose.
struct KeptChoice {
  std::optional<int> thinned = {};  // See GradientSettings.
  decltype(passes::GradientSettings::save_at) save_at = {};
  passes::Rewritten rewritten = {};
};
// A program whose gradients keep this, for plans only: it has no tasks. Null if the gradients
// cannot be made again. A UserError if the choice is refused.
std::shared_ptr<const run::Program> program_keeping(const TracedGraph& traced,
                                                    const ProgramKey& key,
                                                    const KeptChoice& choice);

}  // namespace tidemark::detail

#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

template <void (*kRun)(Graph&)>
constexpr Pass plain(std::string_view name) {
  return {name, [](Graph& graph, const Machine&, const PassOptions&) { kRun(graph); }};
}

template <void (*kRun)(Graph&)>
constexpr Pass fusing(std::string_view name) {
  Pass pass = plain<kRun>(name);
  pass.fuses = true;
  return pass;
}

void run_fold(Graph& graph, const Machine& machine, const PassOptions&) {
  fold(graph, machine.compute);
}
void run_micro_batches(Graph& graph, const Machine&, const PassOptions& options) {
  if (!options.micro_batches) return;
  const MicroBatches::Made made = micro_batches(graph, *options.micro_batches);
  if (options.micro_batches->made != nullptr) *options.micro_batches->made = made;
}
void run_split(Graph& graph, const Machine&, const PassOptions& options) {
  if (options.split) split(graph, *options.split);
}
void run_fuse(Graph& graph, const Machine& machine, const PassOptions& options) {
  fuse(graph, machine.cache_bytes, options.fusions);
}
void run_order(Graph& graph, const Machine& machine, const PassOptions& options) {
  order(graph, options.updates,
        {.scratch = machine.scratch_in ? machine.scratch_in(graph) : Scratch(),
         .needed = options.needed,
         .frees_early = options.frees_early});
}

constexpr Pass kPasses[] = {
    plain<inline_calls>("inline_calls"),
    plain<use_pairs>("use_pairs"),
    plain<sink_views>("sink_views"),
    {"fold", run_fold},
    plain<join_pads>("join_pads"),
    plain<simplify>("simplify"),
    plain<merge>("merge"),
    plain<remove_dead>("remove_dead"),
    plain<trim>("trim"),
    plain<recompute>("recompute"),
    {"micro_batches", run_micro_batches, true},
    {"split", run_split, true},
    fusing<accumulate>("accumulate"),
    {"fuse", run_fuse, true},
    {"order", run_order},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace tidemark::passes

#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

// What `tidemark show` shows is not to depend on the machine.
void fuse_for_usual_cache(Graph& graph) { fuse(graph, int64_t{1} << 20); }

constexpr Pass kPasses[] = {
    {"inline_calls", inline_calls}, {"simplify", simplify},         {"merge", merge},
    {"remove_dead", remove_dead},   {"fuse", fuse_for_usual_cache}, {"order", order}};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace tidemark::passes

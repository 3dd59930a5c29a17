#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

template <void (*kRun)(Graph&)>
constexpr Pass plain(std::string_view name) {
  return {name, [](Graph& graph, const Machine&) { kRun(graph); }};
}

constexpr Pass kPasses[] = {
    plain<inline_calls>("inline_calls"),
    plain<sink_views>("sink_views"),
    {"fold", [](Graph& graph, const Machine& machine) { fold(graph, machine.compute); }},
    plain<simplify>("simplify"),
    plain<merge>("merge"),
    plain<remove_dead>("remove_dead"),
    plain<trim>("trim"),
    plain<recompute>("recompute"),
    plain<split>("split"),
    plain<accumulate>("accumulate"),
    {"fuse", [](Graph& graph, const Machine& machine) { fuse(graph, machine.cache_bytes); }},
    {"order", [](Graph& graph, const Machine& machine) { order(graph, machine.updates); }},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace tidemark::passes

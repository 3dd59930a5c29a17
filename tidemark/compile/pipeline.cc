#include "tidemark/compile/pipeline.h"

#include "tidemark/compile/compute.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/passes/passes.h"

namespace tidemark::compile {

Graph optimise(Graph graph, const PipelineOptions& options, const Watch& watch) {
  const auto pass = [&](std::string_view name, auto run) {
    run(graph);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (watch) watch(name, graph);
  };
  pass("inline_calls", passes::inline_calls);
  pass("fold", [](Graph& each) { passes::fold(each, compute); });
  pass("simplify", passes::simplify);
  pass("merge", passes::merge);
  pass("remove_dead", passes::remove_dead);
  pass("trim", passes::trim);
  if (options.fuse)
    pass("fuse",
         [&](Graph& each) { passes::fuse(each, device::caches().l2_bytes, options.fusions); });
  pass("order", [&](Graph& each) { passes::order(each, options.updates); });
  return compact(graph);
}

}  // namespace tidemark::compile

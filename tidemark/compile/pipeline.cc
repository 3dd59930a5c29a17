#include "tidemark/compile/pipeline.h"

#include "tidemark/passes/passes.h"

namespace tidemark::compile {

Graph optimise(Graph graph, const PipelineOptions&, const Watch& watch) {
  const auto pass = [&](std::string_view name, void (*run)(Graph&)) {
    run(graph);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (watch) watch(name, graph);
  };
  pass("simplify", passes::simplify);
  pass("merge", passes::merge);
  pass("remove_dead", passes::remove_dead);
  pass("order", passes::order);
  return compact(graph);
}

}  // namespace tidemark::compile

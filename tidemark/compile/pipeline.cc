#include "tidemark/compile/pipeline.h"

#include "tidemark/compile/compute.h"
#include "tidemark/compile/tasks.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

namespace {

// What a contraction packs and folds in, where its sizes are known. Fused groups need little.
int64_t scratch_of(passes::Views& views, const Graph& graph, const Node& node) {
  if (node.op->family != Family::contract) return 0;
  const auto is_open = [](const TensorType& type) { return type.shape.is_open(); };
  std::vector<ArrayRef> operands;
  for (const Value input : node.inputs) {
    if (is_open(graph.type(input))) return 0;
    operands.push_back(views.of(input));
  }
  if (is_open(node.results[0])) return 0;
  return op_task(*node.op, operands, node.attrs, dense_layout(node.results[0]), node.source)
      .workspace_bytes;
}

}  // namespace

Graph optimise(Graph graph, const PipelineOptions& options, const Watch& watch) {
  const auto pass = [&](std::string_view name, auto run) {
    run(graph);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (watch) watch(name, graph);
  };
  verify(graph);
  pass("inline_calls", passes::inline_calls);
  pass("sink_views", passes::sink_views);
  pass("fold", [](Graph& each) { passes::fold(each, compute); });
  pass("simplify", passes::simplify);
  pass("merge", passes::merge);
  pass("remove_dead", passes::remove_dead);
  pass("trim", passes::trim);
  pass("recompute", passes::recompute);
  if (options.fuse) {
    pass("split", passes::split);
    pass("accumulate", passes::accumulate);
    pass("fuse",
         [&](Graph& each) { passes::fuse(each, device::caches().l2_bytes, options.fusions); });
  }
  pass("order", [&](Graph& each) {
    passes::Views views(each);
    passes::order(each, options.updates, [&](const Graph& unordered, const Node& node) {
      return scratch_of(views, unordered, node);
    });
  });
  return compact(graph);
}

}  // namespace tidemark::compile

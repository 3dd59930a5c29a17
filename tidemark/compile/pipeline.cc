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
  const ArrayRef result = dense_layout(node.results[0]);
  return op_workspace(*node.op, operands, node.attrs, {&result, 1});
}

passes::Scratch scratch_in(const Graph& graph) {
  const auto views = std::make_shared<passes::Views>(graph);
  return [views](const Graph& unordered, const Node& node) {
    return scratch_of(*views, unordered, node);
  };
}

}  // namespace

passes::Machine this_machine() {
  return {.cache_bytes = device::caches().l2_bytes, .compute = compute, .scratch_in = scratch_in};
}

Graph optimise(Graph graph, const passes::PassOptions& options, const PassObserver& observe) {
  const passes::Machine machine = this_machine();
  verify(graph);
  for (const passes::Pass& pass : passes::all_passes()) {
    if (pass.fuses && !options.fuse) continue;
    pass.run(graph, machine, options);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (observe) observe(pass.name, graph);
  }
  return compact(graph);
}

}  // namespace tidemark::compile

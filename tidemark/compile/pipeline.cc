#include "tidemark/compile/pipeline.h"

#include "tidemark/compile/cpu/compute.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

namespace {

// The workspace of a contraction, if its sizes are known. That of fusion groups is small.
int64_t scratch_of(const Backend& backend, passes::Views& views, const Graph& graph,
                   const Node& node) {
  if (node.op->family != Family::contract) return 0;
  const auto is_open = [](const TensorType& type) { return type.shape.is_open(); };
  std::vector<OperandLayout> operands;
  for (const Value input : node.inputs) {
    if (is_open(graph.type(input))) return 0;
    operands.push_back({.layout = views.of(input)});
  }
  if (is_open(node.results[0])) return 0;
  const ArrayRef result = dense_layout(node.results[0]);
  return backend.op_workspace({.op = *node.op,
                               .operands = operands,
                               .attrs = node.attrs,
                               .results = {&result, 1},
                               .threads = backend.machine().threads});
}

}  // namespace

passes::Machine machine_of(const Backend& backend) {
  const auto scratch_in = [&backend](const Graph& graph) -> passes::Scratch {
    const auto views = std::make_shared<passes::Views>(graph);
    return [&backend, views](const Graph& unordered, const Node& node) {
      return scratch_of(backend, *views, unordered, node);
    };
  };
  return {
      .cache_bytes = backend.machine().cache_bytes, .compute = compute, .scratch_in = scratch_in};
}

Graph optimise(Graph graph, const passes::PassOptions& options, const PassObserver& observe,
               const Backend& backend) {
  const passes::Machine machine = machine_of(backend);
  verify(graph);
  for (const passes::Pass& pass : passes::all_passes()) {
    if (pass.fuses && !options.fuse) continue;
    pass.run(graph, machine, options);
#ifdef TIDEMARK_DEBUG
    verify(graph);
#endif
    if (observe) observe(pass.name, graph);
  }
  return compact(std::move(graph));
}

}  // namespace tidemark::compile

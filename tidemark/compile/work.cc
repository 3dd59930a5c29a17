#include "tidemark/compile/work.h"

#include <algorithm>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::compile {
namespace {

double elements(const TensorType& type) { return static_cast<double>(type.shape.size()); }
double bytes(const TensorType& type) { return elements(type) * size_of(type.dtype); }

// How many products are added for one element of a contraction.
double terms_of(const Graph& graph, const Node& node) {
  if (node.op->attrs.data() == ops::kConvAttrs) {
    const TensorType& kernel = graph.type(node.inputs.back());
    const ops::ConvSpec spec = ops::ConvSpec::from(node.attrs);
    // Of spread pixels, each output meets a share of the taps.
    const auto gaps = static_cast<double>(spec.spread[0] * spec.spread[1] * spec.spread[2]);
    return elements(kernel) / static_cast<double>(kernel.shape[-1]) / gaps;
  }
  if (node.op->attrs.data() == ops::kConvKernelAttrs) {
    const TensorType& by = graph.type(node.inputs.back());
    return elements(by) / static_cast<double>(by.shape[-1]);
  }
  const size_t left = node.op->routine == Routine::accumulate ? 1 : 0;
  return static_cast<double>(graph.type(node.inputs[left]).shape[-1]);
}

double flop_of(const Graph& graph, const Node& node) {
  if (node.op->family == Family::contract)
    return 2 * elements(node.results[0]) * terms_of(graph, node);
  double most = 0;
  for (const Value input : node.inputs) most = std::max(most, elements(graph.type(input)));
  for (const TensorType& type : node.results) most = std::max(most, elements(type));
  return most;
}

bool is_free(const Node& node) {
  return node.op == nullptr || node.op->view != nullptr || node.op->family == Family::source;
}

}  // namespace

run::StepWork work_of(const Graph& graph, const Node& node) {
  const bool is_group = !is_free(node) && node.op->flow == Flow::group;
  if (is_free(node) || (!node.regions.empty() && !is_group)) return {};
  run::StepWork work;
  for (const Value input : node.inputs) work.bytes_moved += bytes(graph.type(input));
  for (const TensorType& type : node.results) work.bytes_moved += bytes(type);
  if (!is_group) {
    work.flop = flop_of(graph, node);
    return work;
  }
  // The nodes of a group run in one kernel, which moves only the group's own operands.
  for (const int32_t number : graph.regions[static_cast<size_t>(node.regions[0])].nodes) {
    const Node& inner = graph.nodes[static_cast<size_t>(number)];
    if (!is_free(inner)) work.flop += flop_of(graph, inner);
  }
  return work;
}

run::StepWork work_of(const Graph& graph, RegionId region) {
  run::StepWork sum;
  for (const int32_t number : graph.regions[static_cast<size_t>(region)].nodes)
    sum += work_of(graph, graph.nodes[static_cast<size_t>(number)]);
  return sum;
}

}  // namespace tidemark::compile

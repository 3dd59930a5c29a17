// Constant folding of single numbers.
#include <algorithm>

#include "tidemark/ops/program.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

bool is_number(const Node& node) {
  return node.op != nullptr && node.op->literal == Literal::number;
}

// A view of a scalar as a scalar is the scalar itself.
bool is_foldable(const Node& node) {
  return (node.op->family == Family::pointwise || node.op->view != nullptr) &&
         node.results[0].shape.rank() == 0;
}

}  // namespace

void fold(Graph& graph, const Compute& compute) {
  if (!compute) return;
  for (const Region& region : graph.regions) {
    for (const int32_t number : region.nodes) {
      Node& node = graph.nodes[static_cast<size_t>(number)];
      if (!is_foldable(node)) continue;
      std::vector<const Node*> operands;
      for (const Value input : node.inputs) operands.push_back(&graph.node(input));
      const bool all = std::all_of(operands.begin(), operands.end(),
                                   [](const Node* operand) { return is_number(*operand); });
      if (!all) continue;
      node.attrs = node.op->view != nullptr ? operands[0]->attrs : compute(node, operands);
      node.op = &def_of(&ops::constant);
      node.inputs = {};
    }
  }
}

}  // namespace tidemark::passes

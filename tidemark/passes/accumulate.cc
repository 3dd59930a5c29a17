// Accumulates products into sums that a loop carries (gradients of weights) in place: `c + a b`
// becomes one `accumulate` node.
#include <map>

#include "tidemark/ir/value_key.h"
#include "tidemark/loops/product_block.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

class OfRegion {
 public:
  OfRegion(Graph& graph, Region& region) : graph_(graph), region_(region) {
    for (const int32_t number : region.nodes)
      for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs) note(input);
    for (const Value result : region.results) note(result);
  }

  // Whether anything was accumulated.
  bool run() {
    bool changed = false;
    for (const Value result : region_.results) {
      Node& sum = graph_.nodes[static_cast<size_t>(result.node)];
      if (sum.op == nullptr || sum.op->self != &tidemark::add || reads(result) != 1) continue;
      for (const size_t own : {0, 1})
        if (join(sum, sum.inputs[own], sum.inputs[1 - own])) {
          changed = true;
          break;
        }
    }
    return changed;
  }

 private:
  void note(Value value) { ++reads_[key_of(value)]; }
  int64_t reads(Value value) const { return reads_.at(key_of(value)); }
  bool is_parameter(Value value) const {
    for (const Value parameter : region_.parameters)
      if (parameter == value) return true;
    return false;
  }

  bool join(Node& sum, Value carry, Value added) {
    const Node& product = graph_.node(added);
    const TensorType& type = sum.results[0];
    if (!is_parameter(carry) || reads(carry) != 1 || reads(added) != 1) return false;
    if (product.op == nullptr || product.op->cutting != Cutting::product) return false;
    if (type.dtype != DType::f32 && type.dtype != DType::f64) return false;
    const TensorType &of_carry = graph_.type(carry), &of_a = graph_.type(product.inputs[0]);
    if (type.shape.is_open() || of_carry.shape.is_open() || of_a.shape.is_open()) return false;
    if (of_carry != type || product.results[0] != type) return false;
    // An empty product is +0, and adding it is not the identity: -0 + 0 is +0. Up to this length a
    // product is one block, so that adding it gives the same bits either way.
    if (of_a.shape[-1] == 0 || of_a.shape[-1] > kProductBlock) return false;
    const Value a = product.inputs[0], b = product.inputs[1];
    sum.op = &def_of(&ops::accumulate);
    sum.inputs = {carry, a, b};
    return true;
  }

  Graph& graph_;
  Region& region_;
  std::map<ValueKey, int64_t> reads_;
};

}  // namespace

void accumulate(Graph& graph) {
  std::vector<RegionId> bodies;
  for (const Region& region : graph.regions)
    for (const int32_t number : region.nodes) {
      const Node& node = graph.nodes[static_cast<size_t>(number)];
      if (node.op->flow == Flow::loop || node.op->flow == Flow::reverse_loop)
        for (const RegionId id : node.regions) bodies.push_back(id);
    }
  bool changed = false;
  for (const RegionId id : bodies)
    changed |= OfRegion(graph, graph.regions[static_cast<size_t>(id)]).run();
  if (changed) remove_dead(graph);
}

}  // namespace tidemark::passes

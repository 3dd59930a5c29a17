// Rematerialization of cheap elementwise values.
//
// For example, the gradient of gelu reads its input and some intermediates. These are a few
// elementwise operations away from the input, so the gradient's kernel recomputes them, and they
// live no longer than the forward pass needs them. Only applied if it reads no more memory than the
// values would.
#include <algorithm>
#include <unordered_map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/residuals.h"

namespace tidemark::passes {
namespace {

constexpr int64_t kLeastBytes = 4096;  // The smallest value that is worth it.

// Visits a region and inserts copies of rematerialized nodes before their first reader.
class Maker {
 public:
  Maker(Graph& graph, RegionId region)
      : graph_(graph),
        region_(region),
        is_forward_(forward_nodes(graph, graph.regions[static_cast<size_t>(region)])),
        residuals_(graph, region, is_forward_, Residuals::Rematerialize::in_kernels) {}

  void run() {
    const std::vector<int32_t> nodes = std::move(here().nodes);
    here().nodes.clear();
    for (const int32_t number : nodes) {
      if (!is_forward_[static_cast<size_t>(number)]) {
        const size_t inputs = graph_.nodes[static_cast<size_t>(number)].inputs.size();
        for (size_t k = 0; k < inputs; ++k) {
          const Value input = graph_.nodes[static_cast<size_t>(number)].inputs[k];
          if (is_worth(input))
            graph_.nodes[static_cast<size_t>(number)].inputs[k] = made_again(input, number);
        }
      }
      here().nodes.push_back(number);
    }
  }

 private:
  Region& here() { return graph_.regions[static_cast<size_t>(region_)]; }

  bool is_made_again(Value value) const {
    const Node& node = graph_.node(value);
    return node.op != nullptr && node.op->family == Family::pointwise &&
           is_forward_[static_cast<size_t>(value.node)] && !residuals_.has(value);
  }
  bool is_view(Value value) const {
    const Node& node = graph_.node(value);
    return node.op != nullptr && node.op->view != nullptr &&
           is_forward_[static_cast<size_t>(value.node)] && !residuals_.has(value);
  }
  bool shows_converted_parameter(Value value) const {
    while (is_view(value)) value = graph_.node(value).inputs[0];
    return is_made_again(value) &&
           is_converted_parameter(graph_, graph_.regions[static_cast<size_t>(region_)], value);
  }
  bool is_worth(Value value) const {
    const TensorType& type = graph_.type(value);
    return (is_made_again(value) || shows_converted_parameter(value)) && !type.shape.is_open() &&
           type.shape.size() * size_of(type.dtype) >= kLeastBytes;
  }
  Value made_again(Value value, int32_t reader) {
    if (!is_made_again(value) && !is_view(value)) return value;
    const auto [place, is_new] = copies_.try_emplace(value.node, -1);
    if (is_new) {
      Node copy = graph_.node(value);
      for (Value& input : copy.inputs) input = made_again(input, reader);
      copy.gradient_of = graph_.nodes[static_cast<size_t>(reader)].gradient_of;
      const int32_t number = graph_.add_node(region_, std::move(copy));
      is_forward_.push_back(false);
      copies_[value.node] = number;
      return {number, value.result};
    }
    return {place->second, value.result};
  }

  Graph& graph_;
  RegionId region_;
  std::vector<bool> is_forward_;
  Residuals residuals_;
  std::unordered_map<int32_t, int32_t> copies_;
};

// Without one, all nodes belong to the forward pass.
bool has_gradient(const Graph& graph, const Region& region) {
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](int32_t number) {
    return graph.nodes[static_cast<size_t>(number)].gradient_of != nullptr;
  });
}

}  // namespace

void recompute(Graph& graph) {
  for (size_t region = 0; region < graph.regions.size(); ++region)
    if (has_gradient(graph, graph.regions[region]))
      Maker(graph, static_cast<RegionId>(region)).run();
  remove_dead(graph);
}

}  // namespace tidemark::passes

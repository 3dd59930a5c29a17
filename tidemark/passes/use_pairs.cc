// Replaces complex values by pairs of reals.
#include <algorithm>
#include <unordered_map>

#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

bool is_complex_type(const TensorType& type) { return is_complex(type.dtype); }

class UsePairs {
 public:
  explicit UsePairs(Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) types_.push_back(node.results);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.op == nullptr || node.op->effect == Effect::none) continue;
      for (const Value input : node.inputs)
        printed_[static_cast<int32_t>(i)].push_back(type_of(input));
    }
  }

  void run() {
    // Views that are put in have types as they should be.
    const size_t count = graph_.nodes.size();
    for (size_t i = 0; i < count; ++i) change(graph_.nodes[i]);
    keep_parameters();
    for (size_t id = 0; id < graph_.regions.size(); ++id) show_effects(static_cast<RegionId>(id));
    for (Value& result : graph_.body().results)
      if (was_complex(result) && graph_.node(result).op != nullptr)
        result = shown(Graph::kBody, def_of(&ops::view_as_complex), result, type_of(result));
  }

 private:
  const TensorType& type_of(Value value) const {
    return types_[static_cast<size_t>(value.node)][static_cast<size_t>(value.result)];
  }
  // Whether a value was complex before; of views that were put in, it was not.
  bool was_complex(Value value) const {
    return static_cast<size_t>(value.node) < types_.size() && is_complex_type(type_of(value));
  }

  // The op on pairs; the two views are of the same bytes, and so reshapes that change nothing.
  void change(Node& node) {
    if (node.op != nullptr && node.regions.empty()) {
      const bool is_real = node.op == &def_of(&ops::view_as_real);
      if (is_real || node.op == &def_of(&ops::view_as_complex)) {
        node.op = &def_of(&ops::reshape);
        node.attrs = Attrs().add(ops::pairs_type(node.results[0]).shape);
      } else if (!node.inputs.empty() && was_complex(node.inputs[0]) &&
                 node.op->on_complex == OnComplex::parts) {
        const int64_t rank = type_of(node.inputs[0]).shape.rank();
        node.attrs = ops::pairs_attrs(*node.op, node.attrs, rank);
      }
    }
    for (TensorType& type : node.results) type = ops::pairs_type(type);
  }

  Value shown(RegionId region, const OpDef& view, Value value, const TensorType& type) {
    return graph_.add(region, view, {{value}}, {}, type, graph_.node(value).source);
  }

  // Parameters of the body stay complex, and nodes read views of them.
  void keep_parameters() {
    std::unordered_map<int32_t, Value> view_of;
    std::vector<int32_t> nodes = std::move(graph_.body().nodes);
    graph_.body().nodes.clear();
    for (const Value parameter : graph_.body().parameters) {
      if (!was_complex(parameter)) continue;
      graph_.nodes[static_cast<size_t>(parameter.node)].results[0] = type_of(parameter);
      view_of[parameter.node] = shown(Graph::kBody, def_of(&ops::view_as_real), parameter,
                                      ops::pairs_type(type_of(parameter)));
    }
    const auto replace = [&](Value& value) {
      const auto found = view_of.find(value.node);
      if (found != view_of.end()) value = found->second;
    };
    for (const int32_t number : nodes) {
      for (Value& input : graph_.nodes[static_cast<size_t>(number)].inputs) replace(input);
      graph_.body().nodes.push_back(number);
    }
  }

  void show_effects(RegionId id) {
    const std::vector<int32_t> nodes = std::move(graph_.regions[static_cast<size_t>(id)].nodes);
    graph_.regions[static_cast<size_t>(id)].nodes.clear();
    for (const int32_t number : nodes) {
      const auto found = printed_.find(number);
      for (size_t i = 0; found != printed_.end() && i < found->second.size(); ++i)
        show_operand(id, number, i, found->second[i]);
      graph_.regions[static_cast<size_t>(id)].nodes.push_back(number);
    }
  }

  void show_operand(RegionId id, int32_t number, size_t i, const TensorType& type) {
    if (!is_complex_type(type)) return;
    const Value pairs = graph_.nodes[static_cast<size_t>(number)].inputs[i];
    const Value seen = shown(id, def_of(&ops::view_as_complex), pairs, type);
    graph_.nodes[static_cast<size_t>(number)].inputs[i] = seen;
  }

  Graph& graph_;
  std::vector<std::vector<TensorType>> types_;                    // By node: what it had.
  std::unordered_map<int32_t, std::vector<TensorType>> printed_;  // By effect: of its operands.
};

bool has_complex(const Node& node) {
  return std::any_of(node.results.begin(), node.results.end(), is_complex_type);
}

}  // namespace

void use_pairs(Graph& graph) {
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), has_complex)) UsePairs(graph).run();
}

}  // namespace tidemark::passes

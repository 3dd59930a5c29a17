// Makes views that repeat elements, and literals, inside the regions that read them.
//
// A trace hands both to regions as values: a gradient may be asked by any of them. Once gradients
// are taken, a region that makes such a view itself sees that elements repeat (a sum over them
// multiplies, docs/semantics.md) and takes in only what is repeated.
#include <algorithm>
#include <vector>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/slicing.h"

namespace tidemark::passes {
namespace {

// Inputs from this number on are captures: the last parameters of every region.
size_t first_capture(const Node& node) {
  if (node.op->self == &ops::cond) return 1;
  if (node.op->self == &ops::map) return static_cast<size_t>(node.attrs.read().integer());
  if (node.op->self == &ops::loop) {
    const LoopAttrs attrs(node);
    return attrs.first_carry() + static_cast<size_t>(attrs.carries + attrs.slices);
  }
  if (node.op->self == &ops::reverse_loop) {
    const ReverseAttrs attrs(node);
    return static_cast<size_t>(1 + 2 * attrs.carries + attrs.backs + attrs.slices);
  }
  return node.inputs.size();
}

class Sinker {
 public:
  explicit Sinker(Graph& graph) : graph_(graph) {}

  // Regions inside see what was made in this one.
  void visit(RegionId id) {
    for (const int32_t number : std::vector(region(id).nodes)) {
      if (node(number).regions.empty()) continue;
      for (size_t i = node(number).inputs.size(); i-- > first_capture(node(number));)
        if (is_sunk(node(number).inputs[i])) sink(number, i);
      for (const RegionId inner : SmallVec(node(number).regions)) visit(inner);
    }
  }

 private:
  Region& region(RegionId id) { return graph_.regions[static_cast<size_t>(id)]; }
  Node& node(int32_t number) { return graph_.nodes[static_cast<size_t>(number)]; }

  static bool is_literal(const Node& node) {
    return node.op != nullptr && node.op->family == Family::source;
  }
  bool is_sunk(Value value) const {
    return is_literal(graph_.node(value)) || repeats(graph_, value);
  }

  void sink(int32_t number, size_t input) {
    const size_t from_end = node(number).inputs.size() - input;
    std::vector<int32_t> chain;  // From the value back to what it shows.
    Value base = node(number).inputs[input];
    while (graph_.node(base).op != nullptr && graph_.node(base).op->view != nullptr) {
      chain.push_back(base.node);
      base = graph_.node(base).inputs[0];
    }
    const bool from_nothing = is_literal(graph_.node(base));
    if (from_nothing) chain.push_back(base.node);
    for (const RegionId id : SmallVec(node(number).regions)) {
      const size_t at = region(id).parameters.size() - from_end;
      const Value old = region(id).parameters[at];
      Value made;
      if (from_nothing) {
        region(id).parameters.erase(region(id).parameters.begin() + static_cast<int64_t>(at));
      } else {
        made = graph_.add_parameter(id, TensorType(graph_.type(base)), graph_.node(base).source);
        region(id).parameters[at] = made;
        region(id).parameters.pop_back();
      }
      read_instead(id, old, make_again(id, chain, made));
    }
    if (from_nothing) {
      node(number).inputs.erase(input);
    } else {
      node(number).inputs[input] = base;
    }
  }

  // At the front of the region.
  Value make_again(RegionId id, const std::vector<int32_t>& chain, Value made) {
    for (size_t i = chain.size(); i-- > 0;) {
      Node copy = node(chain[i]);
      if (!copy.inputs.empty()) copy.inputs[0] = made;
      made = {graph_.add_node(id, std::move(copy)), 0};
    }
    std::vector<int32_t>& nodes = region(id).nodes;
    std::rotate(nodes.begin(), nodes.end() - std::ssize(chain), nodes.end());
    return made;
  }

  void read_instead(RegionId id, Value old, Value made) {
    for (const int32_t number : region(id).nodes)
      for (Value& input : node(number).inputs)
        if (input == old) input = made;
    for (Value& result : region(id).results)
      if (result == old) result = made;
  }

  Graph& graph_;
};

}  // namespace

void sink_views(Graph& graph) { Sinker(graph).visit(Graph::kBody); }

}  // namespace tidemark::passes

// Recreates broadcasts and literals inside the regions that capture them.
//
// A trace passes both to regions as captured values, since a gradient by any of them may be
// requested. Once gradients are taken, a region that creates the broadcast itself sees that
// elements repeat (a sum over them multiplies, docs/semantics.md) and captures only the small
// operand.
#include <unordered_map>
#include <vector>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/slicing.h"

namespace tidemark::passes {
namespace {

// Inputs from this index on are captures: the last parameters of every region.
size_t first_capture(const Node& node) {
  switch (node.op->flow) {
    case Flow::cond:
      return 1;
    case Flow::map:
      return static_cast<size_t>(node.attrs.read().integer());
    case Flow::loop: {
      const LoopAttrs attrs(node);
      return attrs.first_carry() + static_cast<size_t>(attrs.carries + attrs.slices);
    }
    case Flow::reverse_loop: {
      const ReverseAttrs attrs(node);
      return static_cast<size_t>(1 + 2 * attrs.carries + attrs.backs + attrs.slices);
    }
    default:
      return node.inputs.size();
  }
}

class Sinker {
 public:
  explicit Sinker(Graph& graph) : graph_(graph) {}

  // Nested regions see the nodes that were recreated in this one.
  void visit(RegionId id) {
    for (const int32_t number : std::vector(region(id).nodes)) {
      if (node(number).regions.empty()) continue;
      sink_captures(number);
      for (const RegionId inner : SmallVec(node(number).regions)) visit(inner);
    }
  }

 private:
  // A capture that regions recreate.
  struct Sunk {
    size_t from_end = 0;  // Its position, counted from the end of the inputs and of the parameters
                          // of every region.
    std::vector<int32_t> chain;  // The nodes from the value back to its base.
    Value base;                  // Captured instead; none for a literal.
    bool is_literal = false;
  };

  Region& region(RegionId id) { return graph_.regions[static_cast<size_t>(id)]; }
  Node& node(int32_t number) { return graph_.nodes[static_cast<size_t>(number)]; }

  static bool is_literal(const Node& node) {
    return node.op != nullptr && node.op->family == Family::source;
  }

  Sunk sunk(Value value, size_t from_end) const {
    Sunk capture{.from_end = from_end, .chain = {}, .base = value};
    while (graph_.node(capture.base).op != nullptr &&
           graph_.node(capture.base).op->view != nullptr) {
      capture.chain.push_back(capture.base.node);
      capture.base = graph_.node(capture.base).inputs[0];
    }
    capture.is_literal = is_literal(graph_.node(capture.base));
    if (capture.is_literal) capture.chain.push_back(capture.base.node);
    return capture;
  }

  void sink_captures(int32_t number) {
    const SmallVec<Value, 3> inputs = node(number).inputs;
    std::vector<Sunk> captures;
    for (size_t i = first_capture(node(number)); i < inputs.size(); ++i)
      if (is_literal(graph_.node(inputs[i])) || repeats(graph_, inputs[i]))
        captures.push_back(sunk(inputs[i], inputs.size() - i));
    if (captures.empty()) return;
    for (const RegionId id : SmallVec(node(number).regions)) make_inside(id, captures);
    auto next = captures.begin();
    SmallVec<Value, 3> kept;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_sunk = next != captures.end() && next->from_end == inputs.size() - i;
      if (!is_sunk) kept.push_back(inputs[i]);
      if (is_sunk && !next->is_literal) kept.push_back(next->base);
      if (is_sunk) ++next;
    }
    node(number).inputs = kept;
  }

  // At the front of the region.
  void make_inside(RegionId id, const std::vector<Sunk>& captures) {
    const std::vector<Value> old = std::move(region(id).parameters);
    const std::vector<int32_t> nodes = std::move(region(id).nodes);
    region(id).nodes.clear();
    region(id).parameters.clear();
    std::unordered_map<int32_t, Value> instead;  // Of parameters, by node.
    auto next = captures.begin();
    for (size_t i = 0; i < old.size(); ++i) {
      if (next == captures.end() || next->from_end != old.size() - i) {
        region(id).parameters.push_back(old[i]);
        continue;
      }
      const Node& base = graph_.node(next->base);
      Value made;
      if (!next->is_literal)
        made = graph_.add_parameter(id, TensorType(graph_.type(next->base)), Source(base.source));
      instead[old[i].node] = make_again(id, next->chain, made);
      ++next;
    }
    const auto replace = [&](Value& value) {
      const auto found = instead.find(value.node);
      if (found != instead.end()) value = found->second;
    };
    for (const int32_t number : nodes) {
      for (Value& input : node(number).inputs) replace(input);
      region(id).nodes.push_back(number);
    }
    for (Value& result : region(id).results) replace(result);
  }

  Value make_again(RegionId id, const std::vector<int32_t>& chain, Value made) {
    for (size_t i = chain.size(); i-- > 0;) {
      Node copy = node(chain[i]);
      if (!copy.inputs.empty()) copy.inputs[0] = made;
      made = {graph_.add_node(id, std::move(copy)), 0};
    }
    return made;
  }

  Graph& graph_;
};

}  // namespace

void sink_views(Graph& graph) { Sinker(graph).visit(Graph::kBody); }

}  // namespace tidemark::passes

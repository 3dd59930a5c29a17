#include "tidemark/ops/graph_builder.h"

#include <type_traits>

#include "tidemark/ops/check_node.h"
#include "tidemark/ops/program.h"

namespace tidemark {

// Rules hold types while they add nodes. A list of nodes that grows moves them, and with them
// their lists of types, whose items stay where they are.
static_assert(std::is_nothrow_move_constructible_v<Node>);

Value GraphBuilder::apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) {
  Node node;
  node.op = &op;
  node.inputs = SmallVec<Value, 3>(operands);
  node.attrs = attrs;
  node.source = at_;
  node.results = check_node(graph_, node);
  return {graph_.add_node(region_, std::move(node)), 0};
}

Value GraphBuilder::constant(double number, const TensorType& type) {
  const Attrs attrs = Attrs().add(type.dtype).add(number).add(static_cast<int64_t>(number));
  const Value one = apply(def_of(&ops::constant), {}, attrs);
  if (type.shape.rank() == 0) return one;
  return apply(def_of(&ops::broadcast_to), {{one}}, Attrs().add(type.shape));
}

}  // namespace tidemark

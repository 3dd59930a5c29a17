#include "tidemark/ops/graph_builder.h"

#include <algorithm>
#include <type_traits>

#include "tidemark/ops/program.h"
#include "tidemark/ops/typing.h"

namespace tidemark {

// Gradient rules hold references to types while they add nodes. When the list of nodes grows, nodes
// are moved, not copied, so that the items of their lists of types keep their addresses.
static_assert(std::is_nothrow_move_constructible_v<Node>);

std::vector<TensorType> GraphBuilder::types_of(std::span<const Value> values) const {
  std::vector<TensorType> types;
  for (const Value value : values) types.push_back(graph_.type(value));
  return types;
}

Value GraphBuilder::add(const OpDef& op, std::span<const Value> operands, const Attrs& attrs,
                        std::vector<TensorType> results) {
  Node node;
  node.op = &op;
  node.inputs = SmallVec<Value, 3>(operands);
  node.attrs = attrs;
  node.results = std::move(results);
  node.source = at_;
  return {graph_.add_node(region_, std::move(node)), 0};
}

Value GraphBuilder::apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) {
  if (op.value != nullptr) return apply_pointwise(op, operands);
  const std::vector<TensorType> types = types_of(operands);
  std::vector<TensorType> results = infer_results({op, types, attrs, at_});
  if (op.family == Family::reduce)
    check_has_elements(op, types[0], results[0], attrs.read().integers(), at_);
  return add(op, operands, attrs, std::move(results));
}

// Gradients of complex values are added up and selected, which is the same for both parts.
Value GraphBuilder::apply_to_pairs(const OpDef& op, std::span<const Value> operands) {
  SmallVec<Value, 3> pairs;
  for (const Value operand : operands) {
    Shape shape = graph_.type(operand).shape;
    shape.push_back(1);
    pairs.push_back(is_complex(graph_.type(operand).dtype)
                        ? apply(def_of(&ops::view_as_real), {{operand}}, {})
                        : apply(def_of(&ops::reshape), {{operand}}, Attrs().add(shape)));
  }
  return apply(def_of(&ops::view_as_complex), {{apply_pointwise(op, pairs)}}, {});
}

Value GraphBuilder::apply_pointwise(const OpDef& op, std::span<const Value> operands) {
  const std::vector<TensorType> types = types_of(operands);
  if (std::any_of(types.begin(), types.end(),
                  [](const TensorType& type) { return is_complex(type.dtype); }))
    return apply_to_pairs(op, operands);
  std::vector<OperandType> parts;
  Shape shape;
  for (const TensorType& type : types) {
    parts.push_back({type.dtype, Weak::no, &type.shape});
    broadcast_into(shape, type.shape, op.name, at_);
  }
  const PointwiseType typed = infer_pointwise(op, parts, at_);
  SmallVec<Value, 3> inputs;
  for (size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(types[i].dtype == typed.compute[i]
                         ? operands[i]
                         : add(def_of(&ops::cast), operands.subspan(i, 1),
                               Attrs().add(typed.compute[i]),
                               {{typed.compute[i], types[i].shape}}));
  return add(op, inputs, {}, {{typed.result, shape}});
}

Value GraphBuilder::literal(DType dtype, double real, int64_t whole) {
  // A whole number in a float dtype is rounded to it once, from the integer.
  const Attrs attrs = Attrs().add(dtype).add(real).add(is_float(dtype) ? int64_t{0} : whole);
  return add(def_of(&ops::constant), {}, attrs, {{dtype, {}}});
}

Value GraphBuilder::constant(double number, const TensorType& type) {
  if (is_complex(type.dtype)) {
    TIDEMARK_CHECK(number == 0, "gradients of complex values start from given ones");
    const Value pairs = constant(number, ops::pairs_type(type));
    return apply(def_of(&ops::view_as_complex), {{pairs}}, {});
  }
  const Value one = literal(type.dtype, number, static_cast<int64_t>(number));
  return apply(def_of(&ops::broadcast_to), {{one}}, Attrs().add(type.shape));
}

Value GraphBuilder::size(Dim size) {
  if (size.is_traced())
    return add(def_of(&ops::size_value), {}, Attrs().add(size).add(DType::i64), {{DType::i64, {}}});
  const int64_t whole = size.known_or(-1);  // One less than a size of 0.
  return literal(DType::i64, static_cast<double>(static_cast<float>(whole)), whole);
}

}  // namespace tidemark

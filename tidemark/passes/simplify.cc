// Exact algebraic rewrites of single nodes.
#include <algorithm>
#include <bit>
#include <optional>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/replaced.h"

namespace tidemark::passes {
namespace {

template <class Op>
bool is(const Node& node, const Op& op) {
  return node.op == &def_of(&op);
}

AxisList list_of(const Attrs& attrs) { return AxisList(attrs.read().integers()); }

// Simplifies one node at a time. A rewrite either returns a value that replaces the node's result,
// or changes the node to read its operand's operand; the types of values never change.
//
// No rewrite may change whether a sum reads a broadcast, since such a sum multiplies by the count
// where others add (docs/semantics.md). Views of views keep strides and so are safe, except
// reshape, which may copy; reshapes and computations are removed only for values that are not
// broadcasts.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph) : graph_(graph), repeats_(graph.nodes.size()) {}

  std::vector<Value> visit(int32_t number) {
    Node& node = graph_.nodes[static_cast<size_t>(number)];
    // Each round moves the node's operand one step up its chain.
    while (compose(node)) {
    }
    if (const std::optional<Value> same = same_value(node)) return {*same};
    repeats_[static_cast<size_t>(number)] =
        node.op->repeats || (node.op->view != nullptr && repeats(node.inputs[0]));
    return {};
  }

 private:
  bool is_open(Value value) const { return graph_.type(value).shape.is_open(); }
  bool repeats(Value value) const { return repeats_[static_cast<size_t>(value.node)]; }
  // The node that computes a value; a parameter has no op.
  const Node& maker(const Node& node, size_t input) const {
    return graph_.node(node.inputs[input]);
  }

  // ---- a node and its operand become one ----

  bool compose(Node& node) const {
    if (node.inputs.size() != 1) return false;
    const Node& inner = maker(node, 0);
    if (inner.op == nullptr || inner.inputs.size() != 1) return false;
    if (node.op->is_cast()) return compose_cast(node, inner);
    if (inner.op != node.op) return false;
    if (node.op->cutting == Cutting::permute) return compose_transpose(node, inner);
    // The result's shape is the only attribute.
    if (node.op->repeats) return read_through(node, inner);
    if (is_open(node.inputs[0]) || is_open(inner.inputs[0])) return false;
    if (is(node, ops::slice)) return compose_slice(node, inner);
    if (node.op->cutting == Cutting::reshape && !repeats(inner.inputs[0]))
      return read_through(node, inner);
    return false;
  }

  static bool read_through(Node& node, const Node& inner) {
    node.inputs = inner.inputs;
    return true;
  }

  static bool compose_transpose(Node& node, const Node& inner) {
    const AxisList outer_order = list_of(node.attrs), inner_order = list_of(inner.attrs);
    AxisList order;
    for (const int64_t axis : outer_order) order.push_back(inner_order[static_cast<size_t>(axis)]);
    node.attrs = Attrs().add(order);
    return read_through(node, inner);
  }

  static bool compose_slice(Node& node, const Node& inner) {
    Attrs::Reader outer = node.attrs.read(), base = inner.attrs.read();
    DimList begin(outer.sizes());
    const DimList size(outer.sizes());
    AxisList step(outer.integers());
    const DimList base_begin(base.sizes());
    base.sizes();
    const AxisList base_step(base.integers());
    for (size_t i = 0; i < begin.size(); ++i) {
      // The begin of an empty slice and the step of a single element do not matter.
      begin[i] = size[i] == 0 ? 0 : int64_t{base_begin[i]} + int64_t{begin[i]} * base_step[i];
      step[i] = size[i] <= 1 ? 1 : step[i] * base_step[i];
    }
    node.attrs = Attrs().add(begin).add(size).add(step);
    return read_through(node, inner);
  }

  bool compose_cast(Node& node, const Node& inner) const {
    if (!inner.op->is_cast()) return false;
    if (!holds_all(inner.attrs.read().dtype(), graph_.type(inner.inputs[0]).dtype)) return false;
    return read_through(node, inner);
  }
  // Whether every value of `from` is representable in `to`, which is of the same kind: then a cast
  // through `to` equals a direct cast. Integers to floats are excluded: floats saturate where
  // integers wrap.
  static bool holds_all(DType to, DType from) {
    if (to == from || from == DType::boolean) return true;
    if (is_float(from)) return is_float(to) && !is_low_precision(to) && size_of(to) > size_of(from);
    const bool has_room = is_signed_integer(to) || is_unsigned_integer(from);
    return is_integer(to) && has_room && size_of(to) > size_of(from);
  }

  // ---- a node gives what another value is already ----

  std::optional<Value> same_value(const Node& node) const {
    if (node.op->view != nullptr) return whole_view(node);
    const std::optional<Value> same = same_elements(node);
    const bool free = same && !repeats(*same) && graph_.type(*same) == node.results[0];
    return free ? same : std::nullopt;
  }

  std::optional<Value> whole_view(const Node& node) const {
    const Value operand = node.inputs[0];
    const TensorType& type = graph_.type(operand);
    if (type != node.results[0] || is_open(operand)) return std::nullopt;
    const bool whole = node.op->cutting == Cutting::reshape || node.op->repeats ||
                       (node.op->cutting == Cutting::permute && keeps_order(node)) ||
                       (is(node, ops::slice) && keeps_steps(node));
    return whole ? std::optional(operand) : std::nullopt;
  }
  static bool keeps_order(const Node& node) {
    const AxisList order = list_of(node.attrs);
    return std::is_sorted(order.begin(), order.end());
  }
  // A slice with the operand's sizes is the whole operand, unless it goes backwards.
  static bool keeps_steps(const Node& node) {
    Attrs::Reader read = node.attrs.read();
    const std::span<const Dim> begin = read.sizes(), size = read.sizes();
    const std::span<const int64_t> step = read.integers();
    for (size_t i = 0; i < step.size(); ++i)
      if (size[i] > 0 && (begin[i] != 0 || (size[i] > 1 && step[i] != 1))) return false;
    return true;
  }

  std::optional<Value> same_elements(const Node& node) const {
    const auto& inputs = node.inputs;
    if (is(node, identity)) return inputs[0];
    if (node.op->is_cast() && graph_.type(inputs[0]).dtype == node.results[0].dtype)
      return inputs[0];
    if (node.op->twice == Twice::undoes && maker(node, 0).op == node.op)
      return maker(node, 0).inputs[0];
    if (node.op->twice == Twice::settles && maker(node, 0).op == node.op) return inputs[0];
    if (is(node, where)) return selected(node);
    if (inputs.size() != 2) return std::nullopt;
    if (is_neutral(node, 1)) return inputs[0];
    if (node.op->commutes && is_neutral(node, 0)) return inputs[1];
    return std::nullopt;
  }

  std::optional<Value> selected(const Node& node) const {
    if (node.inputs[1] == node.inputs[2]) return node.inputs[1];
    const Node* condition = constant_behind(node.inputs[0]);
    if (condition == nullptr) return std::nullopt;
    return node.inputs[whole_of(*condition) != 0 ? 1 : 2];
  }

  // Whether input `side` is the op's neutral element.
  bool is_neutral(const Node& node, size_t side) const {
    const Node* number = constant_behind(node.inputs[side]);
    if (number == nullptr) return false;
    const bool real = is_float(number->attrs.read().dtype());
    switch (node.op->neutral) {
      case Neutral::none:
        return false;
      case Neutral::one:  // For NaN, infinities, denormals and both zeros.
        return real ? real_of(*number) == 1 : whole_of(*number) == 1;
      case Neutral::zero:
        return real ? is_zero(*number, false) : whole_of(*number) == 0;
      case Neutral::negative_zero:  // -0 + -0 is -0, but -0 + 0 is 0.
        return real ? is_zero(*number, true) : whole_of(*number) == 0;
      case Neutral::all_ones:
        return whole_of(*number) == all_ones(*number);
    }
    return false;
  }
  static bool is_zero(const Node& number, bool negative_zero) {
    return std::bit_cast<uint64_t>(real_of(number)) == (negative_zero ? uint64_t{1} << 63 : 0);
  }
  static int64_t all_ones(const Node& number) {
    const DType dtype = number.attrs.read().dtype();
    return is_signed_integer(dtype) ? -1 : most_of(dtype);
  }

  // The constant that a value equals, directly or broadcast.
  const Node* constant_behind(Value value) const {
    const Node* node = &graph_.node(value);
    if (node->op != nullptr && node->op->repeats) node = &graph_.node(node->inputs[0]);
    return node->op != nullptr && node->op->literal == Literal::number ? node : nullptr;
  }
  static double real_of(const Node& number) {
    Attrs::Reader read = number.attrs.read();
    read.dtype();
    return read.number();
  }
  static int64_t whole_of(const Node& number) {
    Attrs::Reader read = number.attrs.read();
    read.dtype();
    read.number();
    return read.integer();
  }

  Graph& graph_;
  std::vector<bool> repeats_;  // By node: a broadcast, or a view of one.
};

}  // namespace

void simplify(Graph& graph) {
  Simplifier simplifier(graph);
  replace_nodes(graph, [&](RegionId, int32_t number) { return simplifier.visit(number); });
}

}  // namespace tidemark::passes

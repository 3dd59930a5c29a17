#include "tidemark/passes/slicing.h"

#include <algorithm>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"

namespace tidemark::passes {
namespace {

using Axis = std::optional<int64_t>;  // Nothing: no such axis; kWhole: it does not move along it.

bool contains(std::span<const int64_t> list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

int64_t product(const Shape& shape, int64_t begin, int64_t end) {
  int64_t size = 1;
  for (int64_t axis = begin; axis < end; ++axis) size *= shape[axis];
  return size;
}

// The axis of an operand that broadcasts to a result.
Axis broadcast_axis(const Shape& operand, const Shape& result, int64_t axis, int64_t units) {
  const int64_t own = axis - (result.rank() - operand.rank());
  bool has_all = own >= 0, has_some = false;
  for (int64_t i = 0; i < span_of(result, axis, units); ++i) {
    const bool moves = own + i >= 0 && operand[own + i] == result[axis + i];
    has_all = has_all && moves;
    has_some = has_some || (moves && result[axis + i] != 1);
  }
  if (has_all) return own;
  return has_some ? Axis() : Axis(Slicing::kWhole);
}

// Where units of an axis lie under another shape: as whole indices of one axis behind as many
// elements.
Axis reshaped_axis(const Shape& from, const Shape& to, int64_t axis, int64_t units) {
  const int64_t before = product(from, 0, axis);
  for (int64_t other = 0; other < to.rank(); ++other)
    if (to[other] != 1 && product(to, 0, other) == before && span_of(to, other, units) > 0)
      return other;
  return {};
}

// By the names of attributes, not of ops: each name means the same everywhere. What is cut must be
// taken as it is along the axes. A row op folds behind them, so that its order stays.
bool leaves_alone(const Node& node, int64_t begin, int64_t end) {
  bool alone = true;
  node.attrs.for_each(node.op->attrs, [&](const AttrDef& attr, auto items) {
    if (attr.name == "axis")
      alone &= items[0] >= end || (items[0] < begin && node.op->family != Family::row);
    const bool is_offset =
        attr.name == "begin" || attr.name == "low" || attr.name == "high" || attr.name == "inside";
    for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end); ++at)
      alone &= (!is_offset || items[at] == 0) && (attr.name != "step" || items[at] == 1);
  });
  return alone;
}

// Whether every operand and the result have the axes, in one place and of one size.
bool all_have(const Graph& graph, const Node& node, int64_t begin, int64_t end) {
  const Shape& result = node.results[0].shape;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
    const Shape& shape = graph.type(input).shape;
    return shape.rank() == result.rank() &&
           std::equal(shape.begin() + begin, shape.begin() + end, result.begin() + begin);
  });
}

bool along_one_axis(const Node& node) {
  if (node.op->self == &ops::take_along_axis) return true;
  Attrs::Reader read = node.attrs.read();
  if (node.op->self != &ops::scatter_add) return false;
  read.integer();
  return read.boolean();
}

// The operand's axis, of an op that has one operand or several that are alike.
Axis operand_axis(const Graph& graph, const Node& node, int64_t axis, int64_t units) {
  const Shape &operand = graph.type(node.inputs[0]).shape, &result = node.results[0].shape;
  const int64_t end = axis + span_of(result, axis, units);
  if (node.op->self == &ops::broadcast_to) return broadcast_axis(operand, result, axis, units);
  if (node.op->self == &ops::reshape) return reshaped_axis(result, operand, axis, units);
  if (node.op->self != &ops::transpose)
    return all_have(graph, node, axis, end) && leaves_alone(node, axis, end) ? Axis(axis) : Axis();
  const std::span<const int64_t> order = node.attrs.read().integers();
  const auto begin = static_cast<size_t>(axis);
  for (size_t i = begin; i < static_cast<size_t>(end); ++i)
    if (order[i] - order[begin] != static_cast<int64_t>(i - begin)) return {};
  return order[begin];
}

// The result's axis, of the same ops.
Axis result_axis(const Graph& graph, const Node& node, int64_t axis, int64_t units) {
  const Shape &operand = graph.type(node.inputs[0]).shape, &result = node.results[0].shape;
  if (node.op->self == &ops::broadcast_to) return axis + result.rank() - operand.rank();
  if (node.op->self == &ops::reshape) return reshaped_axis(operand, result, axis, units);
  if (node.op->self != &ops::transpose) return axis;
  const std::span<const int64_t> order = node.attrs.read().integers();
  return std::find(order.begin(), order.end(), axis) - order.begin();
}

bool is_taken_alike(const Node& node) {
  switch (node.op->family) {
    case Family::view:
    case Family::row:
      return true;
    case Family::piece:
      return node.op->self == &ops::concat || node.op->self == &ops::pad ||
             node.op->self == &ops::update;
    case Family::scan:
      return node.op->self == &ops::cumsum;
    case Family::index:
      return along_one_axis(node);
    default:
      return false;
  }
}

// Of a reduction that does not fold the axis, and folds only what lies behind it: whatever its
// size, it then folds in the same order, and places are the same with and without what it folds.
Axis folded_axis(const Node& node, int64_t axis, int64_t units) {
  const std::span<const int64_t> axes = node.attrs.read().integers();
  const int64_t end = axis + span_of(node.results[0].shape, axis, units);
  return axes.empty() || end <= axes.front() ? Axis(axis) : Axis();
}

std::optional<Slicing> of_matmul(const Graph& graph, const Node& node, int64_t axis,
                                 int64_t units) {
  const Shape &a = graph.type(node.inputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  const Shape& c = node.results[0].shape;
  const int64_t span = span_of(c, axis, units), last = axis + span - 1;
  if (last == c.rank() - 1 && span == 1)
    return Slicing{.result = axis, .operands = {Slicing::kWhole, b.rank() - 1}};
  // Rows, or the rows of all matrices of a batch.
  if (last == c.rank() - 2 && (span == 1 || (a.rank() == c.rank() && b.rank() == 2)))
    return Slicing{.result = axis, .operands = {a.rank() - 1 - span, Slicing::kWhole}};
  const Axis of_a = broadcast_axis(a, c, axis, units), of_b = broadcast_axis(b, c, axis, units);
  if (span != 1 || !of_a || !of_b) return {};
  return Slicing{.result = axis, .operands = {*of_a, *of_b}};
}

bool adds_plainly(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::optional<Slicing> by_operand_of_matmul(const Graph& graph, const Node& node, size_t operand,
                                            int64_t axis, int64_t units) {
  const int64_t rank = graph.type(node.inputs[operand]).shape.rank();
  const int64_t k = operand == 0 ? rank - 1 : rank - 2;
  if (axis != k) return of_matmul(graph, node, axis + node.results[0].shape.rank() - rank, units);
  const Shape &a = graph.type(node.inputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  if (!adds_plainly(node.results[0].dtype) || span_of(a, a.rank() - 1, units) != 1 ||
      span_of(b, b.rank() - 2, units) != 1)
    return {};
  return Slicing{.operands = {a.rank() - 1, b.rank() - 2}, .sums = Slicing::Sums::products};
}

// A sum over the axis and perhaps others behind it, in front of axes that stay: then it folds in
// order, in blocks, with the axis the slowest.
std::optional<Slicing> sum_over(const Graph& graph, const Node& node, int64_t axis, int64_t units) {
  const TensorType& x = graph.type(node.inputs[0]);
  const std::span<const int64_t> axes = node.attrs.read().integers();
  const int64_t end = axis + span_of(x.shape, axis, units);
  if (node.op->monoid != Monoid::sum || node.op->gives_index || node.results[0].dtype != x.dtype ||
      !adds_plainly(x.dtype) || repeats(graph, node.inputs[0]))
    return {};
  Slicing slicing{.operands = {axis}, .sums = Slicing::Sums::columns};
  bool stays = false;  // The last axis that is more than one index.
  for (int64_t each = 0; each < x.shape.rank(); ++each) {
    if (x.shape[each] == 1) continue;
    stays = !contains(axes, each);
    const bool is_cut = each >= axis && each < end;
    if (is_cut ? stays : !stays && each < axis) return {};
    if (!is_cut && !stays) slicing.terms *= x.shape[each];
  }
  return stays ? std::optional(slicing) : std::nullopt;
}

}  // namespace

bool repeats(const Graph& graph, Value value) {
  const Node& maker = graph.node(value);
  if (maker.op == nullptr || maker.op->view == nullptr) return false;
  return maker.op->self == &ops::broadcast_to || repeats(graph, maker.inputs[0]);
}

int64_t span_of(const Shape& shape, int64_t axis, int64_t units) {
  if (axis < 0 || axis >= shape.rank()) return 0;
  const bool leads = product(shape, 0, axis) == 1;
  int64_t size = shape[axis], end = axis + 1;
  for (; size % units != 0 && leads && end < shape.rank(); ++end) size *= shape[end];
  return size % units == 0 ? end - axis : 0;
}

int64_t size_along(const Shape& shape, int64_t axis, int64_t units) {
  return product(shape, axis, axis + span_of(shape, axis, units));
}

Shape shape_of_part(Shape shape, int64_t axis, int64_t units, int64_t size) {
  for (int64_t more = span_of(shape, axis, units) - 1; more > 0; --more) shape.erase(axis + 1);
  shape.set(axis, size);
  return shape;
}

std::optional<Slicing> slicing_of_result(const Graph& graph, const Node& node, int64_t axis,
                                         int64_t units) {
  const Shape& result = node.results[0].shape;
  if (span_of(result, axis, units) == 0) return {};
  if (node.op->self == &ops::matmul) return of_matmul(graph, node, axis, units);
  const Family family = node.op->family;
  if (family != Family::pointwise && family != Family::reduce && !is_taken_alike(node)) return {};
  Slicing slicing{.result = axis};
  for (const Value input : node.inputs) {
    const Axis own = family == Family::pointwise
                         ? broadcast_axis(graph.type(input).shape, result, axis, units)
                     : family == Family::reduce ? folded_axis(node, axis, units)
                                                : operand_axis(graph, node, axis, units);
    if (!own) return {};
    if (*own != Slicing::kWhole && span_of(graph.type(input).shape, *own, units) == 0) return {};
    slicing.operands.push_back(*own);
  }
  return slicing;
}

std::optional<Slicing> slicing_by_operand(const Graph& graph, const Node& node, size_t operand,
                                          int64_t axis, int64_t units) {
  std::optional<Slicing> slicing;
  const Shape& own = graph.type(node.inputs[operand]).shape;
  if (node.results.size() != 1) return {};
  if (node.op->self == &ops::matmul) {
    slicing = by_operand_of_matmul(graph, node, operand, axis, units);
  } else if (node.op->family == Family::pointwise) {
    slicing =
        slicing_of_result(graph, node, axis + node.results[0].shape.rank() - own.rank(), units);
  } else if (node.op->family == Family::reduce) {
    slicing = contains(node.attrs.read().integers(), axis)
                  ? sum_over(graph, node, axis, units)
                  : slicing_of_result(graph, node, axis, units);
  } else if (is_taken_alike(node)) {
    const Axis result = result_axis(graph, node, axis, units);
    if (result) slicing = slicing_of_result(graph, node, *result, units);
  }
  return slicing && slicing->operands[operand] == axis ? slicing : std::nullopt;
}

Attrs attrs_of_part(const Graph& graph, const Node& node, const Slicing& slicing, int64_t units,
                    int64_t size) {
  const int64_t own = slicing.operands.empty() ? Slicing::kWhole : slicing.operands[0];
  const int64_t more =
      own == Slicing::kWhole ? 0 : span_of(graph.type(node.inputs[0]).shape, own, units) - 1;
  // The number of an operand's axis where those that are cut are one.
  const auto moved = [&](int64_t axis) {
    return own == Slicing::kWhole || axis <= own ? axis : std::max(own, axis - more);
  };
  const bool cuts_result = slicing.result != Slicing::kWhole;
  const auto at = static_cast<size_t>(slicing.result);
  const int64_t spans =
      cuts_result ? span_of(node.results[0].shape, slicing.result, units) : int64_t{1};
  Attrs attrs;
  node.attrs.for_each(node.op->attrs, [&](const AttrDef& attr, auto words) {
    using Item = std::remove_const_t<typename decltype(words)::element_type>;
    SmallVec<Item, 6> items(words);
    if (attr.name == "axes" || attr.name == "order" || attr.name == "axis")
      for (Item& axis : items) axis = moved(axis);
    if (attr.name == "axes") {
      while (!items.empty() && std::adjacent_find(items.begin(), items.end()) != items.end())
        items.erase(
            static_cast<size_t>(std::adjacent_find(items.begin(), items.end()) - items.begin()));
    } else if (attr.is_list() && cuts_result) {
      for (int64_t i = 1; i < spans; ++i) items.erase(at + 1);
      if (attr.name == "shape" || attr.name == "size") items[at] = size;
    }
    if (attr.is_list())
      attrs.add(std::span<const Item>(items));
    else
      attrs.add(items[0]);
  });
  return attrs;
}

}  // namespace tidemark::passes

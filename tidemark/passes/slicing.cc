#include "tidemark/passes/slicing.h"

#include <algorithm>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::passes {
namespace {

using Axis = std::optional<int64_t>;  // Empty: no such axis; kWhole: it does not vary along it.

bool contains(std::span<const int64_t> list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

int64_t product(const Shape& shape, int64_t begin, int64_t end) {
  int64_t size = 1;
  for (const Dim* dim = shape.begin() + begin; dim != shape.begin() + end; ++dim) size *= *dim;
  return size;
}

// The axis of an operand that broadcasts to a result. The cut has `span` axes of the result.
Axis broadcast_axis(const Shape& operand, const Shape& result, int64_t axis, int64_t span) {
  const int64_t own = axis - (result.rank() - operand.rank());
  const Dim *const of_operand = operand.begin(), *const of_result = result.begin();
  bool has_all = own >= 0, has_some = false;
  for (int64_t i = 0; i < span; ++i) {
    const bool moves = own + i >= 0 && of_operand[own + i] == of_result[axis + i];
    has_all = has_all && moves;
    has_some = has_some || (moves && of_result[axis + i] != 1);
  }
  if (has_all) return own;
  return has_some ? Axis() : Axis(Slicing::kWhole);
}

// The axis of another shape that has the same units: whole indices of one axis with as many
// elements before it.
Axis reshaped_axis(const Shape& from, const Shape& to, int64_t axis, int64_t units) {
  const int64_t before = product(from, 0, axis);
  for (int64_t other = 0; other < to.rank(); ++other)
    if (to[other] != 1 && product(to, 0, other) == before && span_of(to, other, units) > 0)
      return other;
  return {};
}

// The op must work elementwise along the cut axes. A row op folds axes after them, so that its
// order is unchanged.
bool leaves_alone(const Node& node, int64_t begin, int64_t end) {
  bool alone = true;
  node.attrs.for_each(node.op->attrs, [&](const AttrDef& attr, auto items) {
    if (attr.role == AttrRole::axis)
      alone &= items[0] >= end || (items[0] < begin && node.op->family != Family::row);
    if (!attr.is_per_axis() || attr.holds_sizes()) return;
    for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end); ++at)
      alone &= items[at] == attr.neutral_item();
  });
  return alone;
}

// Whether every operand and the result have the axes, at the same position and of the same size.
bool all_have(const Graph& graph, const Node& node, int64_t begin, int64_t end) {
  const Shape& result = node.results[0].shape;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
    const Shape& shape = graph.type(input).shape;
    return shape.rank() == result.rank() &&
           std::equal(shape.begin() + begin, shape.begin() + end, result.begin() + begin);
  });
}

// The operand's axis that becomes this axis of the result.
Axis permuted_axis(const Node& node, int64_t axis, int64_t span) {
  const std::span<const int64_t> order = node.attrs.read().integers();
  const auto begin = static_cast<size_t>(axis);
  for (size_t i = begin; i < begin + static_cast<size_t>(span); ++i)
    if (order[i] - order[begin] != static_cast<int64_t>(i - begin)) return {};
  return order[begin];
}

// For a reduction that folds only axes after this one: its order does not depend on the size of the
// axis, and positions are the same in a part.
Axis folded_axis(const Node& node, int64_t axis, int64_t span) {
  const std::span<const int64_t> axes = node.attrs.read().integers();
  return axes.empty() || axis + span <= axes.front() ? Axis(axis) : Axis();
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
  const Axis of_a = broadcast_axis(a, c, axis, span), of_b = broadcast_axis(b, c, axis, span);
  if (span != 1 || !of_a || !of_b) return {};
  return Slicing{.result = axis, .operands = {*of_a, *of_b}};
}

std::optional<Slicing> by_operand_of_matmul(const Graph& graph, const Node& node, size_t operand,
                                            int64_t axis, int64_t units) {
  const int64_t rank = graph.type(node.inputs[operand]).shape.rank();
  const int64_t k = operand == 0 ? rank - 1 : rank - 2;
  if (axis != k) return of_matmul(graph, node, axis + node.results[0].shape.rank() - rank, units);
  const Shape &a = graph.type(node.inputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  if (!is_float(node.results[0].dtype) || span_of(a, a.rank() - 1, units) != 1 ||
      span_of(b, b.rank() - 2, units) != 1)
    return {};
  return Slicing{.operands = {a.rank() - 1, b.rank() - 2}, .sums = Slicing::Sums::products};
}

// A sum over the axis and perhaps others after it, before axes that stay: it folds in order, in
// blocks, with this axis the slowest.
std::optional<Slicing> sum_over(const Graph& graph, const Node& node, int64_t axis, int64_t units) {
  const TensorType& x = graph.type(node.inputs[0]);
  const std::span<const int64_t> axes = node.attrs.read().integers();
  const int64_t end = axis + span_of(x.shape, axis, units);
  if (node.op->monoid != Monoid::sum || node.op->gives_index || node.results[0].dtype != x.dtype ||
      !is_float(x.dtype) || repeats(graph, node.inputs[0]))
    return {};
  Slicing slicing{.operands = {axis}, .sums = Slicing::Sums::columns};
  bool stays = false;  // Whether the last axis larger than 1 stays.
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
  return maker.op->repeats || repeats(graph, maker.inputs[0]);
}

int64_t span_of(const Shape& shape, int64_t axis, int64_t units) {
  if (axis < 0 || axis >= shape.rank()) return 0;
  const Dim* const dims = shape.begin();
  int64_t size = dims[axis], end = axis + 1;
  if (size % units == 0) return 1;
  if (product(shape, 0, axis) != 1) return 0;
  for (; size % units != 0 && end < shape.rank(); ++end) size *= dims[end];
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

namespace {

// An axis of a result, in units, and how many axes count as it: see span_of.
struct CutAxis {
  int64_t axis, units, span;
};

// Images, of which the kernel is the same for all.
std::optional<Slicing> of_convolution(const Node& node, int64_t axis, int64_t units) {
  if (axis != 0 || span_of(node.results[0].shape, 0, units) != 1) return {};
  return Slicing{.result = 0, .operands = {0, Slicing::kWhole}};
}
// Channels are added up, those of the image with those of the kernel.
std::optional<Slicing> by_operand_of_convolution(const Graph& graph, const Node& node,
                                                 size_t operand, int64_t axis, int64_t units) {
  constexpr int64_t kOfImage = 3, kOfKernel = 2;
  if (axis != (operand == 0 ? kOfImage : kOfKernel))
    return operand == 0 ? of_convolution(node, axis, units) : std::nullopt;
  if (!ops::ConvSpec::from(node.attrs).by_channel ||
      span_of(graph.type(node.inputs[0]).shape, kOfImage, units) != 1)
    return {};
  return Slicing{.operands = {kOfImage, kOfKernel}, .sums = Slicing::Sums::products};
}

// The axis of an operand that an axis of the result depends on.
Axis operand_axis(const Graph& graph, const Node& node, Value operand, const CutAxis& cut) {
  const auto& [axis, units, span] = cut;
  const Shape &own = graph.type(operand).shape, &result = node.results[0].shape;
  switch (node.op->cutting) {
    case Cutting::broadcast:
      return broadcast_axis(own, result, axis, span);
    case Cutting::fold:
      return folded_axis(node, axis, span);
    case Cutting::reshape:
      return reshaped_axis(result, own, axis, units);
    case Cutting::permute:
      return permuted_axis(node, axis, span);
    case Cutting::alike:
      return all_have(graph, node, axis, axis + span) && leaves_alone(node, axis, axis + span)
                 ? Axis(axis)
                 : Axis();
    default:
      return {};
  }
}

// The axis of the result that may depend on an operand's axis; `operand_axis` verifies it.
Axis result_axis(const Graph& graph, const Node& node, Value operand, int64_t axis, int64_t units) {
  const Shape &own = graph.type(operand).shape, &result = node.results[0].shape;
  switch (node.op->cutting) {
    case Cutting::broadcast:
      return axis + result.rank() - own.rank();
    case Cutting::reshape:
      return reshaped_axis(own, result, axis, units);
    case Cutting::permute: {
      const std::span<const int64_t> order = node.attrs.read().integers();
      return std::find(order.begin(), order.end(), axis) - order.begin();
    }
    default:
      return axis;
  }
}

}  // namespace

std::optional<Slicing> slicing_of_result(const Graph& graph, const Node& node, int64_t axis,
                                         int64_t units) {
  if (node.op->cutting == Cutting::none) return {};
  const CutAxis cut{axis, units, span_of(node.results[0].shape, axis, units)};
  if (cut.span == 0) return {};
  if (node.op->cutting == Cutting::product) return of_matmul(graph, node, axis, units);
  if (node.op->cutting == Cutting::convolution) return of_convolution(node, axis, units);
  Slicing slicing{.result = axis};
  for (const Value input : node.inputs) {
    const Axis own = operand_axis(graph, node, input, cut);
    if (!own) return {};
    if (*own != Slicing::kWhole && span_of(graph.type(input).shape, *own, units) == 0) return {};
    slicing.operands.push_back(*own);
  }
  return slicing;
}

std::optional<Slicing> slicing_by_operand(const Graph& graph, const Node& node, size_t operand,
                                          int64_t axis, int64_t units) {
  if (node.op->cutting == Cutting::none) return {};
  std::optional<Slicing> slicing;
  if (node.op->cutting == Cutting::product) {
    slicing = by_operand_of_matmul(graph, node, operand, axis, units);
  } else if (node.op->cutting == Cutting::convolution) {
    slicing = by_operand_of_convolution(graph, node, operand, axis, units);
  } else if (node.op->cutting == Cutting::fold && contains(node.attrs.read().integers(), axis)) {
    slicing = sum_over(graph, node, axis, units);
  } else {
    const Axis result = result_axis(graph, node, node.inputs[operand], axis, units);
    if (result) slicing = slicing_of_result(graph, node, *result, units);
  }
  return slicing && slicing->operands[operand] == axis ? slicing : std::nullopt;
}

Attrs attrs_of_part(const Graph& graph, const Node& node, const Slicing& slicing, int64_t units,
                    int64_t size) {
  const int64_t own = slicing.operands.empty() ? Slicing::kWhole : slicing.operands[0];
  const int64_t more =
      own == Slicing::kWhole ? 0 : span_of(graph.type(node.inputs[0]).shape, own, units) - 1;
  // The index of an operand's axis after the cut axes were merged.
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
    if (attr.numbers_axes())
      for (Item& axis : items) axis = moved(axis);
    if (attr.role == AttrRole::axes) {
      while (!items.empty() && std::adjacent_find(items.begin(), items.end()) != items.end())
        items.erase(
            static_cast<size_t>(std::adjacent_find(items.begin(), items.end()) - items.begin()));
    } else if (attr.is_per_axis() && cuts_result) {
      for (int64_t i = 1; i < spans; ++i) items.erase(at + 1);
      if (attr.holds_sizes()) items[at] = size;
    }
    if (attr.is_list())
      attrs.add(std::span<const Item>(items));
    else
      attrs.add(items[0]);
  });
  return attrs;
}

}  // namespace tidemark::passes

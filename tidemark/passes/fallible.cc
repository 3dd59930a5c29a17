#include "tidemark/passes/fallible.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "tidemark/base/text.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

// ---- the index operand of a node ----------------------------------------------------------------

// An index and the size of the axis it points into. Two equal lookups fail together or not at all.
struct Lookup {
  Value index;
  Dim size;
  // Negative indices are out of range too, so a lookup that accepts them proves nothing.
  bool is_strict = false;
};

bool is_lookup(const Node& node) {
  return node.op->family == Family::index || node.op->effect == Effect::check_index;
}

int64_t axis_of(const Node& node) {
  return node.op->attrs.empty() ? 0 : node.attrs.read().integer();
}

bool is_strict(const Node& node) {
  if (node.op->routine != Routine::take_along_axis) return false;
  Attrs::Reader read = node.attrs.read();
  read.integer();
  return !read.boolean();
}

Lookup lookup_of(const Graph& graph, const Node& node) {
  if (node.op->effect == Effect::check_index) {
    Attrs::Reader read = node.attrs.read();
    read.integers();
    return {node.inputs[0], read.size()};
  }
  return {node.inputs[1], graph.type(node.inputs[0]).shape[axis_of(node)], is_strict(node)};
}

// The value whose elements an index has, through views and casts that keep whole numbers, also
// inside fusion groups.
class IndexOrigin {
 public:
  IndexOrigin(const Graph& graph, Value index) : graph_(graph), value_(index) {
    while (step()) {
    }
  }
  Value value() const { return value_; }
  // Whether the index has all elements of the origin.
  bool is_whole() const { return is_whole_; }

 private:
  // Goes on to the operand; false at the origin.
  bool step() {
    const Node& node = graph_.node(value_);
    if (node.op == nullptr) return group_ != nullptr && leave_group();
    if (node.op->flow == Flow::group) {
      group_ = &node;
      const Region& region = graph_.regions[static_cast<size_t>(node.regions[0])];
      value_ = region.results[static_cast<size_t>(value_.result)];
      return true;
    }
    if (node.op->view != nullptr)
      is_whole_ = is_whole_ && shows_all(node);
    else if (!node.op->is_cast() || !keeps_numbers(node))
      return false;
    value_ = node.inputs[0];
    return true;
  }
  bool leave_group() {
    const Region& region = graph_.regions[static_cast<size_t>(group_->regions[0])];
    const auto found = std::find(region.parameters.begin(), region.parameters.end(), value_);
    if (found == region.parameters.end()) return false;
    value_ = group_->inputs[static_cast<size_t>(found - region.parameters.begin())];
    group_ = nullptr;
    return true;
  }
  bool shows_all(const Node& view) const {
    const Shape &shown = view.results[0].shape, &all = graph_.type(view.inputs[0]).shape;
    return !view.op->repeats && !shown.is_open() && !all.is_open() && shown.size() == all.size();
  }
  bool keeps_numbers(const Node& cast) const {
    const DType from = graph_.type(cast.inputs[0]).dtype, to = cast.results[0].dtype;
    return is_integer(from) && is_signed_integer(to) && size_of(from) < size_of(to);
  }

  const Graph& graph_;
  Value value_;
  const Node* group_ = nullptr;  // The group that the value is inside of.
  bool is_whole_ = true;
};

// ---- the range of a value of whole numbers ------------------------------------------------------

// The range of a value, from the definition of its op and the ranges of its operands.
class Ranges {
 public:
  explicit Ranges(const Graph& graph) : graph_(graph) {}

  // `group`: the node whose region the value stands in, or null.
  IntegerRange of(Value value, const Node* group = nullptr, int depth = 0) const {
    constexpr int deepest = 8;
    const Node& node = graph_.node(value);
    if (depth == deepest) return {};
    const auto operand = [&](size_t i) { return of(node.inputs[i], group, depth + 1); };
    if (node.op == nullptr) return of_parameter(value, group, depth);
    if (node.op->literal == Literal::number) return of_constant(node);
    if (node.op->flow == Flow::group) {
      const Region& region = graph_.regions[static_cast<size_t>(node.regions[0])];
      return of(region.results[static_cast<size_t>(value.result)], &node, depth + 1);
    }
    if (node.op->view != nullptr) return operand(0);
    if (node.op->index_result == value.result) return of_positions(node);
    if (node.op->is_cast()) return of_cast(node, operand(0));
    if (node.op->range == nullptr) return {};
    std::vector<IntegerRange> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) operands.push_back(operand(i));
    return node.op->range(node.op->self, operands);
  }

 private:
  IntegerRange of_parameter(Value value, const Node* group, int depth) const {
    if (group == nullptr) return {};
    const Region& region = graph_.regions[static_cast<size_t>(group->regions[0])];
    for (size_t i = 0; i < region.parameters.size(); ++i)
      if (region.parameters[i] == value) return of(group->inputs[i], nullptr, depth + 1);
    return {};
  }
  static IntegerRange of_constant(const Node& node) {
    if (!is_integer(node.results[0].dtype)) return {};
    Attrs::Reader read = node.attrs.read();
    read.dtype();
    read.number();
    const int64_t whole = read.integer();
    return {whole, whole};
  }
  // Positions along one axis, or along all axes that a reduction folds.
  IntegerRange of_positions(const Node& node) const {
    const Shape& shape = graph_.type(node.inputs[0]).shape;
    if (shape.is_open()) return {};
    int64_t count = 1;
    node.attrs.for_each(node.op->attrs, [&](const AttrDef& attr, auto items) {
      if (!attr.numbers_axes()) return;
      for (const auto axis : items) count *= shape[static_cast<int64_t>(axis)];
    });
    return {0, std::max<int64_t>(count, 1) - 1};
  }
  // A cast keeps values that fit the new dtype.
  IntegerRange of_cast(const Node& node, IntegerRange from) const {
    const DType to = node.results[0].dtype;
    if (!is_integer(to) || !is_integer(graph_.type(node.inputs[0]).dtype)) return {};
    return fits(from.least, to) && fits(from.most, to) ? from : IntegerRange{};
  }

  const Graph& graph_;
};

bool is_in_range(const Graph& graph, const Lookup& lookup) {
  if (lookup.size.is_open()) return false;
  const int64_t size = lookup.size;
  const IntegerRange range = Ranges(graph).of(lookup.index);
  return range.least >= (lookup.is_strict ? 0 : -size) && range.most < size;
}

// ---- checks ahead -------------------------------------------------------------------------------

// By node: whether it writes a Variable or depends on a node that does.
std::vector<bool> behind_writes(const Graph& graph, std::span<const int32_t> updates,
                                std::vector<bool>& reads_written) {
  std::vector<bool> behind(graph.nodes.size());
  const auto shown = [&](Value value) {
    while (graph.node(value).op != nullptr && graph.node(value).op->view != nullptr)
      value = graph.node(value).inputs[0];
    return value.node;
  };
  for (size_t k = 0; k < updates.size(); ++k)
    if (updates[k] >= 0) behind[static_cast<size_t>(shown(graph.body().results[k]))] = true;
  reads_written.assign(graph.nodes.size(), false);
  for (const int32_t number : graph.body().nodes) {
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
      if (behind[static_cast<size_t>(input.node)])
        reads_written[static_cast<size_t>(number)] = behind[static_cast<size_t>(number)] = true;
  }
  return behind;
}

Node check_of(const Graph& graph, const Node& node) {
  const TensorType& type = graph.type(node.inputs[0]);
  const int64_t axis = axis_of(node);
  std::vector<int64_t> text;
  const auto add = [&](const std::string& part) {
    text.insert(text.end(), part.begin(), part.end());
  };
  add(cat(node.op->name, ": index "));
  text.push_back(ops::kOperandHere);
  add(cat(" is out of range for axis ", axis, " of ", type));
  Node check;
  check.op = &def_of(&ops::check_index);
  check.inputs = {node.inputs[1]};
  check.attrs = Attrs().add(std::span<const int64_t>(text)).add(type.shape[axis]);
  check.source = node.source;
  return check;
}

}  // namespace

std::vector<int32_t> looked_before(const Graph& graph, const Region& region) {
  using Key = std::tuple<int32_t, int16_t,
                         SizeWord>;  // Comparing words does not ask for the value of an open size.
  std::map<Key, int32_t> first, first_strict;
  std::vector<int32_t> before(region.nodes.size(), -1);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(region.nodes[i])];
    if (!is_lookup(node)) continue;
    const Lookup lookup = lookup_of(graph, node);
    const IndexOrigin origin(graph, lookup.index);
    const auto key = [&](Value value) { return Key{value.node, value.result, lookup.size.word()}; };
    const auto self = static_cast<int32_t>(i);
    std::map<Key, int32_t>& known = lookup.is_strict ? first_strict : first;
    // Elements that were all checked at their origin, or the same ones.
    for (const Value checked : {origin.value(), lookup.index})
      if (const auto found = known.find(key(checked)); found != known.end() && before[i] < 0)
        before[i] = found->second;
    if (before[i] >= 0) continue;
    const Value checked = origin.is_whole() ? origin.value() : lookup.index;
    first.try_emplace(key(checked), self);
    if (lookup.is_strict) first_strict.try_emplace(key(checked), self);
  }
  return before;
}

void add_index_checks(Graph& graph, std::span<const int32_t> updates) {
  if (std::none_of(updates.begin(), updates.end(), [](int32_t each) { return each >= 0; })) return;
  std::vector<bool> reads_written;
  const std::vector<bool> behind = behind_writes(graph, updates, reads_written);
  const std::vector<int32_t> nodes = graph.body().nodes;
  const std::vector<bool> fallible = fallible_nodes(graph, graph.body());
  std::vector<size_t> late;
  bool needed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto number = static_cast<size_t>(nodes[i]);
    const Node& node = graph.nodes[number];
    if (!fallible[i] || !behind[number] || node.op->family != Family::index) continue;
    needed = needed || reads_written[number] || !late.empty();
    const bool is_known = !graph.type(node.inputs[0]).shape.is_open();
    if (is_known && !is_strict(node) && !behind[static_cast<size_t>(node.inputs[1].node)])
      late.push_back(i);
  }
  if (!needed) return;
  graph.body().nodes.clear();
  auto next = late.begin();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (next != late.end() && *next == i) {
      graph.add_node(Graph::kBody, check_of(graph, graph.nodes[static_cast<size_t>(nodes[i])]));
      ++next;
    }
    graph.body().nodes.push_back(nodes[i]);
  }
}

std::vector<bool> fallible_nodes(const Graph& graph, const Region& region) {
  const std::vector<int32_t> before = looked_before(graph, region);
  std::vector<bool> fallible;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(region.nodes[i])];
    const bool is_checked =
        before[i] >= 0 || (is_lookup(node) && is_in_range(graph, lookup_of(graph, node)));
    fallible.push_back(!is_checked && can_fail(graph, node));
  }
  return fallible;
}

bool can_fail(const Graph& graph, const Node& node) {
  if (node.op->effect != Effect::none || node.op->family == Family::index) return true;
  if (node.op->flow == Flow::group) return false;
  return std::any_of(node.regions.begin(), node.regions.end(), [&](RegionId id) {
    const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(id)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
      return can_fail(graph, graph.nodes[static_cast<size_t>(number)]);
    });
  });
}

}  // namespace tidemark::passes

// An operand that is only read by a concat is computed in its part of the result, which needs no
// copy and no second buffer. A list of 10,000 tensors that is stacked takes the bytes of the stack.
#include <algorithm>

#include "tidemark/compile/workspace.h"
#include "tidemark/layout/builder.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"

namespace tidemark::compile {
namespace {

// The parts of the result that the operands become, along an axis.
std::vector<ArrayRef> parts_along(const ArrayRef& whole, size_t axis,
                                  std::span<const TensorType* const> operands) {
  std::vector<ArrayRef> parts;
  ArrayRef part = whole;
  for (const TensorType* const type : operands) {
    part.shape.set(static_cast<int64_t>(axis), type->shape[static_cast<int64_t>(axis)]);
    parts.push_back(part);
    part.data += part.shape[static_cast<int64_t>(axis)] * part.strides[axis] * size_of(part.dtype);
  }
  return parts;
}

std::optional<ArrayRef> reshaped(const ArrayRef& array, const Shape& shape) {
  ArrayRef seen{kNowhere, array.dtype, shape, {}};
  if (!def_of(&ops::reshape).view(array, Attrs().add(shape), seen)) return {};
  return seen;
}

}  // namespace

std::vector<ArrayRef> LayoutBuilder::parts_of(const Node& concat, const ArrayRef& whole) const {
  std::vector<const TensorType*> types;
  for (const Value input : concat.inputs) types.push_back(&graph_.type(input));
  return parts_along(whole, static_cast<size_t>(concat.attrs.read().integer()), types);
}

// Positions of nodes, numbers of reads of values, and live bytes at each position.
LayoutBuilder::RegionFacts LayoutBuilder::facts_of(const Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  RegionFacts facts;
  facts.alive.assign(region.nodes.size() + 1, 0);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const int32_t number = region.nodes[i];
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    facts.position[number] = static_cast<int32_t>(i);
    for (const Value input : node.inputs) ++facts.uses[id(input)];
    for (size_t r = 0; r < node.results.size(); ++r) {
      const Value result{number, static_cast<int16_t>(r)};
      const int32_t self = id(result);
      if (root(result) != self || is_constant(result) || wish_[static_cast<size_t>(self)] >= 0)
        continue;
      facts.alive[i] += whole_bytes(self);
      const size_t end = std::min(static_cast<size_t>(last_use(self)), region.nodes.size() - 1);
      facts.alive[end + 1] -= whole_bytes(self);
    }
  }
  for (size_t i = 1; i < facts.alive.size(); ++i) facts.alive[i] += facts.alive[i - 1];
  for (const Value result : region.results) ++facts.uses[id(result)];
  return facts;
}

// The value of which `operand` is a view of all bytes in order, if a node of the region computes it
// and it has no other reader.
std::optional<Value> LayoutBuilder::made_for(Value operand, const RegionFacts& facts) {
  if (is_constant(operand)) return {};
  const int32_t whole = root(operand);
  const bool is_dense = same_layout(view_of(operand).layout, dense_layout(graph_.type(operand)));
  if (!is_dense || memory_of(whole) >= 0 || wish_[static_cast<size_t>(whole)] >= 0 ||
      whole_bytes(whole) != bytes_of(graph_.type(operand)))
    return {};
  for (Value value = operand;; value = graph_.node(value).inputs[0]) {
    const auto uses = facts.uses.find(id(value));
    if (uses == facts.uses.end() || uses->second != 1 || !facts.position.contains(value.node))
      return {};
    if (id(value) == whole) return value;
  }
}

// Whether a node can write its result to this part of an array.
bool LayoutBuilder::writes_part(const Node& maker, const ArrayRef& part) const {
  if (maker.op->flow == Flow::group || maker.op->family == Family::pointwise) return true;
  const bool is_op = maker.op->view == nullptr && maker.regions.empty() &&
                     maker.op->family != Family::source && !maker.op->transfers;
  return is_op && (maker.op->routine == Routine::concat || part.is_contiguous());
}

// Later concats first: the result of one may be an operand of another.
void LayoutBuilder::make_in_concat(const Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  const auto is_concat = [&](int32_t number) {
    return graph_.nodes[static_cast<size_t>(number)].op->routine == Routine::concat;
  };
  if (std::none_of(region.nodes.begin(), region.nodes.end(), is_concat)) return;
  const RegionFacts facts = facts_of(scope);
  for (size_t i = region.nodes.size(); i-- > 0;)
    if (is_concat(region.nodes[i])) make_operands_in_place(region.nodes[i], scope, facts);
}

void LayoutBuilder::make_operands_in_place(int32_t number, const Scope& scope,
                                           const RegionFacts& facts) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  const int32_t whole = root(result);
  const int32_t wish = wish_[static_cast<size_t>(whole)];
  // A Variable's old value may still be read when a part is computed.
  if (wish >= 0 && scope.destinations[static_cast<size_t>(wish)].place >= 0) return;
  std::vector<PossiblePart> possible = possible_parts(node, view_of(result).layout, facts);
  // A result's bytes exist from the start; other arrays are allocated with their first part.
  if (wish < 0) keep_those_worth_it(possible, number, scope, facts);
  for (const PossiblePart& part : possible) {
    for (Value view = part.operand; view != part.made; view = graph_.node(view).inputs[0])
      view_of(view).root = whole;
    view_of(part.made) = {whole, part.layout};
  }
}

// In reverse order of computation.
std::vector<LayoutBuilder::PossiblePart> LayoutBuilder::possible_parts(const Node& concat,
                                                                       const ArrayRef& whole,
                                                                       const RegionFacts& facts) {
  std::vector<PossiblePart> possible;
  const std::vector<ArrayRef> parts = parts_of(concat, whole);
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::optional<Value> made = made_for(concat.inputs[k], facts);
    if (!made) continue;
    const std::optional<ArrayRef> layout = reshaped(parts[k], graph_.type(*made).shape);
    if (layout && writes_part(graph_.node(*made), *layout))
      possible.push_back({facts.position.at(made->node), concat.inputs[k], *made, *layout});
  }
  std::stable_sort(
      possible.begin(), possible.end(),
      [](const PossiblePart& a, const PossiblePart& b) { return a.position > b.position; });
  return possible;
}

// Keeps the operands that can be computed in place without more live bytes on the way than at the
// concat. The bytes of bodies are not known here, so the search does not cross control flow. Its
// length is proportional to the number of operands.
void LayoutBuilder::keep_those_worth_it(std::vector<PossiblePart>& possible, int32_t number,
                                        const Scope& scope, const RegionFacts& facts) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  const int32_t last = facts.position.at(number);
  const int64_t most = facts.alive[static_cast<size_t>(last)];
  const int64_t whole = bytes_of(graph_.nodes[static_cast<size_t>(number)].results[0]);
  const auto can_wait = [&](int32_t at, int64_t more) {
    const Node& between = graph_.nodes[static_cast<size_t>(region.nodes[static_cast<size_t>(at)])];
    const bool has_body = !between.regions.empty() && between.op->flow != Flow::group;
    return !has_body && facts.alive[static_cast<size_t>(at)] + more <= most;
  };
  int32_t at = last - 1;
  for (size_t k = 0; k < possible.size(); ++k) {
    const int64_t more = whole - bytes_of(graph_.type(possible[k].made));
    const int32_t far = last - 64 - 8 * static_cast<int32_t>(k);
    while (at >= std::max(possible[k].position, far) && can_wait(at, more)) --at;
    if (at < possible[k].position) continue;
    possible.resize(k);
    return;
  }
}

// Whether parts are already in place, or there are more operands than a step can have.
bool LayoutBuilder::is_made_of_parts(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  if (node.op->routine != Routine::concat) return false;
  const Value result{number, 0};
  return node.inputs.size() >= static_cast<size_t>(run::kMostOperands) ||
         root(result) != id(result) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return root(input) == root(result); });
}

// Copies the operands that are not in place.
void LayoutBuilder::add_concat(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  choose(node, result, scope);
  const std::vector<ArrayRef> parts = parts_of(node, view_of(result).layout);
  const run::Address whole = memory(memory_of(root(result))).address;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Value input = node.inputs[k];
    run::Address to = whole;
    to.offset += parts[k].data - kNowhere;
    ArrayRef layout = parts[k];
    layout.data = kNowhere;
    if (is_constant(input)) {
      add_step(fill_task(backend(), constant_bits(input), layout, threads()), {&to, 1}, "fill",
               node.source);
      set_work(fill_work(graph_.type(input)));
    } else if (root(input) != root(result)) {
      const run::Address places[] = {address_of(input), to};
      add_step(copy_task(backend(), view_of(input).layout, layout, threads()), places, "copy",
               node.source);
      set_work(copy_work(graph_.type(input)));
    }
  }
}

}  // namespace tidemark::compile

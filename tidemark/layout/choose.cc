// Chooses the bytes of a result: the destination of its reader, an operand whose lifetime ends
// here, or a new buffer of the arena.
#include <algorithm>
#include <optional>

#include "tidemark/base/work.h"
#include "tidemark/compile/group.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/layout/builder.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/lower.h"

namespace tidemark::compile {
namespace {

// The layout of an array inside its padded version; nothing if padding separates its elements.
std::optional<ArrayRef> part_of_padded(ArrayRef whole, const TensorType& type, const Node& pad) {
  Attrs::Reader read = pad.attrs.read();
  const DimList low(read.sizes());
  read.sizes();
  for (const int64_t gap : read.integers())
    if (gap != 0) return {};
  for (size_t axis = 0; axis < low.size(); ++axis) {
    whole.data += int64_t{low[axis]} * whole.strides[axis] * size_of(type.dtype);
  }
  whole.shape = type.shape;
  return whole;
}

// Whether an op can write a result in place of an operand. Control flow may have thousands of both,
// so its pairs are not examined.
bool works_in_place(const Node& node) {
  return node.op->flow == Flow::group || node.op->family == Family::pointwise ||
         node.op->family == Family::row || node.op->updates_first;
}

}  // namespace

bool same_layout(const ArrayRef& a, const ArrayRef& b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides &&
         size_of(a.dtype) == size_of(b.dtype);
}

// Whether the op may write this result over this operand: it reads each element before it writes
// there.
bool LayoutBuilder::overwrites(const Node& node, size_t operand, size_t result) {
  if (!works_in_place(node)) return false;
  const Value input = node.inputs[operand];
  const ArrayRef wanted = dense_layout(node.results[result]);
  if (is_constant(input) || !same_layout(view_of(input).layout, wanted)) return false;
  Work::add(static_cast<int64_t>(node.inputs.size()));
  // Another operand with a different view of the same bytes would read overwritten elements.
  for (const Value other : node.inputs) {
    if (root(other) == root(input) && !same_layout(view_of(other).layout, wanted)) return false;
  }
  if (node.op->flow == Flow::group) {
    // Only one result overwrites an input; the others have separate bytes. An array that is an
    // input twice may be read again after the result is written.
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (root(node.inputs[k]) == root(input) &&
          !may_overwrite(scheduler_, node, static_cast<int32_t>(k), static_cast<int32_t>(result)))
        return false;
    }
    return true;
  }
  if (node.op->family == Family::pointwise || node.op->family == Family::row) return true;
  return node.op->updates_first && operand == 0 &&
         std::count_if(node.inputs.begin(), node.inputs.end(),
                       [&](Value other) { return root(other) == root(input); }) == 1;
}

// Whether this node's result may overwrite `place_root`.
bool LayoutBuilder::can_take(int32_t place_root, size_t result, const Scope& scope,
                             const Node& node) {
  if (place_root < 0 || last_use(place_root) < scope.position) return true;
  if (last_use(place_root) > scope.position) return false;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (root(node.inputs[k]) == place_root && !overwrites(node, k, result)) return false;
  }
  return true;
}

// A donated parameter whose last reader is this node and which its result may overwrite.
int32_t LayoutBuilder::dying_parameter(const Node& node, Value result, const Scope& scope) {
  if (!works_in_place(node)) return kNone;
  const int64_t bytes = bytes_of(graph_.type(result));
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const int32_t operand = root(node.inputs[k]);
    const int32_t held = memory_of(operand);
    const auto parameters = static_cast<int32_t>(program_->parameters.size());
    // It may be the destination of another result of this node.
    const int32_t promised = wish_[static_cast<size_t>(operand)];
    if (held < 0 || !memory(held).writable || last_use(operand) != scope.position ||
        !memory(held).room.fits(bytes) || memory(held).address.reg < 1 ||
        memory(held).address.reg > parameters ||
        (promised >= 0 && promised != wish_[static_cast<size_t>(id(result))]) ||
        !overwrites(node, k, static_cast<size_t>(result.result)))
      continue;
    memory_of(operand) = kNone;
    return held;
  }
  return kNone;
}

// Whether the run may still fail after this node has written a Variable, whose old value must then
// survive. Ops that index check their indices before they write.
bool LayoutBuilder::may_fail_from(const Node& node, const Scope& scope) const {
  if (!scope.is_body) return false;
  return scope.last_fallible > scope.position ||
         (scope.last_fallible == scope.position && node.op->family != Family::index);
}

// Why a Variable is not updated in place by this node.
std::string LayoutBuilder::reason_against(const Scope& scope, const Node& node) const {
  if (!may_fail_from(node, scope))
    return cat("its old value is read by ", node.op->name, " or later (", node.source.text(), ")");
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  const int32_t number = region.nodes[static_cast<size_t>(scope.last_fallible)];
  const Node& fallible = graph_.nodes[static_cast<size_t>(number)];
  return cat(fallible.op->name, " may fail after it (", fallible.source.text(), ")");
}

// Chooses between the two places of a destination.
void LayoutBuilder::settle(Destination& destination, const Node& node, Value result,
                           const Scope& scope) {
  const bool may_throw_later = may_fail_from(node, scope);
  const bool free =
      destination.place >= 0 &&
      can_take(destination.place_root, static_cast<size_t>(result.result), scope, node);
  if (free && !may_throw_later) {
    destination.held = destination.place;
    return;
  }
  if (destination.place >= 0) destination.why_not = reason_against(scope, node);
  if (scope.is_body) destination.held = dying_parameter(node, result, scope);
  if (destination.held < 0) destination.held = destination.spare;
}

int32_t LayoutBuilder::choose(const Node& node, Value result, Scope& scope) {
  const int32_t self = root(result);
  if (memory_of(self) >= 0) return memory_of(self);  // It was computed inside its padded version.
  if (self != id(result)) return memory_of(self) = choose_whole(node, self, scope);
  const TensorType& type = graph_.type(result);
  int32_t chosen = kNone;
  if (const int32_t wish = wish_[static_cast<size_t>(self)]; wish >= 0) {
    Destination& destination = scope.destinations[static_cast<size_t>(wish)];
    // An operand whose lifetime ends here may have been computed there already.
    if (destination.held < 0) settle(destination, node, result, scope);
    chosen = destination.held;
  }
  for (size_t k = 0; works_in_place(node) && k < node.inputs.size() && chosen < 0; ++k) {
    const int32_t operand = root(node.inputs[k]);
    const int32_t held = memory_of(operand);
    // It may occupy the destination of another result of this node.
    const int32_t promised = wish_[static_cast<size_t>(operand)];
    if (held < 0 || !memory(held).writable || last_use(operand) != scope.position ||
        !memory(held).room.fits(bytes_of(type)) ||
        !overwrites(node, k, static_cast<size_t>(result.result)) ||
        (promised >= 0 && promised != wish_[static_cast<size_t>(self)]))
      continue;
    chosen = held;
    memory_of(operand) = kNone;  // The result owns it now.
  }
  if (chosen < 0) {
    const bool is_group = node.op->flow == Flow::group;
    chosen = new_buffer(type, bytes_of(type), ByteClass::temporaries, node.source,
                        is_group ? name_of_group(node) : node.op->name);
  }
  memory_for(chosen, bytes_of(type));
  return memory_of(self) = chosen;
}

int32_t LayoutBuilder::choose_whole(const Node& node, int32_t whole, Scope& scope) {
  if (const int32_t wish = wish_[static_cast<size_t>(whole)]; wish >= 0) {
    Destination& destination = scope.destinations[static_cast<size_t>(wish)];
    memory_for(destination.spare, whole_bytes(whole));
    return destination.held = destination.spare;
  }
  const ArrayRef& layout = views_[static_cast<size_t>(whole)].layout;
  return new_buffer({layout.dtype, layout.shape}, whole_bytes(whole), ByteClass::temporaries,
                    node.source, node.op->name);
}

void LayoutBuilder::wish_for_carries(int32_t number, size_t position) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  size_t first = 0, carries = 0;
  if (node.op->flow == Flow::loop) {
    const LoopAttrs attrs(node);
    first = attrs.first_carry();
    carries = static_cast<size_t>(attrs.carries);
  } else if (node.op->flow == Flow::reverse_loop) {
    const ReverseAttrs attrs(node);
    first = static_cast<size_t>(1 + 2 * attrs.carries);
    carries = static_cast<size_t>(attrs.backs);
  }
  for (size_t k = 0; k < carries; ++k) {
    const Value initial = node.inputs[first + k];
    const int32_t start = root(initial);
    const int32_t wish = wish_[static_cast<size_t>(id({number, static_cast<int16_t>(k)}))];
    const bool whole = same_layout(view_of(initial).layout, dense_layout(graph_.type(initial))) &&
                       start == id(initial);
    if (wish >= 0 && whole && reads_once(node, start) && !is_constant(initial) &&
        memory_of(start) < 0 && wish_[static_cast<size_t>(start)] < 0 &&
        last_use(start) == static_cast<int32_t>(position))
      wish_[static_cast<size_t>(start)] = wish;
  }
}

// An operand that the region's result will overwrite is computed at the destination of that result.
// Exceptions: the destination is a Variable, whose old value may still be read when the operand is
// computed; or the result can overwrite a donated parameter, and then needs no bytes of its own.
void LayoutBuilder::wish_for_operand(int32_t number, size_t position, const Scope& scope) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  if (!works_in_place(node)) return;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    const int32_t wish = wish_[static_cast<size_t>(id(result))];
    if (wish < 0 || scope.destinations[static_cast<size_t>(wish)].place >= 0) continue;
    const auto is_given = [&](size_t k) {
      const int32_t held = memory_of(root(node.inputs[k]));
      return held >= 0 && memory(held).writable &&
             last_use(root(node.inputs[k])) == static_cast<int32_t>(position) &&
             overwrites(node, k, r);
    };
    bool takes_given = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) takes_given = takes_given || is_given(k);
    for (size_t k = 0; k < node.inputs.size() && !takes_given; ++k) {
      const int32_t operand = root(node.inputs[k]);
      const bool made_here = operand == id(node.inputs[k]) && memory_of(operand) < 0 &&
                             !is_constant(node.inputs[k]) &&
                             last_use(operand) == static_cast<int32_t>(position);
      const bool loops = graph_.node(node.inputs[k]).op != nullptr &&
                         graph_.node(node.inputs[k]).op->flow == Flow::loop;
      if (!made_here || loops || wish_[static_cast<size_t>(operand)] >= 0 ||
          whole_bytes(operand) != bytes_of(graph_.type(result)) || !overwrites(node, k, r))
        continue;
      wish_[static_cast<size_t>(operand)] = wish;
      break;
    }
  }
}

// A value that is only read by a pad is computed inside the padded array, which needs no copy and
// no second buffer. Exceptions: the padded array would live much longer for a small gain, or it is
// a Variable.
void LayoutBuilder::make_in_padding(const Scope& scope) {
  const Region& region = graph_.regions[static_cast<size_t>(scope.region)];
  const bool has_padding =
      std::any_of(region.nodes.begin(), region.nodes.end(), [&](int32_t number) {
        return graph_.nodes[static_cast<size_t>(number)].op->routine == Routine::pad;
      });
  if (!has_padding) return;
  std::vector<int32_t> uses(views_.size());  // By value.
  for (const int32_t number : region.nodes)
    for (const Value input : graph_.nodes[static_cast<size_t>(number)].inputs)
      ++uses[static_cast<size_t>(id(input))];
  for (const Value result : region.results) ++uses[static_cast<size_t>(id(result))];
  for (size_t i = 1; i < region.nodes.size(); ++i) {
    const Node& node = graph_.nodes[static_cast<size_t>(region.nodes[i])];
    if (node.op->routine != Routine::pad) continue;
    const Value inner = node.inputs[0];
    const Node& maker = graph_.node(inner);
    const int32_t whole = id({region.nodes[i], 0}), wish = wish_[static_cast<size_t>(whole)];
    const bool is_made = maker.op != nullptr &&
                         (maker.op->flow == Flow::group || maker.op->family == Family::pointwise);
    const bool at_once = inner.node == region.nodes[i - 1];
    if (!is_made || root({region.nodes[i], 0}) != whole ||
        uses[static_cast<size_t>(id(inner))] != 1 || root(inner) != id(inner) ||
        is_constant(inner) || memory_of(id(inner)) >= 0 ||
        wish_[static_cast<size_t>(id(inner))] >= 0 ||
        (wish >= 0 && scope.destinations[static_cast<size_t>(wish)].place >= 0) ||
        (!at_once && 4 * whole_bytes(whole) > 5 * whole_bytes(id(inner))))
      continue;
    if (const auto part = part_of_padded(dense_layout(node.results[0]), graph_.type(inner), node))
      view_of(inner) = {whole, *part};
  }
}

}  // namespace tidemark::compile

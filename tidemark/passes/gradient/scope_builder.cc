#include "tidemark/passes/gradient/scope_builder.h"

#include <algorithm>

#include "tidemark/ops/graph_builder.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/structure.h"

namespace tidemark::passes {

Value ScopeBuilder::distinct_value(ScopedValue scoped, const std::vector<Value>& taken,
                                   Source at) const {
  const Value value = value_of(scoped);
  const bool is_taken = std::find(taken.begin(), taken.end(), value) != taken.end();
  return is_taken ? value_of(apart(scoped, at)) : value;
}

ScopedValue ScopeBuilder::parameter(const TensorType& type, Source at) const {
  return own(graph().add_parameter(scope_->region, TensorType(type), at));
}

ScopedValue ScopeBuilder::apply(const OpDef& op, std::span<const ScopedValue> operands,
                                const Attrs& attrs, Source at) const {
  SmallVec<Value, 3> values;
  for (const ScopedValue operand : operands) values.push_back(value_of(operand));
  return own(GraphBuilder(graph(), scope_->region, at.resolve()).apply(op, values, attrs));
}

ScopedValue ScopeBuilder::add(ScopedValue a, ScopedValue b, Source at) const {
  return apply(def_of(&tidemark::add), {{a, b}}, {}, at);
}

ScopedValue ScopeBuilder::subtract(ScopedValue a, ScopedValue b, Source at) const {
  return apply(def_of(&tidemark::subtract), {{a, b}}, {}, at);
}

ScopedValue ScopeBuilder::reshape(ScopedValue x, const Shape& shape, Source at) const {
  return apply(def_of(&ops::reshape), {{x}}, Attrs().add(shape), at);
}

ScopedValue ScopeBuilder::first_element(ScopedValue x, Source at) const {
  const Attrs first = Attrs().add(DimList{0}).add(DimList{1}).add(AxisList{1});
  return reshape(apply(def_of(&ops::slice), {{x}}, first, at), {}, at);
}

ScopedValue ScopeBuilder::size(Dim size, Source at) const {
  return own(GraphBuilder(graph(), scope_->region, at.resolve()).size(size));
}

ScopedValue ScopeBuilder::repeated_number(double number, const TensorType& type, Source at) const {
  return own(
      GraphBuilder(graph(), scope_->region, at.resolve()).constant(number, TensorType(type)));
}

ScopedValue ScopeBuilder::last_trip(ScopedValue count, Dim trips, Source at) const {
  if (!count) return size(trips - 1, at);
  const ScopedValue here = own(value_of(count));
  return subtract(here, size(1, at), at);
}

ScopedValue ScopeBuilder::zeros_behind(ScopedValue stack, ScopedValue trips, Source at) const {
  const TensorType type = stack.type();
  const ScopedValue rows =
      apply(def_of(&ops::arange), {}, ops::arange_attrs(type.shape[0], DType::i64), at);
  Shape column = type.shape;
  for (int64_t axis = 1; axis < column.rank(); ++axis) column.set(axis, 1);
  const ScopedValue is_there =
      reshape(apply(def_of(&tidemark::less), {{rows, trips}}, {}, at), column, at);
  return apply(def_of(&tidemark::where), {{is_there, stack, zeros(type, at)}}, {}, at);
}

}  // namespace tidemark::passes

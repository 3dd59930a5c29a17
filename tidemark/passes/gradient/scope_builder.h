// Adds nodes to a region; they may read values of the regions around it.
#pragma once

#include <span>
#include <vector>

#include "tidemark/passes/region_scope.h"

namespace tidemark::passes {

// A value, and the scope whose region computes it. Another region captures it when one of its nodes
// reads it, and not before, so that regions capture only what they read.
struct ScopedValue {
  Value value = {};
  RegionScope* scope = nullptr;  // Null if there is no value.
  explicit operator bool() const { return scope != nullptr; }
  const TensorType& type() const { return scope->graph->type(value); }
};
using ScopedValues = std::vector<ScopedValue>;

class ScopeBuilder {
 public:
  ScopeBuilder(RegionScope& scope, Views views) : scope_(&scope), views_(views) {}

  RegionScope& scope() const { return *scope_; }
  Graph& graph() const { return *scope_->graph; }
  Region& region() const { return graph().regions[static_cast<size_t>(scope_->region)]; }
  // A builder for a region inside this one.
  ScopeBuilder inside(RegionScope& inner) const { return {inner, views_}; }

  // The value in this region, captured if necessary.
  Value value_of(ScopedValue value) const {
    return handed_in(value.value, value.scope, scope_, views_);
  }
  // The same, but distinct from `taken`: a value that is read in two roles has two gradients.
  Value distinct_value(ScopedValue value, const std::vector<Value>& taken, Source at) const;
  // A value of this region.
  ScopedValue own(Value value) const { return {value, scope_}; }

  ScopedValue parameter(const TensorType& type, Source at) const;
  ScopedValue apply(const OpDef& op, std::span<const ScopedValue> operands, const Attrs& attrs,
                    Source at) const;
  ScopedValue add(ScopedValue a, ScopedValue b, Source at) const;
  ScopedValue subtract(ScopedValue a, ScopedValue b, Source at) const;
  ScopedValue reshape(ScopedValue x, const Shape& shape, Source at) const;
  // A value equal to x with its own identity, so that it has a separate gradient.
  ScopedValue apart(ScopedValue x, Source at) const { return reshape(x, x.type().shape, at); }
  // x[0] of an array with one axis.
  ScopedValue first_element(ScopedValue x, Source at) const;
  ScopedValue size(Dim size, Source at) const;
  ScopedValue repeated_number(double number, const TensorType& type, Source at) const;
  ScopedValue zeros(const TensorType& type, Source at) const {
    return repeated_number(0, type, at);
  }
  // The number of the last trip: of `count` trips, or of `trips` if there is no count.
  ScopedValue last_trip(ScopedValue count, Dim trips, Source at) const;
  // A stack of which only the first `trips` rows were written, with zeros in all others.
  ScopedValue zeros_behind(ScopedValue stack, ScopedValue trips, Source at) const;

 private:
  RegionScope* scope_;
  Views views_;
};

}  // namespace tidemark::passes

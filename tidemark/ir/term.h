// Term: the values that gradient rules compute with.
//
// A Term is a Value plus the Builder that extends it. The graph builder appends a node; the eager
// builder runs the op at once. So one gradient rule serves both tapes and traces.
#pragma once

#include <cstdint>
#include <span>

#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark {

struct OpDef;
class Attrs;

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
// "f32[2, 3]"
std::ostream& operator<<(std::ostream& out, const TensorType& type);

struct Value {
  int32_t node = -1;
  int16_t result = 0;
  friend bool operator==(Value, Value) = default;
};

class Builder {
 public:
  virtual ~Builder() = default;
  virtual Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) = 0;
  // A number in the given type. It is one element, broadcast, and takes no memory of its own.
  virtual Value constant(double number, const TensorType& type) = 0;
  // Unlike reading the value, this does not extend the value's lifetime.
  virtual const TensorType& type(Value value) const = 0;
};

struct Term {
  Builder* builder = nullptr;
  Value value = {};

  const TensorType& type() const { return builder->type(value); }
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  // A number in this term's own type.
  Term like(double number) const { return {builder, builder->constant(number, type())}; }
  explicit operator bool() const { return builder != nullptr; }
};

}  // namespace tidemark

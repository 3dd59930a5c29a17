// What gradient rules compute with.
//
// A Term is a value together with whoever can make more of them. A graph builder appends a node; an
// eager builder runs the op at once. So one rule serves the tape and the graph pass alike.
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
  // A number in the given type; it repeats one element and costs nothing.
  virtual Value constant(double number, const TensorType& type) = 0;
  // Reading a type keeps nothing alive.
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

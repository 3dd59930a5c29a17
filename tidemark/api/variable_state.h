// What a Variable points at; internal to api/. Every read and every write of a value goes through
// the three functions below.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tidemark/api/variable.h"

namespace tidemark::detail {

struct VariableState : std::enable_shared_from_this<VariableState> {
  VariableState() = default;
  VariableState(const VariableState&) = delete;
  VariableState& operator=(const VariableState&) = delete;
  ~VariableState();

  // Recursive, so that an initializer that reads its own Variable is told so.
  mutable std::recursive_mutex lock;
  mutable Tensor value;  // Dense, of class `variables`. Nothing before the first use of a declared
                         // Variable.
  mutable bool initializing = false;
  Initializer initializer;
  Shape shape;
  DType dtype = DType::f32;
  std::string name;
  bool trainable = true;
  Source at = Source::none();
  uint64_t id = 0;  // In the order of declaration, from 1.

  TensorType type() const { return {dtype, shape}; }

  static const std::shared_ptr<VariableState>& of(const Variable& variable) {
    return variable.state_;
  }
  static Variable adopt(std::shared_ptr<VariableState> state) { return Variable(std::move(state)); }
};

// The value now: a handle that shares its bytes.
Tensor read_variable(const VariableState& state, Source at);
// The value has the Variable's type. Its bytes are adopted where it was moved in and nobody else
// holds them, else copied.
void write_variable(VariableState& state, Tensor value, Source at);
// Replaces the value by `next` of it, which has the same type. The operand that `next` gets is
// dying where nobody else holds the value, so that the op works in its place.
void modify_variable(VariableState& state, const std::function<Tensor(const Operand&)>& next,
                     Source at);

}  // namespace tidemark::detail

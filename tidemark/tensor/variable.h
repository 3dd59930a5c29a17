// State that outlives a step: parameters, counters, running means.
//
// A Variable is a handle: a copy is the same Variable. What is read from it is a snapshot that
// shares its bytes; an assignment is in place unless such a snapshot is alive, and then takes new
// bytes. An assignment that fails changes nothing. Any thread may read and assign.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/tensor/tensor.h"

namespace tidemark {

namespace detail {
struct VariableState;
}

// Gives the first value of a Variable that was declared without one.
using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;

struct VariableOptions {
  std::string name = {};
  bool trainable = true;
  std::optional<DType> dtype = {};  // Default: that of the initial tensor; f32 where declared.
  // Its owner outlives the trace that makes it and finds it again in the next: the state of an
  // optimizer. A second trace may make such Variables, which is refused to others.
  bool made_once = false;
};

class Variable {
 public:
  // Adopts the bytes of a tensor that was moved in and that nobody else holds; copies others.
  Variable(Tensor initial, VariableOptions options = {}, Source at = Source::here());
  // Declared now; its bytes come at the first use.
  Variable(const Shape& shape, Initializer initializer, VariableOptions options = {},
           Source at = Source::here());

  // Declared without a shape, for layers that learn theirs from their first input. Using it is a
  // UserError until `set_shape`, or an `assign`, has said what it is.
  static Variable unshaped(Initializer initializer, VariableOptions options = {},
                           Source at = Source::here());
  bool has_shape() const;
  // Once; again only with the same shape. Its bytes come at the first use.
  void set_shape(const Shape& shape, Source at = Source::here()) const;

  // The value must have the Variable's shape and dtype.
  void assign(const Operand& value) const;
  // The operand broadcasts to the Variable's shape. One pass, in place.
  void assign_add(const Operand& x) const;
  void assign_sub(const Operand& x) const;
  // `value` (broadcast, cast) in the chosen place, which must be a view: no tensor indices.
  void assign_slice(const Slices& place, const Operand& value) const;

  // The slices of the first axis that `indices` point at replaced by those of `updates`; where an
  // index comes twice, the last one stays.
  void scatter_update(const Operand& indices, const Operand& updates) const;

  Tensor value(Source at = Source::here()) const;
  Tensor operator[](const Slices& index) const;
  const Shape& shape(Source at = Source::here()) const;
  DType dtype() const;
  const std::string& name() const;
  bool trainable() const;
  // The line that declared it.
  Source source() const;
  // Whether both are handles of one Variable; `==` is elementwise.
  bool same_as(const Variable& other) const { return state_ == other.state_; }
  // Another Variable with a copy of the value, or with the same initializer where there is no
  // value yet.
  Variable clone(Source at = Source::here()) const;

 private:
  friend struct detail::VariableState;
  explicit Variable(std::shared_ptr<detail::VariableState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::VariableState> state_;
};

namespace detail {

// The values of all of them at one moment: no assignment and no compiled step of another thread
// comes between. `meanwhile` runs at that moment too.
std::vector<Tensor> values_together(std::span<const Variable> variables,
                                    const std::function<void()>& meanwhile, Source at);

// Variables that are assigned at one moment, all or none: locked for its life. What can fail is
// done by the caller first; the assignments cannot.
class VariablesTogether {
 public:
  explicit VariablesTogether(std::span<const Variable> variables);
  ~VariablesTogether();
  VariablesTogether(const VariablesTogether&) = delete;
  VariablesTogether& operator=(const VariablesTogether&) = delete;

  // Whether it has a value that nobody else holds, so that it can be written where it lies.
  bool can_fill(const Variable& variable) const;
  // The bytes of such a value, to be written.
  std::span<std::byte> fill(const Variable& variable) const noexcept;
  // A value that nobody else holds, dense, in bytes of its own and of the Variable's dtype, and its
  // shape, which a Variable without one takes. The old value is given back, to be dropped later.
  struct NextValue {
    Tensor value;
    Shape shape;
  };
  void put(const Variable& variable, NextValue& next) const noexcept;

 private:
  std::vector<std::shared_ptr<VariableState>> locked_;
};

// The Variable that the state of the global random generator stands in: made now, or only where
// there is one already.
Variable generator_as_variable();
std::optional<Variable> generator_if_variable();

// Undoes the set_shape of a Variable that has no value yet.
void forget_shape(const Variable& variable) noexcept;

}  // namespace detail

// Its name, its type and its value.
std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace tidemark

// State that outlives a step: parameters, counters, running means.
//
// A Variable is a handle: a copy is the same Variable. Reading it returns a snapshot that shares
// its memory. An assignment is in place; if a snapshot is alive, it allocates new memory instead.
// An assignment that fails changes nothing. Any thread may read and assign.
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

// Computes the initial value of a Variable that was declared without one.
using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;

struct VariableOptions {
  std::string name = {};
  bool trainable = true;
  std::optional<DType> dtype = {};  // Default: that of the initial tensor; f32 where declared.
  // For state whose owner outlives the trace that creates it, such as an optimizer's. A second
  // trace of the function may create such Variables; creating others is refused.
  bool made_once = false;
};

class Variable {
 public:
  // Adopts the memory of a tensor that was moved in and is not shared; copies others.
  Variable(Tensor initial, VariableOptions options = {}, Source at = Source::here());
  // Declared now; memory is allocated at the first use.
  Variable(const Shape& shape, Initializer initializer, VariableOptions options = {},
           Source at = Source::here());

  // Declared without a shape, for layers whose shapes depend on their first input. Using it is a
  // UserError until `set_shape` or `assign` has set the shape.
  static Variable unshaped(Initializer initializer, VariableOptions options = {},
                           Source at = Source::here());
  bool has_shape() const;
  // May be called again only with the same shape. Memory is allocated at the first use.
  void set_shape(const Shape& shape, Source at = Source::here()) const;

  // The value must have the Variable's shape and dtype, also under an Autocast.
  void assign(const Operand& value) const;
  // The operand broadcasts to the Variable's shape. One pass, in place.
  void assign_add(const Operand& x) const;
  void assign_sub(const Operand& x) const;
  // Assigns `value` (broadcast, cast) to the subscript, which must be a view: no tensor indices.
  void assign_slice(const Slices& place, const Operand& value) const;

  // Replaces the slices of the first axis at `indices` by those of `updates`; if an index occurs
  // twice, the last update wins.
  void scatter_update(const Operand& indices, const Operand& updates) const;

  // Moves the value to the memory of this number, 0 being the host's. A Variable without a value
  // gets its first one now. Functions that read it compute there from then on.
  void move_to(int64_t memory, Source at = Source::here()) const;

  // Under an Autocast (mode.h) a trainable f32 Variable is read as a 16-bit float.
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
  // A new Variable with a copy of the value, or with the same initializer if there is no value yet.
  Variable clone(Source at = Source::here()) const;

 private:
  friend struct detail::VariableState;
  explicit Variable(std::shared_ptr<detail::VariableState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::VariableState> state_;
};

namespace detail {

// A consistent snapshot of several Variables: no assignment or compiled step of another thread
// happens in between. `meanwhile` runs at the same moment.
std::vector<Tensor> values_together(std::span<const Variable> variables,
                                    const std::function<void()>& meanwhile, Source at);

// Assigns several Variables atomically; they are locked while it lives. The caller does everything
// that can fail first; the assignments cannot fail.
class VariablesTogether {
 public:
  explicit VariablesTogether(std::span<const Variable> variables);
  ~VariablesTogether();
  VariablesTogether(const VariablesTogether&) = delete;
  VariablesTogether& operator=(const VariablesTogether&) = delete;

  // Whether its value is not shared, so that it can be written in place.
  bool can_fill(const Variable& variable) const;
  // The memory of such a value, for writing.
  std::span<std::byte> fill(const Variable& variable) const noexcept;
  // Installs a value that is dense, not shared, owns its memory and has the Variable's dtype; a
  // Variable without a shape takes the value's. Returns the old value, to be dropped later.
  struct NextValue {
    Tensor value;
    Shape shape;
  };
  void put(const Variable& variable, NextValue& next) const noexcept;

 private:
  std::vector<std::shared_ptr<VariableState>> locked_;
};

// The part that `take` takes of a Variable's value, as a read of the Variable gives it: under an
// Autocast only that part is converted.
Tensor rows_read(const Variable& table, const std::function<Tensor(const Tensor&)>& take,
                 Source at);

// The Variable that holds the state of the global random generator; created now, or only if it
// exists.
Variable generator_as_variable();
std::optional<Variable> generator_if_variable();

// Undoes the set_shape of a Variable that has no value yet.
void forget_shape(const Variable& variable) noexcept;

}  // namespace detail

// Its name, its type and its value.
std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace tidemark

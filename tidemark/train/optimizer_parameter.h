// One trained Variable and the state an optimizer keeps for it. Internal to train/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/function.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/variable_walk.h"
#include "tidemark/train/update_rule.h"

namespace tidemark::nn {

// Shared by all parameters of one update.
struct SharedNumbers {
  std::vector<Tensor> numbers;
  std::optional<Tensor> scale;  // Of gradients, if they are clipped by their global norm.
};

// The line that calls the optimizer, for programs that are traced in the call.
void note_caller();
Source noted_caller();

// The factor that reduces a norm to at most `most`.
Tensor scale_to(const Tensor& squares, double most);

// Each computation is a separate compiled program in eager code, so that it works in place; inside
// a function it is inlined.
class Parameter {
 public:
  struct Kind {
    UpdateRule rule;
    OptimizerOptions options;
  };

  Parameter(Variable variable, std::string name, std::shared_ptr<const Kind> kind);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const Variable& variable() const { return variable_; }
  const std::string& name() const { return name_; }
  void walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;

  // The squared norm of a gradient.
  Tensor squares(const Gradient& gradient) const;
  void update(const Gradient& gradient, const SharedNumbers& shared) const;

  // Records that gradients are row-sparse: from then on an update by accumulated gradients leaves
  // other rows unchanged.
  void note_form(const Gradient& gradient) { is_table_ = is_table_ || gradient.is_rows(); }
  bool is_table() const { return is_table_; }

  // The same in two parts, for updates by the mean gradient of several calls.
  void accumulate(const Gradient& gradient) const;
  Tensor accumulated_squares() const;
  void update_by_accumulated(const SharedNumbers& shared) const;

 private:
  DType dtype() const;
  Variable declared(const std::string& slot, double initial) const;
  FunctionOptions named() const;
  Tensor rows_of(const Gradient& gradient) const;
  Tensor mean_of_accumulated() const;
  ParameterStep next(ParameterStep step, const SharedNumbers& shared, const Tensor& squares) const;
  void update_all(const Tensor& gradient, const SharedNumbers& shared, bool rows_apart) const;
  void update_rows(const Tensor& indices, const Tensor& rows, const SharedNumbers& shared) const;
  void use_accumulated(const SharedNumbers& shared, bool rows_apart) const;

  Variable variable_;
  std::string name_;
  std::shared_ptr<const Kind> kind_;
  std::vector<Variable> slots_;
  std::optional<Variable> accumulated_;
  bool is_table_ = false;  // Its gradients are row-sparse.

  Function<Tensor(const Tensor&)> squares_;
  Function<Tensor(const Tensor&, const Tensor&)> row_squares_;
  Function<void(const Tensor&, const SharedNumbers&)> update_;
  Function<void(const Tensor&, const Tensor&, const SharedNumbers&)> update_rows_;
  Function<void(const Tensor&, const Tensor&)> accumulate_rows_;
  Function<Tensor()> accumulated_squares_;
  Function<void(const SharedNumbers&)> update_accumulated_, update_table_;
};

}  // namespace tidemark::nn

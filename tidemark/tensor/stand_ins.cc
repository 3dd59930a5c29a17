#include "tidemark/tensor/stand_ins.h"

#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

void VariablePlaceholders::replace(Variable& variable) {
  const VariableState* const original = VariableState::of(variable).get();
  auto found = of_.find(original);
  if (found == of_.end()) {
    const Initializer none = [](const Shape&, DType) -> Tensor {
      throw InternalError("a stand-in has no value");
    };
    const Variable placeholder(
        variable.shape(), none,
        {.name = variable.name(), .trainable = variable.trainable(), .dtype = variable.dtype()},
        variable.source());
    found = of_.emplace(original, placeholder).first;
    placeholders_.push_back(placeholder);
  }
  variable = found->second;
}

constinit thread_local StandIns* StandIns::current_ = nullptr;

StandIns::StandIns(const std::vector<Variable>& variables, const std::vector<Tensor>& tensors)
    : outer_(std::exchange(current_, this)) {
  for (size_t i = 0; i < variables.size(); ++i)
    tensors_.emplace(VariableState::of(variables[i]).get(), tensors[i]);
}
StandIns::~StandIns() { current_ = outer_; }

const Tensor* StandIns::find(const VariableState& variable) {
  if (current_ == nullptr) [[likely]]
    return nullptr;
  const auto found = current_->tensors_.find(&variable);
  return found != current_->tensors_.end() ? &found->second : nullptr;
}

bool StandIns::write(const VariableState& variable, const Tensor& value) {
  if (find(variable) == nullptr) return false;
  current_->tensors_[&variable] = value;
  current_->written_ = true;
  return true;
}

}  // namespace tidemark::detail

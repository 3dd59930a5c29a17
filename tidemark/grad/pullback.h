// Gradient rules on tensors: their ops run at once. Internal to the library.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "tidemark/ops/op_def.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

// Terms that are tensors. What rules make is charged to the line of the op they belong to.
class TensorBuilder : public Builder {
 public:
  explicit TensorBuilder(Source at) : at_(at) {}
  // A tensor, or a spec where only the type is known.
  Term add(const Tensor& tensor);
  const Tensor& tensor(Term term) const { return tensors_[static_cast<size_t>(term.value.node)]; }

  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override;
  Value constant(double number, const TensorType& type) override;
  const TensorType& type(Value value) const override {
    return types_[static_cast<size_t>(value.node)];
  }

 private:
  // Deques: a type that was handed out stays where it is.
  std::deque<TensorType> types_;
  std::deque<Tensor> tensors_;
  Source at_;
};

// A number that repeats, and takes no bytes but its own.
Tensor repeated_number(double number, const TensorType& type, Source at);

// An application of an op as its gradient rule sees it.
struct Application {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Tensor> operands;  // Specs where the rule does not read them.
  std::span<const Tensor> results;   // The same.
  Source at;
};
// The gradients by those operands that are wanted, given those of the results, of which all but one
// may be nothing; nothing where a rule gives none. A UserError where the op has no gradient.
std::vector<Tensor> pull_back(const Application& application, std::span<const Tensor> gradients,
                              const std::vector<bool>& wanted);

}  // namespace tidemark::detail

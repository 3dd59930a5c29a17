// Gradient rules on tensors: the ops of a rule run immediately. Internal to the library.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "tidemark/ops/op_def.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

// Builds Terms that are tensors. Memory is charged to the line of the op that the rule belongs to.
class TensorBuilder : public Builder {
 public:
  explicit TensorBuilder(Source at) : at_(at) {}
  // A tensor, or a spec if only the type is known.
  Term add(const Tensor& tensor);
  const Tensor& tensor(Term term) const { return tensors_[static_cast<size_t>(term.value.node)]; }

  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override;
  Value constant(double number, const TensorType& type) override;
  const TensorType& type(Value value) const override {
    return types_[static_cast<size_t>(value.node)];
  }

 private:
  // Deques: references to their elements stay valid.
  std::deque<TensorType> types_;
  std::deque<Tensor> tensors_;
  Source at_;
};

// A broadcast number: it has one element in memory.
Tensor repeated_number(double number, const TensorType& type, Source at);

// A call of an op as its gradient rule sees it.
struct Application {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Tensor> operands;  // Specs if the rule does not read their values.
  std::span<const Tensor> results;   // The same.
  Source at;
  bool is_chain = false;  // passes::RuleForm
};
// The gradients of the wanted operands, given those of the results, of which all but one may be
// empty. An element is empty if the rule gives no gradient. Throws a UserError if the op is not
// differentiable.
std::vector<Tensor> pull_back(const Application& application, std::span<const Tensor> gradients,
                              const std::vector<bool>& wanted);

}  // namespace tidemark::detail

// A Builder that runs ops at once: gradient rules become numbers.
#pragma once

#include <deque>

#include "tests/sweep/cases.h"
#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/tensor_state.h"

namespace tidemark::sweep {

class EagerBuilder : public Builder {
 public:
  Term add(const Tensor& tensor) {
    types_.push_back(detail::type_of(tensor, Source::none()));
    tensors_.push_back(tensor);
    return {this, {.node = static_cast<int32_t>(tensors_.size()) - 1}};
  }
  const Tensor& tensor(Term term) const { return tensors_[static_cast<size_t>(term.value.node)]; }

  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override {
    std::vector<Tensor> list;
    for (const Value value : operands) list.push_back(tensors_[static_cast<size_t>(value.node)]);
    return add(run(op, list, attrs)).value;
  }
  Value constant(double number, const TensorType& type) override {
    return add(repeated(full({}, number, type.dtype), type.shape)).value;
  }
  const TensorType& type(Value value) const override {
    return types_[static_cast<size_t>(value.node)];
  }

 private:
  // Deques: a type that was handed out stays where it is.
  std::deque<TensorType> types_;
  std::deque<Tensor> tensors_;
};

}  // namespace tidemark::sweep

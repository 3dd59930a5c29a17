#include "tidemark/grad/pullback.h"

#include <algorithm>

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/gradient/pullback.h"
#include "tidemark/tensor/bind.h"

namespace tidemark::detail {

Term TensorBuilder::add(const Tensor& tensor) {
  types_.push_back(type_of(tensor, at_));
  tensors_.push_back(tensor);
  return {this, {.node = static_cast<int32_t>(tensors_.size()) - 1}};
}

namespace {

bool is_spec(const Tensor& tensor) {
  return TensorState::of(tensor)->kind == TensorState::Kind::spec;
}

// The result types of an op: a rule may compute with values that turn out to be unused.
Tensor applied_to_types(const OpDef& op, const std::vector<Tensor>& operands, const Attrs& attrs,
                        Source at) {
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(type_of(operand, at));
  if (op.infer != nullptr) return make_spec(op.infer({op, types, attrs, at}), at);
  std::vector<OperandType> parts;
  Shape shape;
  for (const TensorType& type : types) {
    parts.push_back({.dtype = type.dtype, .shape = &type.shape});
    broadcast_into(shape, type.shape, op.name, at);
  }
  return make_spec({infer_pointwise(op, parts, at).result, shape}, at);
}

}  // namespace

Value TensorBuilder::apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) {
  std::vector<Tensor> list;
  for (const Value value : operands) list.push_back(tensors_[static_cast<size_t>(value.node)]);
  return add(std::any_of(list.begin(), list.end(), is_spec) ? applied_to_types(op, list, attrs, at_)
             : op.is_cast() ? cast_to(list[0], attrs.read().dtype(), at_)
                            : bind_op(op, std::span<const Tensor>(list), attrs, at_))
      .value;
}

Value TensorBuilder::constant(double number, const TensorType& type) {
  return add(repeated_number(number, type, at_)).value;
}

Tensor repeated_number(double number, const TensorType& type, Source at) {
  return broadcast_to(literal(type.dtype, number, static_cast<int64_t>(number), at), type.shape,
                      at);
}

std::vector<Tensor> pull_back(const Application& application, std::span<const Tensor> gradients,
                              const std::vector<bool>& wanted) {
  // Memory is charged to the line of the op, not to that of the gradient() call.
  const UserCode user;
  const SourceScope charged(application.at);
  TensorBuilder builder(application.at);
  std::vector<Term> operands, results, flowing;
  for (const Tensor& operand : application.operands) operands.push_back(builder.add(operand));
  for (const Tensor& result : application.results) results.push_back(builder.add(result));
  for (const Tensor& gradient : gradients)
    flowing.push_back(gradient.has_value() ? builder.add(gradient) : Term());
  const passes::RuleApplication terms{application.op, application.attrs, operands, results,
                                      application.at};
  std::vector<Tensor> found;
  for (const Term term : passes::apply_rule(terms, std::move(flowing), wanted))
    found.push_back(term ? builder.tensor(term) : Tensor());
  return found;
}

}  // namespace tidemark::detail

#include "tidemark/grad/pullback.h"

#include <algorithm>
#include <bit>

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/gradient/pullback.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"

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

namespace {

// The values of an application, and the gradients of its results.
struct RuleValues {
  Tensors operands, results, gradients;

  // Calls visit(tensor) for those that have elements.
  template <class Visit>
  void for_each(Visit visit) {
    for (Tensors* const list : {&operands, &results, &gradients})
      for (Tensor& each : *list)
        if (each.has_value() && !is_spec(each)) visit(each);
  }
};

Tensors apply_rule(const Application& application, const RuleValues& values,
                   const std::vector<bool>& wanted) {
  TensorBuilder builder(application.at);
  std::vector<Term> operands, results, flowing;
  for (const Tensor& operand : values.operands) operands.push_back(builder.add(operand));
  for (const Tensor& result : values.results) results.push_back(builder.add(result));
  for (const Tensor& gradient : values.gradients)
    flowing.push_back(gradient.has_value() ? builder.add(gradient) : Term());
  const passes::RuleApplication terms{application.op, application.attrs, operands, results,
                                      application.at};
  Tensors found;
  for (const Term term : passes::apply_rule(terms, std::move(flowing), wanted))
    found.push_back(term ? builder.tensor(term) : Tensor());
  return found;
}

// What a rule depends on besides the types of the tensors that have elements.
Composition composition_of(const Application& application, const RuleValues& values,
                           const std::vector<bool>& wanted) {
  static constexpr char kSelf = 0;
  Composition what(&kSelf);
  what.add(std::bit_cast<uintptr_t>(&application.op));
  const auto add_sizes = [&](std::span<const Dim> sizes) {
    what.add(sizes.size());
    for (const Dim size : sizes) what.add(int64_t{size});
  };
  for (const int64_t word : application.attrs.words()) what.add(word);
  add_sizes(application.attrs.sizes());
  for (const bool each : wanted) what.add(each);
  for (const Tensors* const list : {&values.operands, &values.results, &values.gradients}) {
    for (const Tensor& each : *list) {
      enum { has_elements, is_type, is_nothing };
      what.add(int{!each.has_value() ? is_nothing : is_spec(each) ? is_type : has_elements});
      if (!each.has_value() || !is_spec(each)) continue;
      const TensorType type = type_of(each, application.at);
      what.add(static_cast<int64_t>(type.dtype));
      add_sizes(type.shape);
    }
  }
  return what;
}

// As one program, if it is called often.
Tensors apply_rule_at_once(const Application& application, RuleValues values,
                           const std::vector<bool>& wanted) {
  const Composition what = composition_of(application, values, wanted);
  Tensors tensors;
  values.for_each([&](Tensor& each) { tensors.push_back(each); });
  const auto body = [&](const Tensors& given) {
    RuleValues here = values;
    auto next = given.begin();
    here.for_each([&](Tensor& each) { each = *next++; });
    return apply_rule(application, here, wanted);
  };
  return composed_results(what, tensors, body, application.at);
}

// Below this, a program costs as much as the ops.
constexpr int64_t kLeastElements = 1024;

}  // namespace

std::vector<Tensor> pull_back(const Application& application, std::span<const Tensor> gradients,
                              const std::vector<bool>& wanted) {
  // Memory is charged to the line of the op, not to that of the gradient() call.
  const UserCode user;
  const SourceScope charged(application.at);
  RuleValues values{{application.operands.begin(), application.operands.end()},
                    {application.results.begin(), application.results.end()},
                    {gradients.begin(), gradients.end()}};
  const bool is_large = std::any_of(gradients.begin(), gradients.end(), [](const Tensor& each) {
    return each.has_value() && each.size() >= kLeastElements;
  });
  return application.is_chain && is_large
             ? apply_rule_at_once(application, std::move(values), wanted)
             : apply_rule(application, values, wanted);
}

}  // namespace tidemark::detail

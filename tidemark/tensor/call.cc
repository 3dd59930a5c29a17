#include "tidemark/tensor/call.h"

#include "tidemark/ops/lower.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

PlainNumber number_of(const Operand& operand, Source at) {
  constexpr Weak kinds[] = {Weak::boolean, Weak::integer, Weak::floating, Weak::complex};
  if (operand.tensor() == nullptr)
    return {kinds[operand.kind()], operand.whole(), operand.real(), operand.imag()};
  const TensorState& state = state_of(*operand.tensor(), at);
  if (!state.weak) return {};
  if (state.kind == TensorState::Kind::traced) {
    // A number that is an argument of a traced function: its kind is known, its value is not.
    return {state.array.dtype == DType::boolean ? Weak::boolean
            : state.array.dtype == DType::i32   ? Weak::integer
                                                : Weak::floating,
            0, 0};
  }
  switch (state.array.dtype) {
    case DType::boolean:
      return {Weak::boolean, operand.tensor()->item<int64_t>(), 0};
    case DType::i32:
      return {Weak::integer, operand.tensor()->item<int64_t>(), 0};
    default:
      return {Weak::floating, 0, state.number};
  }
}

uint64_t fitted(const PlainNumber& number, DType dtype, std::string_view op, Source at) {
  const bool real = number.weak == Weak::floating;
  if (!real) check_fits(number.whole, dtype, op, at);
  return number_bits(number.real, number.whole, real, dtype);
}

void check_fits(int64_t number, DType dtype, std::string_view op, Source at) {
  if (fits(number, dtype)) return;
  throw UserError(cat(op, ": ", number, " does not fit ", dtype), at,
                  "cast the tensor to a wider dtype first");
}

PointwiseTypes::PointwiseTypes(const OpCall& call) {
  const size_t count = call.operands.size();
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *call.operands[i];
    numbers[i] = number_of(operand, call.at);
    operands[i].weak = numbers[i].weak;
    if (operand.tensor() == nullptr) continue;
    const ArrayRef& array = state_of(*operand.tensor(), call.at).array;
    operands[i].dtype = array.dtype;
    operands[i].shape = &array.shape;
    broadcast_into(shape, array.shape, call.op.name, call.at);
  }
  type = infer_pointwise(call.op, std::span(operands).first(count), call.at);
}

namespace {

TensorType inferred(const OpCall& call, std::span<const TensorType> operands) {
  TensorType result = call.op.infer({call.op, operands, call.attrs, call.at});
  if (call.op.family == Family::reduce)
    check_has_elements(call.op, operands[0], result, AxisList(call.attrs.read().integers()),
                       call.at);
  return result;
}

std::vector<TensorType> operand_types(const OpCall& call) {
  std::vector<TensorType> types;
  for (const Operand* const operand : call.operands)
    types.push_back(type_of(*operand->tensor(), call.at));
  return types;
}

}  // namespace

TensorType result_type(const OpCall& call) {
  if (call.operands.size() == 1) {
    const TensorType operand = type_of(*call.operands[0]->tensor(), call.at);
    return call.op.family == Family::row ? operand : inferred(call, {&operand, 1});
  }
  if (call.operands.size() == 2) {
    const TensorType operands[] = {type_of(*call.operands[0]->tensor(), call.at),
                                   type_of(*call.operands[1]->tensor(), call.at)};
    return inferred(call, operands);
  }
  return inferred(call, operand_types(call));
}

std::vector<TensorType> result_types(const OpCall& call) {
  return infer_results({call.op, operand_types(call), call.attrs, call.at});
}

}  // namespace tidemark::detail

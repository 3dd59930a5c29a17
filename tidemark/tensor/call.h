// A call of an op, before it is dispatched to eager code, a tape or a trace; and its types.
// Internal to the library.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

struct OpCall {
  const OpDef& op;
  // Only pointwise ops take plain numbers beside tensors; the operands of other ops are tensors
  // already promoted. The op may run in place of an rvalue operand.
  std::span<const Operand* const> operands;
  const Attrs& attrs;
  Source at;
};

// Whether it is a pointwise op other than a cast.
inline bool is_pointwise(const OpDef& op) {
  return op.family == Family::pointwise && op.value != nullptr;
}

// A number as it was passed: a plain C++ number, or a tensor that holds one.
struct PlainNumber {
  Weak weak = Weak::no;  // `no`: the operand is a tensor of a dtype.
  int64_t whole = 0;
  double real = 0, imag = 0;
};
PlainNumber number_of(const Operand& operand, Source at);
// The number converted to a dtype, or a UserError if it does not fit.
uint64_t fitted(const PlainNumber& number, DType dtype, std::string_view op, Source at);
// A UserError if a whole number does not fit the dtype that the op computes in.
void check_fits(int64_t number, DType dtype, std::string_view op, Source at);

// The types of a pointwise call: the operands, the dtype each is computed in, and the result.
struct PointwiseTypes {
  explicit PointwiseTypes(const OpCall& call);

  std::array<OperandType, 3> operands;
  std::array<PlainNumber, 3> numbers;
  Shape shape;  // Of the result.
  PointwiseType type;

  TensorType result() const { return {type.result, shape}; }
  // Whether an operand is a tensor that needs no conversion.
  bool is_as_computed(size_t operand) const {
    return operands[operand].weak == Weak::no && operands[operand].dtype == type.compute[operand];
  }
};

// The result type of any other call.
TensorType result_type(const OpCall& call);
// The types of all results.
std::vector<TensorType> result_types(const OpCall& call);

}  // namespace tidemark::detail

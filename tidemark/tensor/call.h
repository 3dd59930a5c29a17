// A call of an op before anybody has decided who carries it out, and what its types are. Internal
// to the library.
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
  // Plain numbers stand beside tensors in pointwise ops alone; elsewhere operands are tensors of
  // the dtypes the op wants. A dying one gives its bytes to the result where the op can work in
  // their place.
  std::span<const Operand* const> operands;
  const Attrs& attrs;
  Source at;
};

// Ops of the family that compute elements; casts convert them.
inline bool is_pointwise(const OpDef& op) {
  return op.family == Family::pointwise && op.value != nullptr;
}

// A number as it came: from a plain C++ number, or from a tensor that holds one.
struct PlainNumber {
  Weak weak = Weak::no;  // `no`: the operand is a tensor of a dtype.
  int64_t whole = 0;
  double real = 0;
};
PlainNumber number_of(const Operand& operand, Source at);
// The number in the dtype it meets, or a UserError where it does not fit.
uint64_t fitted(const PlainNumber& number, DType dtype, std::string_view op, Source at);
// A UserError where a whole number does not fit the dtype it meets in an op.
void check_fits(int64_t number, DType dtype, std::string_view op, Source at);

// The operands of a pointwise call, what each is computed in, and the result.
struct PointwiseTypes {
  explicit PointwiseTypes(const OpCall& call);

  std::array<OperandType, 3> operands;
  std::array<PlainNumber, 3> numbers;
  Shape shape;  // Of the result.
  PointwiseType type;

  TensorType result() const { return {type.result, shape}; }
  // Whether an operand is a tensor of the dtype it is computed in.
  bool is_as_computed(size_t operand) const {
    return operands[operand].weak == Weak::no && operands[operand].dtype == type.compute[operand];
  }
};

// The type of the result of any other call that has one.
TensorType result_type(const OpCall& call);
// Of all results of an op that may have several.
std::vector<TensorType> result_types(const OpCall& call);

}  // namespace tidemark::detail

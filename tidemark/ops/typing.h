// Type promotion and broadcasting; docs/semantics.md describes the rules.
#pragma once

#include <span>
#include <string>

#include "tidemark/ops/op_def.h"

namespace tidemark {

// A plain number has a kind but no width: it takes the dtype of the tensor it is combined with.
enum class Weak : uint8_t { no, boolean, integer, floating, complex };

struct OperandType {
  DType dtype = DType::f32;
  Weak weak = Weak::no;
  const Shape* shape = nullptr;  // Null for a number.
};

// The dtype of a plain number without a tensor: bool, i32, f32, c64.
DType default_dtype(Weak weak);

// The common dtype of two tensors. An integer and a float have the float's dtype; a complex number
// has the parts that both need.
DType promote(DType a, DType b);
// The same for any mixture of tensors and plain numbers.
DType promote(std::span<const OperandType> operands);

// The dtype in which the op computes if its operands have the dtype `common`.
DType admit(const OpDef& op, DType common, Source at);

// Throws a UserError: the op does not take complex numbers.
[[noreturn]] void refuse_complex(OnComplex how, std::string_view op, Source at);

// The shape both broadcast to. Throws a UserError that names the op and both shapes.
void broadcast_into(Shape& result, const Shape& operand, std::string_view op, Source at);

// The axis as a number from 0 up, or a UserError: "softmax: f32[2, 3] has no axis 5".
int64_t plain_axis(int64_t axis, int64_t rank, std::string_view op, const TensorType& type,
                   Source at);
// The axes, sorted and unique; every axis if the list is empty.
AxisList plain_axes(const Axes& axes, std::string_view op, const TensorType& type, Source at);

// A UserError if a reduction such as max, which selects an element, has no elements.
void check_has_elements(const OpDef& op, const TensorType& operand, const TensorType& result,
                        std::span<const int64_t> axes, Source at);

// The dtypes of a pointwise op: those it computes in, and the result's.
struct PointwiseType {
  std::array<DType, 3> compute = {};  // Of each operand.
  DType result = DType::f32;
};
// `op` is an op of the catalogue.
PointwiseType infer_pointwise(const OpDef& op, std::span<const OperandType> operands, Source at);
// Whether the op's first operand is a condition, which keeps its own dtype.
bool has_condition(const OpDef& op);
// Whether the op computes in this dtype without promoting it.
bool computes_in(const OpDef& op, DType dtype);

// The dtype in which a dtype is computed: f32 for the 16-bit floats.
constexpr DType compute_dtype(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

// Whether two types are compatible: the same dtype, and equal sizes as far as they are known.
bool fits(const TensorType& a, const TensorType& b);

}  // namespace tidemark

// bind: the single path from a call to an op. Internal to the library.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "tidemark/tensor/interpreter.h"

namespace tidemark::detail {

// Runs the op by the interpreter of this thread (interpreter.h) and returns its result.
Tensor bind_op(const OpCall& call);
Tensor bind_op(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at);
// The same for an op with several results: at least those whose bit is set in `wanted`; the others
// are empty.
Tensors bind_results(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                     uint32_t wanted, Source at);
// The same for an op whose result has the type of its first operand: in place if that operand is an
// rvalue and not shared.
Tensor bind_onto(const OpDef& op, const Operand& first, std::span<const Tensor> rest,
                 const Attrs& attrs, Source at);

// The operand as a tensor: a plain number becomes one of its default dtype, or of `dtype`.
Tensor tensor_of(const Operand& operand, Source at, std::optional<DType> dtype = {});
Tensor cast_to(const Operand& x, DType dtype, Source at);
Tensor dense(const Tensor& tensor, Source at);
// A tensor of rank 0: `real` if the dtype is a float, else `whole`.
Tensor literal(DType dtype, double real, int64_t whole, Source at);
// The open size that the operand holds, if a Dim was passed as a number.
std::optional<Dim> open_size_of(const Operand& operand);

// A tensor of the same value with its own identity for tapes, so that f(x, x) has two gradients.
Tensor apart(const Tensor& tensor, Source at);
// A handle that a tape inside a function may watch without also watching the caller's tensor: a new
// handle of the same bytes if this one is shared.
Tensor own_handle(Tensor tensor, Source at);

// Calls f on the operands as a unit, for composites. In eager code a tape stores only the operands
// and runs f again for the gradient, so f must be deterministic. The call and its gradient run as
// programs where `composed` does so; `what` and f are as there. A trace contains f's ops, and the
// plan decides what to store. In both, the contributions of f to the gradient of the first operand
// are added up first, so that the bits are the same.
Tensor as_one_op(const Composition& what, Tensors operands,
                 const std::function<Tensor(const Tensors&)>& f, Source at);

}  // namespace tidemark::detail

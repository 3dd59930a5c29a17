// The one way from a call to an op. Internal to the library.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "tidemark/tensor/interpreter.h"

namespace tidemark::detail {

// The result, of whoever interprets the calls of this thread.
Tensor bind_op(const OpCall& call);
Tensor bind_op(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at);
// Of an op with several results: those whose bits `wanted` has, or more; the others are nothing.
Tensors bind_results(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                     uint32_t wanted, Source at);
// Of an op whose result has the type of its first operand: in place where that one is dying and
// nobody else holds it.
Tensor bind_onto(const OpDef& op, const Operand& first, std::span<const Tensor> rest,
                 const Attrs& attrs, Source at);

// The operand as a tensor: a plain number becomes one of its default dtype, or of `dtype`.
Tensor tensor_of(const Operand& operand, Source at, std::optional<DType> dtype = {});
Tensor cast_to(const Operand& x, DType dtype, Source at);
Tensor dense(const Tensor& tensor, Source at);
// One number of rank 0. `real` counts where the dtype is a float, else `whole`.
Tensor literal(DType dtype, double real, int64_t whole, Source at);
// The size that such an operand is (an open Dim given as a number), if it is one.
std::optional<Dim> open_size_of(const Operand& operand);

// A tensor of the same value that tapes know by itself, so that f(x, x) has two gradients.
Tensor apart(const Tensor& tensor, Source at);
// An eager tensor that a tape inside a function may watch without watching what its caller holds:
// another handle of the same bytes where somebody else has this one.
Tensor own_handle(Tensor tensor, Source at);

// f of the operands, for composites that tapes take for one op. Of it a tape in eager code keeps
// the operands alone, and runs it again for the gradient; f must give the same each time. A trace
// has f's ops: there the plan decides what stays. In both, the gradients that f gives the first
// operand are added to each other first, so that the bits are the same.
Tensor as_one_op(Tensors operands, const std::function<Tensor(const Tensors&)>& f, Source at);

}  // namespace tidemark::detail

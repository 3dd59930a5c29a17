#include "tidemark/tensor/eager.h"

#include <array>
#include <vector>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/effects.h"
#include "tidemark/compile/cpu/library_ops.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/reuse.h"
#include "tidemark/tensor/tiny.h"

namespace tidemark::detail {
namespace {

const ArrayRef& array_of(const OpCall& call, size_t operand) {
  return detail::array_of(*call.operands[operand]->tensor(), call.at);
}

Tensor run_pointwise(const OpCall& call) {
  if (Tensor tiny; run_tiny(call, tiny)) return tiny;
  const SourceScope scope(call.at);     // Scratch is charged to the line too.
  const device::FloatEnvironment ieee;  // Numbers are rounded to their dtype here.
  const PointwiseTypes types(call);
  const size_t count = call.operands.size();
  std::array<ArrayRef, 3> arrays;
  std::array<compile::Input, 3> inputs;
  for (size_t i = 0; i < count; ++i) {
    if (types.numbers[i].weak != Weak::no) {
      inputs[i].number = fitted(types.numbers[i], types.type.compute[i], call.op.name, call.at);
    } else {
      arrays[i] = compile::stretched(array_of(call, i), types.shape);
      inputs[i].array = &arrays[i];
    }
  }
  const DType dtype = types.type.result;
  const auto run = [&](const ArrayRef& place) {
    compile::run_pointwise(call.op, std::span(inputs).first(count), types.type, place);
  };
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *call.operands[i];
    if (types.numbers[i].weak != Weak::no || !can_take(operand, dtype, types.shape)) continue;
    run(place_of(operand, dtype));
    return take_over(operand, dtype, call.at);
  }
  Tensor result = make_tensor(dtype, types.shape, call.at);
  run(TensorState::of(result)->array);
  return result;
}

// An op of one operand, in place if that operand is an rvalue.
template <class Run>
Tensor run_in_place_or_beside(const OpCall& call, DType dtype, const Shape& shape, const Run& run) {
  const Operand& operand = *call.operands[0];
  if (can_take(operand, dtype, shape)) {
    run(place_of(operand, dtype));
    return take_over(operand, dtype, call.at);
  }
  Tensor result = make_tensor(dtype, shape, call.at);
  run(TensorState::of(result)->array);
  return result;
}

Tensor run_cast(const OpCall& call) {
  const ArrayRef array = array_of(call, 0);
  return run_in_place_or_beside(call, call.attrs.read().dtype(), array.shape,
                                [&](const ArrayRef& place) { compile::run_copy(array, place); });
}

Tensor run_row(const OpCall& call) {
  const ArrayRef array = array_of(call, 0);
  const int64_t axis = call.attrs.read().integer();
  return run_in_place_or_beside(call, array.dtype, array.shape, [&](const ArrayRef& place) {
    compile::run_row(call.op, array, axis, place);
  });
}

Tensor run_reduce(const OpCall& call) {
  const TensorType wanted = result_type(call);
  Tensor result = make_tensor(wanted.dtype, wanted.shape, call.at);
  compile::run_reduce(call.op, array_of(call, 0), AxisList(call.attrs.read().integers()),
                      TensorState::of(result)->array);
  return result;
}

// A view if the strides allow it, else a view of a dense copy.
Tensor run_view(const OpCall& call) {
  const Tensor& operand = *call.operands[0]->tensor();
  TensorType wanted = result_type(call);
  ArrayRef seen;
  seen.dtype = wanted.dtype;
  seen.shape = std::move(wanted.shape);
  if (call.op.view(array_of(call, 0), call.attrs, seen)) return make_view(operand, seen, call.at);
  const Tensor dense = packed(operand, call.at);
  TIDEMARK_CHECK(call.op.view(detail::array_of(dense, call.at), call.attrs, seen), call.op.name,
                 " of a dense tensor is a view");
  return make_view(dense, seen, call.at);
}

// The memory of the operands; a few of them need no heap.
class OperandArrays {
 public:
  explicit OperandArrays(const OpCall& call) : count_(call.operands.size()) {
    if (count_ > few_.size()) many_.resize(count_);
    ArrayRef* const to = many_.empty() ? few_.data() : many_.data();
    for (size_t i = 0; i < count_; ++i) to[i] = array_of(call, i);
  }
  std::span<const ArrayRef> list() const {
    return {many_.empty() ? few_.data() : many_.data(), count_};
  }

 private:
  size_t count_;
  std::array<ArrayRef, 3> few_;
  std::vector<ArrayRef> many_;
};

// Anything else: concat, pad, gather, matmul, ...
Tensor run_library(const OpCall& call) {
  const TensorType wanted = result_type(call);
  const OperandArrays arrays(call);
  const device::FloatEnvironment ieee;
  const auto run = [&](const ArrayRef& place) {
    compile::run_library(call.op, arrays.list(), call.attrs, {&place, 1}, call.at);
  };
  if (call.op.updates_first && can_take(*call.operands[0], wanted.dtype, wanted.shape)) {
    run(arrays.list()[0]);
    return take_over(*call.operands[0], wanted.dtype, call.at);
  }
  Tensor result = make_tensor(wanted.dtype, wanted.shape, call.at);
  run(TensorState::of(result)->array);
  return result;
}

// A copy there; of a tensor that lies there already, the tensor itself.
Tensor run_transfer(const OpCall& call) {
  const Tensor& operand = *call.operands[0]->tensor();
  const int32_t memory = call.operands.size() == 1
                             ? static_cast<int32_t>(call.attrs.read().integer())
                             : state_of(*call.operands[1]->tensor(), call.at).memory();
  if (state_of(operand, call.at).memory() == memory) return operand;
  return copied_to(operand, memory, call.at);
}

void run_effect(const OpCall& call) {
  compile::run_effect(call.op, OperandArrays(call).list(), call.attrs, call.at);
}

}  // namespace

Tensor run_now(const OpCall& call) {
  if (is_pointwise(call.op)) return run_pointwise(call);
  if (call.op.view != nullptr) return run_view(call);
  const SourceScope scope(call.at);
  switch (call.op.family) {
    case Family::reduce:
      return run_reduce(call);
    case Family::row:
      return run_row(call);
    case Family::effect:
      run_effect(call);
      return {};
    default:
      if (call.op.transfers) return run_transfer(call);
      return call.op.is_cast() ? run_cast(call) : run_library(call);
  }
}

std::vector<Tensor> run_results_now(const OpCall& call, uint32_t wanted) {
  const SourceScope scope(call.at);
  const std::vector<TensorType> types = result_types(call);
  const OperandArrays arrays(call);
  std::vector<Tensor> results(types.size());
  std::vector<ArrayRef> places;
  for (size_t r = 0; r < types.size(); ++r) {
    const bool is_wanted = (wanted >> r & 1) != 0;
    if (is_wanted) results[r] = make_tensor(types[r].dtype, types[r].shape, call.at);
    places.push_back(is_wanted ? TensorState::of(results[r])->array
                               : ArrayRef{.dtype = types[r].dtype,
                                          .shape = types[r].shape,
                                          .strides = contiguous_strides(types[r].shape)});
  }
  const device::FloatEnvironment ieee;
  compile::run_library(call.op, arrays.list(), call.attrs, places, call.at);
  return results;
}

}  // namespace tidemark::detail

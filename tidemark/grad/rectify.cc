// leaky_relu, whose gradient needs no more of its operand than the signs.
#include "tidemark/calls/ops.h"
#include "tidemark/grad/custom_gradient.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/interpreter.h"

namespace tidemark {
namespace {

using detail::Composition;
using detail::tensor_of;
using detail::Tensors;

// A trace has the ops themselves, and the plan decides what to store. A tape in eager code stores
// the mask, a quarter of the bytes of f32, and the forward and the backward call are one program
// each. The gradient is added up as the ops would add it.
Tensor recorded(const Tensor& x, double slope, Source at) {
  const auto leak = [=](const Tensors& inputs) {
    static constexpr char kSelf = 0;
    const auto run = [=](const Tensors& given) {
      const Tensor keeps = given[0] >= 0;
      return Tensors{keeps, where(keeps, given[0], given[0] * slope)};
    };
    const detail::NoTape unseen;
    const Tensors made = composed_results(Composition(&kSelf).add(slope), {inputs[0]}, run, at);
    const auto pullback = [=](const Tensors& gradients) {
      static constexpr char kGradient = 0;
      const SourceScope scope(at);
      const auto back = [=](const Tensors& given) {
        const Tensor &keeps = given[0], &g = given[1];
        return where(keeps, g, 0) + where(keeps, 0, g) * slope;
      };
      return detail::OwnGradients{
          {composed(Composition(&kGradient).add(slope), {made[0], gradients[0]}, back, at)}, {}};
    };
    return detail::OwnResults{{made[1]}, pullback, {made[0]}};
  };
  return detail::run_custom({x}, leak, at)[0];
}

}  // namespace

Tensor leaky_relu(const Operand& x, double slope, Source at) {
  static constexpr char kSelf = 0;
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  if (is_float(given.dtype()) && !detail::tracing() && detail::is_observed({&given}))
    return recorded(given, slope, at);
  const auto run = [&](const Tensors& operands) {
    const Tensor& tensor = operands[0];
    const Tensor real = is_differentiable(tensor.dtype()) ? tensor : cast(tensor, DType::f32);
    return where(real >= 0, real, real * slope);
  };
  return detail::composed(Composition(&kSelf).add(slope), {given}, run, at);
}

}  // namespace tidemark

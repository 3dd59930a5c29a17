#include "tidemark/tensor/bind.h"

#include <array>
#include <cstring>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/eager.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace detail {

Tensor bind_op(const OpCall& call) {
  if (takes_complex(call) && !knows_complex(call.op)) [[unlikely]]
    return complex_call(call);
  const Interpreters& now = interpreters;
  if (now.tracer != nullptr) return now.tracer->bind(call);
  if (now.recorder != nullptr) return now.recorder->bind(call);
  return run_now(call);
}

namespace {

// The operands of a call, from tensors.
class Operands {
 public:
  Operands(std::span<const Tensor> tensors, Source at) {
    held_.reserve(tensors.size());
    for (const Tensor& tensor : tensors) held_.emplace_back(tensor, at);
    for (const Operand& operand : held_) list_.push_back(&operand);
  }
  std::span<const Operand* const> list() const { return list_; }

 private:
  std::vector<Operand> held_;
  SmallVec<const Operand*, 4> list_;
};

}  // namespace

Tensor bind_op(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at) {
  if (operands.size() == 1) {
    const Operand only(operands[0], at);
    const Operand* const list[] = {&only};
    return bind_op({op, list, attrs, at});
  }
  if (operands.size() == 2) {
    const Operand a(operands[0], at), b(operands[1], at);
    const Operand* const list[] = {&a, &b};
    return bind_op({op, list, attrs, at});
  }
  const Operands all(operands, at);
  return bind_op({op, all.list(), attrs, at});
}

Tensors bind_results(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                     uint32_t wanted, Source at) {
  const Operands all(operands, at);
  const OpCall call{op, all.list(), attrs, at};
  if (takes_complex(call)) refuse_complex(op.on_complex, op.name, at);
  const Interpreters& now = interpreters;
  if (now.tracer != nullptr) return now.tracer->bind_results(call, wanted);
  if (now.recorder != nullptr) return now.recorder->bind_results(call, wanted);
  return run_results_now(call, wanted);
}

Tensor bind_onto(const OpDef& op, const Operand& first, std::span<const Tensor> rest,
                 const Attrs& attrs, Source at) {
  const bool is_tensor = number_of(first, at).weak == Weak::no;
  const Tensor made = is_tensor ? Tensor() : tensor_of(first, at);
  const Operand strong(made, at);
  const Operands others(rest, at);
  SmallVec<const Operand*, 4> list = {is_tensor ? &first : &strong};
  for (const Operand* const each : others.list()) list.push_back(each);
  return bind_op({op, list, attrs, at});
}

Tensor cast_to(const Operand& x, DType dtype, Source at) {
  const SourceScope scope(at);
  if (is_complex(dtype) || is_complex(x)) return complex_cast(x, dtype, at);
  if (x.tensor() == nullptr) return tensor_of(x, at, dtype);
  const TensorState& state = state_of(*x.tensor(), at);
  if (state.weak) return tensor_of(x, at, dtype);
  if (state.array.dtype == dtype) return *x.tensor();
  const Operand* const list[] = {&x};
  Attrs attrs;
  attrs.add(dtype);
  return bind_op({def_of(&ops::cast), list, attrs, at});
}

Tensor tensor_of(const Operand& operand, Source at, std::optional<DType> dtype) {
  const PlainNumber number = number_of(operand, at);
  if (number.weak == Weak::no)
    return !dtype || operand.tensor()->dtype() == *dtype ? *operand.tensor()
                                                         : cast_to(operand, *dtype, at);
  const DType wanted = dtype.value_or(default_dtype(number.weak));
  if (number.weak == Weak::complex || is_complex(wanted)) return complex_cast(operand, wanted, at);
  const device::FloatEnvironment ieee;
  if (tracing()) {
    Tensor traced = interpreters.tracer->number(operand, number, wanted, at);
    if (traced.has_value()) return traced;
  }
  Tensor result = make_tensor(wanted, {}, at);
  if (number.weak == Weak::floating && !is_float(wanted)) {
    visit_dtype(wanted, [&](auto value) {
      using T = decltype(value);
      if constexpr (std::is_arithmetic_v<T>) {
        value = converted<T>(number.real);
        std::memcpy(TensorState::of(result)->array.data, &value, sizeof(value));
      }
    });
    return result;
  }
  compile::run_fill(fitted(number, wanted, "constant", at), TensorState::of(result)->array);
  return result;
}

Tensor dense(const Tensor& tensor, Source at) {
  if (tracing()) return tensor;
  if (!array_of(tensor, at).is_contiguous() && is_watched({&tensor})) return identity(tensor, at);
  return packed(tensor, at);
}

Tensor literal(DType dtype, double real, int64_t whole, Source at) {
  if (is_complex(dtype))
    return complex_cast(literal(part_dtype(dtype), real, whole, at), dtype, at);
  if (tracing()) return interpreters.tracer->constant(dtype, real, whole, at);
  Tensor made = make_tensor(dtype, {}, at);
  compile::run_fill(number_bits(real, whole, is_float(dtype), dtype), TensorState::of(made)->array);
  return made;
}

std::optional<Dim> open_size_of(const Operand& operand) {
  if (operand.tensor() == nullptr || !tracing()) return {};
  const TensorState* const state = TensorState::of(*operand.tensor());
  if (state == nullptr || state->kind != TensorState::Kind::traced || state->scope->ended)
    return {};
  return interpreters.tracer->open_size(*state);
}

Tensor size_number(Dim size, Source at) {
  TIDEMARK_CHECK(tracing(), "an open size became a number outside of a trace");
  return interpreters.tracer->size_number(size, at);
}

Tensor apart(const Tensor& tensor, Source at) {
  const Tensor strong = tensor_of(tensor, at);
  return bind_op(def_of(&ops::reshape), {&strong, 1}, Attrs().add(type_of(strong, at).shape), at);
}

Tensor own_handle(Tensor tensor, Source at) {
  const TensorState& state = *TensorState::of(tensor);
  const bool shared = state.references.load(std::memory_order_relaxed) > 1;
  if (!shared || state.weak || !is_differentiable(state.array.dtype)) return tensor;
  return apart(tensor, at);
}

Tensor as_one_op(const Composition& what, Tensors operands,
                 const std::function<Tensor(const Tensors&)>& f, Source at) {
  const Interpreters& now = interpreters;
  if (now.tracer != nullptr) return now.tracer->as_one_op(what, std::move(operands), f, at);
  if (now.recorder != nullptr) return now.recorder->as_one_op(what, std::move(operands), f, at);
  return composed(what, std::move(operands), f, at);
}

namespace {

Tensor bind_pointwise(const OpDef& op, std::initializer_list<const Operand*> operands, Source at) {
  const Attrs none;
  return bind_op({op, {operands.begin(), operands.size()}, none, at});
}

}  // namespace
}  // namespace detail

// ---- the call operators of the families ---------------------------------------------------------

Tensor UnaryOp::operator()(const Operand& x, Source at) const {
  return detail::bind_pointwise(def_of(this), {&x}, at);
}

Tensor BinaryOp::operator()(const Operand& a, const Operand& b, Source at) const {
  return detail::bind_pointwise(def_of(this), {&a, &b}, at);
}

Tensor TernaryOp::operator()(const Operand& a, const Operand& b, const Operand& c,
                             Source at) const {
  return detail::bind_pointwise(def_of(this), {&a, &b, &c}, at);
}

Tensor ReduceOp::operator()(const Operand& x, const Axes& axes, Keep keep, Source at) const {
  const bool is_tensor = x.tensor() != nullptr && !detail::state_of(*x.tensor(), at).weak;
  const Tensor made = is_tensor ? Tensor() : detail::tensor_of(x, at);
  const Tensor& operand = is_tensor ? *x.tensor() : made;
  const TensorType type = detail::type_of(operand, at);
  const AxisList list = plain_axes(axes, name, type, at);
  if (gives_index && list.size() != 1 && !axes.every()) {
    throw UserError(cat(name, ": takes one axis or none, got ", list.size()), at,
                    "reshape the axes into one first");
  }
  return detail::bind_op(def_of(this), {&operand, 1}, Attrs().add(list).add(keep == Keep::yes), at);
}

Tensor RowOp::operator()(const Operand& x, int64_t axis, Source at) const {
  const SourceScope scope(at);
  const OpDef& op = def_of(this);
  Tensor operand = detail::tensor_of(x, at);
  const TensorType type = detail::type_of(operand, at);
  Attrs attrs;
  attrs.add(plain_axis(axis, type.shape.rank(), name, type, at));
  const DType wanted = admit(op, type.dtype, at);  // Refuses complex numbers.
  const bool as_it_is = wanted == type.dtype && detail::number_of(x, at).weak == Weak::no;
  if (!as_it_is) {
    operand = detail::cast_to(operand, wanted, at);
    return detail::bind_op(op, {&operand, 1}, attrs, at);
  }
  operand = {};  // An rvalue handle must be the only one, to be used in place.
  const Operand* const list[] = {&x};
  return detail::bind_op({op, list, attrs, at});
}

}  // namespace tidemark

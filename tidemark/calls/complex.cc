#include "tidemark/calls/complex.h"

#include <numbers>
#include "tidemark/calls/create.h"

#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/direct.h"

namespace tidemark {
namespace {

using detail::tensor_of;

// The dtype of the parts of a complex number made of two real ones.
DType part_of_two(const Operand& a, const Operand& b, std::string_view name, Source at) {
  OperandType types[2];
  const Operand* const list[] = {&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    if (detail::is_complex(*list[i]))
      throw UserError(cat(name, ": takes real numbers, got complex ones"), at,
                      "take their parts: td::real(z), td::imag(z)");
    types[i].weak = detail::number_of(*list[i], at).weak;
    if (list[i]->tensor() != nullptr) types[i].dtype = list[i]->tensor()->dtype();
  }
  return part_dtype(complex_dtype(promote(types)));
}

}  // namespace

Tensor complex(const Operand& re, const Operand& im, Source at) {
  const SourceScope scope(at);
  const DType part = part_of_two(re, im, "complex", at);
  return detail::joined({tensor_of(re, at, part), tensor_of(im, at, part)}, at);
}

Tensor polar(const Operand& size, const Operand& angle, Source at) {
  const SourceScope scope(at);
  const DType part = part_of_two(size, angle, "polar", at);
  const Tensor length = tensor_of(size, at, part), turn = tensor_of(angle, at, part);
  return detail::joined({multiply(length, cos(turn)), multiply(length, sin(turn))}, at);
}

Tensor real(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(z, at);
  return is_complex(tensor.dtype()) ? detail::parts_of(tensor, part_dtype(tensor.dtype()), at).re
                                    : tensor;
}

Tensor imag(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(z, at);
  return is_complex(tensor.dtype()) ? detail::parts_of(tensor, part_dtype(tensor.dtype()), at).im
                                    : zeros_like(tensor, at);
}

Tensor conj(const Operand& z, Source at) {
  const SourceScope scope(at);
  Tensor tensor = tensor_of(z, at);
  if (!is_complex(tensor.dtype())) return tensor;
  if (auto made = detail::conjugates(tensor, at)) return *std::move(made);
  const detail::Parts parts = detail::parts_of(tensor, part_dtype(tensor.dtype()), at);
  return detail::joined({parts.re, negative(parts.im)}, at);
}

Tensor angle(const Operand& z, Source at) {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(z, at);
  if (is_complex(tensor.dtype())) {
    const detail::Parts parts = detail::parts_of(tensor, part_dtype(tensor.dtype()), at);
    return atan2(parts.im, parts.re);
  }
  const DType dtype = is_float(tensor.dtype()) ? tensor.dtype() : DType::f32;
  const Tensor number = cast(tensor, dtype, at);
  const Tensor turn = where(less(number, 0.0), std::numbers::pi, 0.0);
  return where(isnan(number), number, cast(turn, dtype, at));
}

Tensor view_as_real(const Operand& z, Source at) {
  return detail::view_as_real(tensor_of(z, at), at);
}

Tensor view_as_complex(const Operand& pairs, Source at) {
  return detail::view_as_complex(tensor_of(pairs, at), at);
}

}  // namespace tidemark

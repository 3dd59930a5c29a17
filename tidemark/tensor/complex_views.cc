// Complex tensors as pairs of reals: the views and copies that make them, and casts.
#include "tidemark/tensor/complex_parts.h"

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"

namespace tidemark::detail {

Tensor bind_one(const NamedOp& op, const Tensor& x, const Attrs& attrs, Source at) {
  return bind_op(def_of(&op), {&x, 1}, attrs, at);
}

namespace {

Tensor reshaped(const Tensor& x, const Shape& shape, Source at) {
  return bind_one(ops::reshape, x, Attrs().add(shape), at);
}

}  // namespace

Tensor with_last_axis(const Tensor& x, Source at) {
  Shape shape = x.shape();
  shape.push_back(1);
  return reshaped(x, shape, at);
}

Tensor range_of(const Tensor& x, int64_t axis, int64_t begin, Dim count, Source at) {
  DimList begins(static_cast<size_t>(x.rank()), 0);
  begins[static_cast<size_t>(axis)] = begin;
  Shape sizes = x.shape();
  sizes.set(axis, count);
  return bind_one(ops::slice, x, Attrs().add(begins).add(sizes).add(AxisList(begins.size(), 1)),
                  at);
}

Tensor without_axis(const Tensor& x, int64_t axis, Source at) {
  Shape shape = x.shape();
  shape.erase(axis);
  return reshaped(x, shape, at);
}

Tensor concat_along(std::span<const Tensor> list, int64_t axis, Source at) {
  return bind_op(def_of(&ops::concat), list, Attrs().add(axis), at);
}

Tensor broadcast(const Tensor& x, const Shape& shape, Source at) {
  return x.shape() == shape ? x : bind_one(ops::broadcast_to, x, Attrs().add(shape), at);
}

Parts halves_of(const Tensor& pairs, Source at) {
  const int64_t last = pairs.rank() - 1;
  return {without_axis(range_of(pairs, last, 0, 1, at), last, at),
          without_axis(range_of(pairs, last, 1, 1, at), last, at)};
}

Tensor view_as_real(const Tensor& z, Source at) { return bind_one(ops::view_as_real, z, {}, at); }

Tensor view_as_complex(const Tensor& pairs, Source at) {
  return bind_one(ops::view_as_complex, pairs, {}, at);
}

Parts parts_of(const Operand& x, DType part, Source at) {
  const PlainNumber number = number_of(x, at);
  if (number.weak == Weak::complex)
    return {literal(part, number.real, 0, at), literal(part, number.imag, 0, at)};
  if (!is_complex(x)) return {tensor_of(x, at, part), {}};
  return halves_of(cast_to(view_as_real(*x.tensor(), at), part, at), at);
}

Tensor joined(const Parts& parts, Source at) {
  Shape shape = parts.re.shape();
  broadcast_into(shape, parts.im.shape(), "complex", at);
  const Tensor list[] = {with_last_axis(broadcast(parts.re, shape, at), at),
                         with_last_axis(broadcast(parts.im, shape, at), at)};
  return view_as_complex(concat_along(list, shape.rank(), at), at);
}

Tensor pairs_of(const Operand& x, DType part, Source at) {
  if (is_complex(x) && x.tensor() != nullptr)
    return cast_to(view_as_real(*x.tensor(), at), part, at);
  return view_as_real(complex_cast(x, complex_dtype(part), at), at);
}

Tensor complex_cast(const Operand& x, DType dtype, Source at) {
  const SourceScope scope(at);
  const bool is_tensor = is_complex(x) && x.tensor() != nullptr;
  const DType own = is_tensor ? x.tensor()->dtype() : DType::c128;
  if (dtype == DType::boolean) return any(not_equal(pairs_of(x, part_dtype(own), at), 0.0), -1);
  if (!tidemark::is_complex(dtype))
    throw UserError(cat("cast: complex numbers in ", dtype, " would lose their imaginary parts"),
                    at, "take one of their parts: td::real(z), td::imag(z), td::abs(z)");
  const DType part = part_dtype(dtype);
  if (is_tensor && own == dtype) return *x.tensor();
  if (is_tensor) return view_as_complex(pairs_of(x, part, at), at);
  Parts parts = parts_of(x, part, at);
  if (!parts.im.has_value()) parts.im = literal(part, 0, 0, at);
  return joined(parts, at);
}

}  // namespace tidemark::detail

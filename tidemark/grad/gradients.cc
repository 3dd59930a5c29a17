#include "tidemark/grad/gradients.h"

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/trace/control_flow.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace detail {

void check_scalar(const Tensor& target, const char* name, Source at) {
  const TensorType type = type_of(target, at);
  if (is_float(type.dtype) && type.shape.rank() == 0) return;
  throw UserError(cat(name, ": the function must return one float, got ", type), at,
                  is_complex(type.dtype) ? "take a real number of it: td::real(y), td::abs(y)"
                  : is_float(type.dtype) ? "reduce it, td::sum(y), or use td::vjp or td::jacobian"
                                         : "cast it to a float dtype");
}

void check_floats(const std::vector<Tensor>& tensors, const char* name, const char* what,
                  Source at) {
  for (const Tensor& tensor : tensors) {
    const TensorType type = type_of(tensor, at);
    if (is_differentiable(type.dtype)) continue;
    throw UserError(cat(name, ": ", what, " must be floats, got ", type), at,
                    "capture other values instead of passing them, and do not return them");
  }
}

}  // namespace detail

namespace {

// In f32 or wider, so that many f16 values do not overflow.
Tensor sum_of_squares(const Tensor& x, Source at) {
  const Tensor wide = is_low_precision(x.dtype()) ? cast(x, DType::f32, at)
                      : is_complex(x.dtype())     ? detail::view_as_real(x, at)
                                                  : x;
  return sum(square(wide, at), {}, Keep::no, at);
}

// Empty tensors do not count.
Tensor norm_of(const std::vector<Tensor>& parts, Source at) {
  Tensor total;
  for (const Tensor& part : parts) {
    if (!part.has_value()) continue;
    const Tensor squares = sum_of_squares(part, at);
    total = total.has_value() ? add(total, squares, at) : squares;
  }
  if (!total.has_value()) return zeros({}, DType::f32, at);
  // The derivative of a square root is infinite at 0; the gradient here is 0.
  const Tensor some = greater(total, 0, at);
  return where(some, sqrt(where(some, total, 1, at), at), 0, at);
}

// The scale factor; 1 if the norm is within the bound.
Tensor scale_for(const Tensor& norm, const Operand& most, Source at) {
  return divide(most, maximum(norm, most, at), at);
}

Tensor scaled(const Tensor& x, const Tensor& scale, Source at) {
  if (!x.has_value()) return x;
  return multiply(x, cast(scale, part_dtype(x.dtype()), at), at);
}

// Merges rows with the same index, as the dense gradient does.
Tensor rows_once(const Gradient& gradient, Source at) {
  const auto& [indices, rows] = gradient.rows(at);
  if (is_less(indices.shape()[0], 2)) return rows;
  const Dim table = gradient.shape()[0];
  // Negative indices count from the end.
  const Tensor plain = where(less(indices, 0, at), add(indices, table, at), indices, at);
  return scatter_add(zeros_like(rows, at), first_equal(plain, at), rows, 0, at);
}

std::vector<Tensor> parts_of(const std::vector<Gradient>& gradients, Source at) {
  std::vector<Tensor> parts;
  for (const Gradient& gradient : gradients)
    parts.push_back(gradient.is_rows() ? rows_once(gradient, at) : gradient.dense(at));
  return parts;
}

}  // namespace

Tensor clip_by_norm(const Operand& x, const Operand& most, Source at) {
  const SourceScope scope(at);
  const Tensor whole = detail::tensor_of(x, at);
  return scaled(whole, scale_for(norm_of({whole}, at), most, at), at);
}

Tensor global_norm(const std::vector<Gradient>& gradients, Source at) {
  const SourceScope scope(at);
  return norm_of(parts_of(gradients, at), at);
}

std::vector<Gradient> clip_by_global_norm(const std::vector<Gradient>& gradients,
                                          const Operand& most, Source at) {
  const SourceScope scope(at);
  const Tensor scale = scale_for(norm_of(parts_of(gradients, at), at), most, at);
  std::vector<Gradient> clipped;
  for (const Gradient& each : gradients) {
    if (each.is_rows())
      clipped.emplace_back(
          RowGradient{each.rows(at).indices, scaled(each.rows(at).rows, scale, at)},
          TensorType{each.dtype(), each.shape()});
    else
      clipped.emplace_back(scaled(each.dense(at), scale, at));
  }
  return clipped;
}

std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& gradients, const Operand& most,
                                        Source at) {
  const SourceScope scope(at);
  const Tensor scale = scale_for(norm_of(gradients, at), most, at);
  std::vector<Tensor> clipped;
  for (const Tensor& each : gradients) clipped.push_back(scaled(each, scale, at));
  return clipped;
}

}  // namespace tidemark

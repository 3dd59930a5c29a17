// Diagonals, grids, differences and comparisons: composites on shapes rather than on layers.
#include <cmath>

#include "tidemark/calls/complex.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/direct.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

// `count` elements from `begin` on along one axis, as a view.
Tensor part_of(const Tensor& x, int64_t axis, Dim begin, Dim count, int64_t step, Source at) {
  Shape sizes = x.shape();
  DimList begins(static_cast<size_t>(sizes.rank()), 0);
  AxisList steps(begins.size(), 1);
  begins[static_cast<size_t>(axis)] = begin;
  steps[static_cast<size_t>(axis)] = step;
  sizes.set(axis, count);
  return bind_op(def_of(&ops::slice), {&x, 1}, Attrs().add(begins).add(sizes).add(steps), at);
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// Half the distance from 1 to the next float, and the least float above 0.
struct Spacing {
  double relative, least;
};
Spacing spacing_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {0x1p-11, 0x1p-24};
    case DType::bf16:
      return {0x1p-8, 0x1p-133};
    case DType::f32:
      return {0x1p-24, 0x1p-149};
    default:
      return {0x1p-53, 0x1p-1074};
  }
}

int64_t axis_of(const Tensor& x, int64_t axis, std::string_view name, Source at) {
  return plain_axis(axis, x.rank(), name, type_of(x, at), at);
}

}  // namespace

Tensor diagonal(const Operand& x, int64_t offset, Source at) {
  const Tensor tensor = tensor_of(x, at);
  if (tensor.rank() < 2)
    throw UserError(cat("diagonal: needs at least two axes, got ", type_of(tensor, at)), at,
                    "td::diag(x) makes a matrix of a vector");
  const SourceScope scope(at);
  const auto rows = int64_t{tensor.shape()[-2]}, columns = int64_t{tensor.shape()[-1]};
  const int64_t count = std::max<int64_t>(
      0, std::min(rows + std::min<int64_t>(offset, 0), columns - std::max<int64_t>(offset, 0)));
  const int64_t begin = offset >= 0 ? offset : -offset * columns;
  Shape flat;
  for (int64_t axis = 0; axis < tensor.rank() - 2; ++axis) flat.push_back(tensor.shape()[axis]);
  flat.push_back(rows * columns);
  return part_of(reshape(tensor, flat), flat.rank() - 1, count == 0 ? 0 : begin, count, columns + 1,
                 at);
}

Tensor diag(const Operand& x, int64_t offset, Source at) {
  const Tensor tensor = tensor_of(x, at);
  if (tensor.rank() == 2) return diagonal(tensor, offset, at);
  if (tensor.rank() != 1)
    throw UserError(cat("diag: needs a vector or a matrix, got ", type_of(tensor, at)), at,
                    "td::diagonal(x) takes the diagonals of the last two axes");
  const SourceScope scope(at);
  const int64_t beside = std::abs(offset);
  if (!detail::is_observed({&tensor})) {
    const int64_t side = tensor.size() + beside;
    if (auto made = detail::on_diagonal(&tensor, tensor.dtype(), {side, side}, offset, at))
      return *std::move(made);
  }
  const Tensor padded = pad(tensor, {{0, beside}}), place = arange(padded.shape()[0]);
  const Tensor row = expand_dims(place, 1), on_diagonal = place - row == offset;
  return where(on_diagonal, offset >= 0 ? expand_dims(padded, 1) : padded, 0);
}

Tensor roll(const Operand& x, int64_t shift, std::optional<int64_t> axis, Source at) {
  const SourceScope scope(at);
  Tensor tensor = tensor_of(x, at);
  if (!axis) return reshape(roll(reshape(tensor, {-1}), shift, 0), tensor.shape());
  const int64_t plain = axis_of(tensor, *axis, "roll", at);
  const auto size = int64_t{tensor.shape()[plain]};
  if (size == 0) return tensor;
  const int64_t front = ((shift % size) + size) % size;
  if (front == 0) return tensor;
  return concat({part_of(tensor, plain, size - front, front, 1, at),
                 part_of(tensor, plain, 0, size - front, 1, at)},
                plain);
}

Tensor roll(const Operand& x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes,
            Source at) {
  const SourceScope scope(at);
  if (shifts.size() != 1 && shifts.size() != axes.size())
    throw UserError(cat("roll: ", shifts.size(), " shifts of ", axes.size(), " axes"), at,
                    "give a shift for each axis, or one for all");
  Tensor rolled = tensor_of(x, at);
  for (size_t i = 0; i < axes.size(); ++i)
    rolled = roll(rolled, shifts[shifts.size() == 1 ? 0 : i], axes[i], at);
  return rolled;
}

std::vector<Tensor> meshgrid(const TensorList& list, MeshgridOptions options, Source at) {
  const SourceScope scope(at);
  const std::span<const Tensor> vectors = list.list();
  Shape grid;
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (vectors[i].rank() != 1)
      throw UserError(
          cat("meshgrid: needs vectors, got ", type_of(vectors[i], at), " as number ", i), at,
          "flatten it: td::reshape(x, {-1})");
    grid.push_back(vectors[i].shape()[0]);
  }
  const bool exchanged = options.indexing == Indexing::xy && vectors.size() >= 2;
  if (exchanged) {
    const Dim first = grid[0];
    grid.set(0, grid[1]);
    grid.set(1, first);
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const size_t axis = exchanged && i < 2 ? 1 - i : i;
    Shape own;
    for (size_t j = 0; j < vectors.size(); ++j)
      own.push_back(j == axis ? vectors[i].shape()[0] : Dim(1));
    results.push_back(broadcast_to(reshape(vectors[i], own), grid));
  }
  return results;
}

Tensor diff(const Operand& x, int64_t n, int64_t axis, Source at) {
  const SourceScope scope(at);
  if (n < 0)
    throw UserError(cat("diff: n must not be negative, got ", n), at,
                    "it is how often differences are taken");
  Tensor result = tensor_of(x, at);
  const int64_t plain = axis_of(result, axis, "diff", at);
  for (int64_t i = 0; i < n; ++i) {
    const Dim size = result.shape()[plain];
    const Dim left = is_less(0, size) ? size - 1 : Dim(0);
    const Dim second = is_less(0, size) ? Dim(1) : Dim(0);
    const Tensor later = part_of(result, plain, second, left, 1, at);
    const Tensor earlier = part_of(result, plain, 0, left, 1, at);
    result = result.dtype() == DType::boolean ? not_equal(later, earlier) : later - earlier;
  }
  return result;
}

Tensor kron(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Tensor left = tensor_of(a, at), right = tensor_of(b, at);
  const int64_t rank = std::max(left.rank(), right.rank());
  Shape first, second, merged;
  for (int64_t i = -rank; i < 0; ++i) {
    const Dim m = -i <= left.rank() ? left.shape()[i] : Dim(1);
    const Dim n = -i <= right.rank() ? right.shape()[i] : Dim(1);
    for (const Dim size : {m, Dim(1)}) first.push_back(size);
    for (const Dim size : {Dim(1), n}) second.push_back(size);
    merged.push_back(m * n);
  }
  return reshape(reshape(left, first) * reshape(right, second), merged);
}

Tensor cross(const Operand& a, const Operand& b, int64_t axis, Source at) {
  const SourceScope scope(at);
  const Tensor left = tensor_of(a, at), right = tensor_of(b, at);
  for (const Tensor& each : {left, right}) {
    if (each.rank() == 0 || each.shape()[axis_of(each, axis, "cross", at)] != 3)
      throw UserError(cat("cross: axis ", axis, " must have size 3, got ", type_of(left, at),
                          " and ", type_of(right, at)),
                      at, "name the axis of the coordinates: td::cross(a, b, 0)");
  }
  const auto element = [&](const Tensor& x, int64_t i) {
    return part_of(x, axis_of(x, axis, "cross", at), i, 1, 1, at);
  };
  if (axis_of(left, axis, "cross", at) == left.rank() - 1)
    if (auto made = detail::cross_products(left, right, at)) return *std::move(made);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    parts.push_back(element(left, j) * element(right, k) - element(left, k) * element(right, j));
  }
  return concat(parts, axis);
}

Tensor cdist(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Tensor left = tensor_of(a, at), right = tensor_of(b, at);
  if (left.rank() < 2 || right.rank() < 2 || left.shape()[-1] != right.shape()[-1])
    throw UserError(cat("cdist: needs [..., n, d] and [..., m, d], got ", type_of(left, at),
                        " and ", type_of(right, at)),
                    at, "rows are points: a vector is one point, td::expand_dims(x, 0)");
  if (is_complex(left.dtype()) || is_complex(right.dtype()))
    return norm(expand_dims(left, -2) - expand_dims(right, -3), -1);
  AxisList order;
  for (int64_t i = 0; i < right.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const DType common = promote(left.dtype(), right.dtype());
  const DType real = is_float(common) ? common : DType::f32;
  const Tensor wide = cast(right, real);
  const Tensor operands[] = {cast(left, real),
                             bind_op(def_of(&ops::transpose), {&wide, 1}, Attrs().add(order), at)};
  return bind_op(def_of(&ops::distances), operands, Attrs().add(true), at);
}

Tensor nan_to_num(const Operand& x, const NanToNumOptions& options, Source at) {
  const SourceScope scope(at);
  Tensor tensor = tensor_of(x, at);
  if (is_complex(tensor.dtype()))
    return view_as_complex(nan_to_num(view_as_real(tensor), options, at));
  if (!is_float(tensor.dtype())) return tensor;
  const double most = largest_finite(tensor.dtype());
  const double above = options.posinf.value_or(most), below = options.neginf.value_or(-most);
  static constexpr char kSelf = 0;
  const auto run = [&](const detail::Tensors& given) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Tensor numbers = where(isnan(given[0]), options.nan, given[0]);
    const Tensor most_below = where(numbers == infinity, above, numbers);
    return where(most_below == -infinity, below, most_below);
  };
  const auto what = detail::Composition(&kSelf).add(options.nan).add(above).add(below);
  return detail::composed(what, {tensor}, run, at);
}

namespace {

// By arithmetic in the dtype itself, rounded to nearest (Rump, Zimmermann, Boldo and Melquiond,
// "Computing predecessor and successor in rounding to nearest"): x plus a little more than half the
// distance to its neighbour rounds to that neighbour. Where the product that gives this distance
// would be subnormal, x is scaled up; below that, neighbours are `least` apart.
Tensor neighbour(const Tensor& x, const Tensor& y, Source at) {
  const auto [relative, least] = spacing_of(x.dtype());
  const auto number = [&](double value) { return detail::literal(x.dtype(), value, 0, at); };
  const Tensor size = abs(stop_gradient(x)), up = y > x;
  const double more_than_half = relative * (1 + 2 * relative);
  const Tensor is_low = size < least / relative / relative * 0.5;
  const Tensor scale = where(is_low, number(1 / relative), 1);
  const Tensor by = size * scale * where(up, number(more_than_half), -more_than_half);
  const Tensor normal = (x * scale + by) * where(is_low, number(relative), 1);
  const Tensor small = x + where(up, number(least), -least);
  const Tensor near = where(size < least / relative, small, normal);
  const Tensor finite = where(isinf(x), copysign(number(largest_finite(x.dtype())), x), near);
  // Zeros have the sign of x.
  const Tensor apart = where(finite == 0, copysign(finite, x), finite);
  return where(x == y, copysign(x, y), where(logical_or(isnan(x), isnan(y)), x + y, apart));
}

}  // namespace

Tensor nextafter(const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  // A plain number takes the dtype of the other operand.
  const auto float_of = [](const Operand& x) {
    const bool has_one = x.tensor() != nullptr && is_float(x.tensor()->dtype());
    return has_one ? std::optional(x.tensor()->dtype()) : std::nullopt;
  };
  const Tensor left = tensor_of(a, at, float_of(b)), right = tensor_of(b, at, float_of(a));
  static constexpr char kSelf = 0;
  const auto run = [at](const detail::Tensors& both) {
    const DType common = promote(both[0].dtype(), both[1].dtype());
    const DType real = is_float(common) ? common : DType::f32;
    return neighbour(cast(both[0], real), cast(both[1], real), at);
  };
  return detail::composed(detail::Composition(&kSelf), {left, right}, run, at);
}

namespace {

Tensor are_close(const Tensor& left, const Tensor& right, const CloseOptions& options) {
  const DType common = promote(left.dtype(), right.dtype());
  const DType real = is_differentiable(common) ? common : DType::f64;
  const Tensor x = cast(left, real), y = cast(right, real);
  const Tensor within = abs(x - y) <= abs(y) * options.rtol + options.atol;
  // The tolerance of an infinity is infinite, and would accept everything.
  const Tensor close = logical_or(x == y, logical_and(within, isfinite(y)));
  return options.equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

detail::Composition closeness(const void* self, const CloseOptions& options) {
  return detail::Composition(self).add(options.rtol).add(options.atol).add(options.equal_nan);
}

}  // namespace

Tensor isclose(const Operand& a, const Operand& b, CloseOptions options, Source at) {
  const SourceScope scope(at);
  static constexpr char kSelf = 0;
  const auto run = [&](const detail::Tensors& both) {
    return are_close(both[0], both[1], options);
  };
  return detail::composed(closeness(&kSelf, options), {tensor_of(a, at), tensor_of(b, at)}, run,
                          at);
}

Tensor allclose(const Operand& a, const Operand& b, CloseOptions options, Source at) {
  const SourceScope scope(at);
  static constexpr char kSelf = 0;
  const auto run = [&](const detail::Tensors& both) {
    return all(are_close(both[0], both[1], options));
  };
  return detail::composed(closeness(&kSelf, options), {tensor_of(a, at), tensor_of(b, at)}, run,
                          at);
}

}  // namespace tidemark

#include "tidemark/calls/scatter.h"

#include <limits>

#include "tidemark/calls/create.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

struct Places {
  const Operand &x, &indices, &updates;
  int64_t axis;
};

Tensor scatter(const NamedOp& op, const Places& places, Source at) {
  const Tensor target = tensor_of(places.x, at);
  const TensorType type = type_of(target, at);
  const Tensor operands[] = {target, tensor_of(places.indices, at),
                             cast(tensor_of(places.updates, at, type.dtype), type.dtype, at)};
  const int64_t plain = plain_axis(places.axis, type.shape.rank(), op.name, type, at);
  return bind_op(def_of(&op), operands, Attrs().add(plain).add(false), at);
}

// `count` slices of the first axis, from the first on, as a view.
Tensor first_of(const Tensor& x, Dim count, Source at) {
  const auto rank = static_cast<size_t>(x.rank());
  Shape sizes = x.shape();
  sizes.set(0, count);
  return bind_op(def_of(&ops::slice), {&x, 1},
                 Attrs().add(DimList(rank, 0)).add(sizes).add(AxisList(rank, 1)), at);
}

// From 0 up, in i64; the index is checked against the size of the axis it belongs to.
Tensor checked_index(const Tensor& index, int64_t axis, const Shape& shape, Source at) {
  std::vector<int64_t> text;
  const auto add_words = [&text](std::string_view words) {
    text.insert(text.end(), words.begin(), words.end());
  };
  add_words("scatter_nd: index ");
  text.push_back(ops::kOperandHere);
  add_words(cat(" is out of range for axis ", axis, " of the shape ", shape));
  bind_op(def_of(&ops::check_index), {&index, 1}, Attrs().add(text).add(shape[axis]), at);
  const Tensor wide = cast(index, DType::i64);
  return where(wide < 0, wide + Operand(shape[axis]), wide);
}

// Data with one slice for each segment number, and the numbers; those outside [0, count) are
// `count`, the number of a slice that is cut off in the end.
struct Segments {
  Tensor data, numbers;
  Dim count = 0;
  Shape slice;

  Shape room() const {
    Shape shape{count + 1};
    for (const Dim size : slice) shape.push_back(size);
    return shape;
  }
};

Segments segments_of(std::string_view name, const Operand& data, const Operand& segments,
                     std::optional<Dim> count, Source at) {
  const Tensor x = tensor_of(data, at), numbers = tensor_of(segments, at);
  bool fits = is_integer(numbers.dtype()) && numbers.rank() >= 1 && numbers.rank() <= x.rank();
  for (int64_t i = 0; fits && i < numbers.rank(); ++i) fits = x.shape()[i] == numbers.shape()[i];
  if (!fits)
    throw UserError(cat(name, ": segments ", type_of(numbers, at), " do not fit ", type_of(x, at)),
                    at, "give whole numbers, one for each slice of the first axes");
  Segments result;
  const Tensor list = reshape(cast(numbers, DType::i64), {-1});
  Shape flat{list.shape()[0]};
  for (int64_t i = numbers.rank(); i < x.rank(); ++i) {
    result.slice.push_back(x.shape()[i]);
    flat.push_back(x.shape()[i]);
  }
  result.data = reshape(x, flat);
  if (count) {
    result.count = *count;
  } else if (detail::tracing()) {
    throw UserError(cat(name, ": the largest segment is known only when the function runs"), at,
                    cat("give their number: td::", name, "(data, segments, 100)"));
  } else if (list.size() > 0) {
    result.count = std::max<int64_t>(0, max(list).item<int64_t>(at) + 1);
  }
  result.numbers = where(logical_or(list < 0, list >= Operand(result.count)), result.count, list);
  return result;
}

Tensor combined(const NamedOp& op, const Segments& segments, const Operand& start, Source at) {
  const Tensor room = full(segments.room(), start, segments.data.dtype());
  return first_of(scatter(op, {room, segments.numbers, segments.data, 0}, at), segments.count, at);
}

// The number that every other replaces as the largest (or least).
Tensor extreme(DType dtype, bool least) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return constant(least ? -infinity : infinity, dtype);
  return detail::literal(dtype, 0, least ? least_of(dtype) : most_of(dtype), Source::here());
}

}  // namespace

Tensor scatter_max(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis,
                   Source at) {
  return scatter(ops::scatter_max, {x, indices, updates, axis}, at);
}
Tensor scatter_min(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis,
                   Source at) {
  return scatter(ops::scatter_min, {x, indices, updates, axis}, at);
}
Tensor scatter_mul(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis,
                   Source at) {
  return scatter(ops::scatter_mul, {x, indices, updates, axis}, at);
}

// The axes that the indices name become one, and each index a position on it.
Tensor scatter_nd(const Operand& indices, const Operand& updates, const Shape& shape, Source at) {
  const SourceScope scope(at);
  const Tensor places = tensor_of(indices, at), x = tensor_of(updates, at);
  const Dim named = places.rank() == 0 ? Dim(0) : places.shape()[-1];
  if (!is_integer(places.dtype()) || places.rank() == 0 || is_less(shape.rank(), named))
    throw UserError(cat("scatter_nd: indices ", type_of(places, at),
                        " do not name elements of the shape ", shape),
                    at, "their last axis has a whole number for each of the first axes");
  const int64_t depth = named;
  Shape wanted, merged, slice;
  Dim size = 1, count = 1;
  for (int64_t i = 0; i + 1 < places.rank(); ++i) {
    wanted.push_back(places.shape()[i]);
    count = count * places.shape()[i];
  }
  for (int64_t i = 0; i < depth; ++i) size = size * shape[i];
  for (int64_t i = depth; i < shape.rank(); ++i) slice.push_back(shape[i]);
  Shape list{count};
  merged.push_back(size);
  for (const Dim each : slice) {
    wanted.push_back(each);
    merged.push_back(each);
    list.push_back(each);
  }
  if (x.shape() != wanted)
    throw UserError(cat("scatter_nd: updates ", type_of(x, at), " do not fit indices ",
                        type_of(places, at), " of the shape ", shape),
                    at, cat("they must have the shape ", wanted));
  Tensor position = zeros({count}, DType::i64);
  const Tensor rows = reshape(places, {count, depth});
  for (int64_t i = 0; i < depth; ++i) {
    const Tensor column = checked_index(rows[{Slice{}, i}], i, shape, at);
    position = position * Operand(shape[i]) + column;
  }
  return reshape(scatter_add(zeros(merged, x.dtype()), position, reshape(x, list)), shape);
}

Tensor segment_sum(const Operand& data, const Operand& segments, std::optional<Dim> count,
                   Source at) {
  const SourceScope scope(at);
  return combined(ops::scatter_add, segments_of("segment_sum", data, segments, count, at), 0, at);
}

Tensor segment_mean(const Operand& data, const Operand& segments, std::optional<Dim> count,
                    Source at) {
  const SourceScope scope(at);
  Segments parts = segments_of("segment_mean", data, segments, count, at);
  if (!is_differentiable(parts.data.dtype())) parts.data = cast(parts.data, DType::f32);
  const DType real = part_dtype(parts.data.dtype());
  const Tensor ones = full({parts.numbers.shape()[0]}, 1, real);
  const Tensor room = zeros({parts.count + 1}, real);
  const Tensor sizes = first_of(scatter_add(room, parts.numbers, ones), parts.count, at);
  Shape spread{parts.count};
  for (int64_t i = 0; i < parts.slice.rank(); ++i) spread.push_back(1);
  return combined(ops::scatter_add, parts, 0, at) / reshape(maximum(sizes, 1), spread);
}

Tensor segment_prod(const Operand& data, const Operand& segments, std::optional<Dim> count,
                    Source at) {
  const SourceScope scope(at);
  return combined(ops::scatter_mul, segments_of("segment_prod", data, segments, count, at), 1, at);
}

Tensor segment_max(const Operand& data, const Operand& segments, std::optional<Dim> count,
                   Source at) {
  const SourceScope scope(at);
  const Segments parts = segments_of("segment_max", data, segments, count, at);
  return combined(ops::scatter_max, parts, extreme(parts.data.dtype(), true), at);
}

Tensor segment_min(const Operand& data, const Operand& segments, std::optional<Dim> count,
                   Source at) {
  const SourceScope scope(at);
  const Segments parts = segments_of("segment_min", data, segments, count, at);
  return combined(ops::scatter_min, parts, extreme(parts.data.dtype(), false), at);
}

}  // namespace tidemark

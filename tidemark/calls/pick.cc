#include "tidemark/calls/pick.h"

#include "tidemark/calls/ops.h"
#include "tidemark/calls/scatter.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark::detail {
namespace {

// The row-major positions of the true elements of a mask.
Tensor true_positions(const Tensor& mask, Source at) {
  if (is_observed({&mask})) {
    throw UserError(cat("subscript: the mask ", type_of(mask, at),
                        " selects a number of elements that is known only when the function runs"),
                    at, "use td::where, which keeps the shape");
  }
  const Tensor flat = dense(mask, at);
  const int64_t size = flat.size();
  const auto* hits = reinterpret_cast<const uint8_t*>(array_of(flat, at).data);
  int64_t count = 0;
  for (int64_t i = 0; i < size; ++i) count += hits[i] != 0 ? 1 : 0;
  Tensor positions = make_tensor(DType::i64, {count}, at);
  auto* next = reinterpret_cast<int64_t*>(array_of(positions, at).data);
  for (int64_t i = 0; i < size; ++i) {
    if (hits[i] != 0) *next++ = i;
  }
  return positions;
}

// Axes of x that one index tensor selects from. The axes of a mask count as one, of all their
// elements in row-major order.
struct Picked {
  int64_t axis, count;
  Dim size;
  Tensor index;  // Of a mask: the positions of its true elements.
  bool is_checked;
};

Picked masked(const TensorType& type, const Pick& pick, Source at) {
  const Tensor& mask = *pick.index;
  Dim covered = 1;
  for (int64_t i = 0; i < mask.rank(); ++i) {
    if (mask.shape()[i] != type.shape[pick.axis + i]) {
      throw UserError(cat("subscript: the mask ", type_of(mask, at), " does not fit ", type,
                          " at axis ", pick.axis),
                      at, "their sizes must be equal");
    }
    covered = covered * mask.shape()[i];
  }
  return {pick.axis, mask.rank(), covered, true_positions(mask, at), true};
}

Picked picked(const TensorType& type, const Pick& pick, Source at) {
  const TensorType index = type_of(*pick.index, at);
  if (index.dtype == DType::boolean) return masked(type, pick, at);
  return {pick.axis, 1, type.shape[pick.axis], *pick.index, false};
}

// x with these axes in front of the others, or in their place if they are adjacent, as one axis.
struct Merged {
  Tensor x;
  int64_t axis;
};

bool are_adjacent(const std::vector<Picked>& list) {
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i].axis != list[i - 1].axis + list[i - 1].count) return false;
  return true;
}

Tensor transposed(const Tensor& x, const AxisList& order, Source at) {
  return bind_op(def_of(&ops::transpose), {&x, 1}, Attrs().add(order), at);
}

// Moves `count` axes from `axis` on to the front.
Tensor moved_first(const Tensor& x, int64_t axis, int64_t count, Source at) {
  AxisList order;
  for (int64_t i = 0; i < count; ++i) order.push_back(axis + i);
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i < axis || i >= axis + count) order.push_back(i);
  return transposed(x, order, at);
}

// The axes of all picks in front of the others.
AxisList order_of(const std::vector<Picked>& list, int64_t rank) {
  AxisList order, others;
  int64_t axis = 0;
  for (const Picked& each : list) {
    for (; axis < each.axis; ++axis) others.push_back(axis);
    for (; axis < each.axis + each.count; ++axis) order.push_back(axis);
  }
  for (; axis < rank; ++axis) others.push_back(axis);
  for (const int64_t other : others) order.push_back(other);
  return order;
}

Merged merged(const Tensor& x, const std::vector<Picked>& list, Source at) {
  if (list.size() == 1 && list[0].count == 1) return {x, list[0].axis};
  const bool adjacent = are_adjacent(list);
  const Tensor ordered = adjacent ? x : transposed(x, order_of(list, x.rank()), at);
  const int64_t first = adjacent ? list[0].axis : 0;
  int64_t count = 0;
  Dim size = 1;
  for (const Picked& each : list) {
    count += each.count;
    size = size * each.size;
  }
  Shape shape;
  for (int64_t i = 0; i < first; ++i) shape.push_back(ordered.shape()[i]);
  shape.push_back(size);
  for (int64_t i = first + count; i < ordered.rank(); ++i) shape.push_back(ordered.shape()[i]);
  return {reshape(ordered, shape, at), first};
}

void check_range(const Picked& part, const TensorType& type, Source at) {
  std::vector<int64_t> text;
  const auto add = [&text](std::string_view words) {
    text.insert(text.end(), words.begin(), words.end());
  };
  add("subscript: index ");
  text.push_back(ops::kOperandHere);
  add(cat(" is out of range for axis ", part.axis, " of ", type));
  bind_op(def_of(&ops::check_index), {&part.index, 1}, Attrs().add(text).add(part.size), at);
}

// From 0 up, in i64.
Tensor plain_positions(const Picked& part, const TensorType& type, Source at) {
  if (part.is_checked) return part.index;
  const TensorType index = type_of(part.index, at);
  if (!is_integer(index.dtype))
    throw UserError(cat("subscript: indices must be integers, got ", index), at,
                    "use td::cast(indices, td::i64)");
  check_range(part, type, at);
  const Tensor wide = cast(part.index, DType::i64, at);
  return where(less(wide, 0, at), add(wide, part.size, at), wide, at);
}

// Positions along the merged axis.
Tensor joined_positions(const std::vector<Picked>& list, const TensorType& type, Source at) {
  Shape shape = list[0].index.shape();
  for (size_t i = 1; i < list.size(); ++i)
    broadcast_into(shape, list[i].index.shape(), "subscript", at);
  Tensor positions = plain_positions(list[0], type, at);
  for (size_t i = 1; i < list.size(); ++i)
    positions = add(multiply(positions, list[i].size, at), plain_positions(list[i], type, at), at);
  return positions;
}

// ---- changes ------------------------------------------------------------------------------------

// Slices of the first axis, each at its position.
Tensor scattered(const Tensor& x, const Tensor& positions, const Tensor& updates, Change change,
                 Source at) {
  switch (change) {
    case Change::set:
      return put(x, positions, updates, at);
    case Change::add:
      return scatter_add(x, positions, updates, 0, at);
    case Change::multiply:
      return scatter_mul(x, positions, updates, 0, at);
    case Change::min:
      return scatter_min(x, positions, updates, 0, at);
    case Change::max:
      break;
  }
  return scatter_max(x, positions, updates, 0, at);
}

// One number wherever a mask is true: no element has to be found, also while tracing.
Tensor changed_where(const Tensor& x, const Pick& pick, const Tensor& value, Change change,
                     Source at) {
  const TensorType type = type_of(x, at);
  Shape shape(DimList(static_cast<size_t>(x.rank()), Dim(1)));
  for (int64_t i = 0; i < pick.index->rank(); ++i) {
    if (pick.index->shape()[i] != type.shape[pick.axis + i]) (void)masked(type, pick, at);
    shape.set(pick.axis + i, type.shape[pick.axis + i]);
  }
  return where(reshape(*pick.index, shape, at), combined(x, value, change, at), x, at);
}

AxisList inverse(const AxisList& order) {
  AxisList back(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return back;
}

Shape joined(const Shape& a, const Shape& b) {
  Shape both = a;
  for (int64_t i = 0; i < b.rank(); ++i) both.push_back(b[i]);
  return both;
}
Shape part_of(const Shape& shape, int64_t begin, int64_t end) {
  Shape part;
  for (int64_t i = begin; i < end; ++i) part.push_back(shape[i]);
  return part;
}

}  // namespace

Tensor combined(const Tensor& x, const Tensor& value, Change change, Source at) {
  switch (change) {
    case Change::set:
      return value;
    case Change::add:
      return add(x, value, at);
    case Change::multiply:
      return multiply(x, value, at);
    case Change::min:
      return minimum(x, value, at);
    case Change::max:
      break;
  }
  return maximum(x, value, at);
}

Tensor changed(const Tensor& x, const std::vector<Pick>& picks, bool come_first,
               const Tensor& value, Change change, Source at) {
  const TensorType type = type_of(x, at);
  if (picks.size() == 1 && picks[0].index->dtype() == DType::boolean && value.rank() == 0)
    return changed_where(x, picks[0], value, change, at);
  std::vector<Picked> list;
  for (const Pick& each : picks) list.push_back(picked(type, each, at));
  const AxisList order = order_of(list, x.rank());
  const Tensor ordered = transposed(x, order, at);
  int64_t taken = 0;
  Dim size = 1;
  for (const Picked& each : list) {
    taken += each.count;
    size = size * each.size;
  }
  const Shape others = part_of(ordered.shape(), taken, ordered.rank());
  const Tensor rows = reshape(ordered, joined({size}, others), at);
  const Tensor positions = joined_positions(list, type, at);
  // Where `pick` would put the axes of the positions.
  const int64_t first = come_first || !are_adjacent(list) ? 0 : list[0].axis;
  const Shape found = joined(joined(part_of(others, 0, first), positions.shape()),
                             part_of(others, first, others.rank()));
  const Tensor spread = moved_first(broadcast_to(value, found, at), first, positions.rank(), at);
  Dim count = 1;
  for (int64_t i = 0; i < positions.rank(); ++i) count = count * positions.shape()[i];
  const Tensor updates = reshape(spread, joined({count}, others), at);
  const Tensor made = scattered(rows, reshape(positions, {count}, at), updates, change, at);
  return transposed(reshape(made, ordered.shape(), at), inverse(order), at);
}

Tensor pick(const Tensor& x, const std::vector<Pick>& picks, bool come_first, Source at) {
  const TensorType type = type_of(x, at);
  std::vector<Picked> list;
  for (const Pick& each : picks) list.push_back(picked(type, each, at));
  const Merged whole = merged(x, list, at);
  // A single index is looked up as it is; `gather` checks it.
  const Tensor positions = list.size() == 1 ? list[0].index : joined_positions(list, type, at);
  const Tensor found = gather(whole.x, positions, whole.axis, at);
  return come_first ? moved_first(found, whole.axis, positions.rank(), at) : found;
}

}  // namespace tidemark::detail

// Subscripts: x[...] and update.
#include <algorithm>

#include "tidemark/base/index_error.h"
#include "tidemark/calls/ops.h"
#include "tidemark/calls/pick.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::type_of;

int64_t axes_taken(const Index& index, Source at) {
  switch (index.kind) {
    case Index::Kind::new_axis:
    case Index::Kind::ellipsis:
      return 0;
    case Index::Kind::tensor: {
      const TensorType type = type_of(*index.tensor, at);
      return type.dtype == DType::boolean ? type.shape.rank() : 1;
    }
    default:
      return 1;
  }
}

// NumPy's rule: beside a tensor index, numbers are index arrays too. If all of them are adjacent,
// the axes they select stay in place; if a slice, a new axis or an ellipsis (even an empty one) is
// between them, those axes come first.
bool picks_come_first(const Slices& slices) {
  bool has_tensor = false;
  size_t first = slices.list.size(), last = 0, count = 0;
  for (size_t i = 0; i < slices.list.size(); ++i) {
    const Index::Kind kind = slices.list[i].kind;
    if (kind != Index::Kind::number && kind != Index::Kind::tensor) continue;
    has_tensor = has_tensor || kind == Index::Kind::tensor;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  return has_tensor && last - first + 1 != count;
}

// One entry for every axis, in order, with the ellipsis written out.
using IndexList = SmallVec<Index, 8>;
IndexList written_out(const TensorType& type, const Slices& slices) {
  int64_t taken = 0;
  int64_t dots = 0;
  for (const Index& index : slices.list) {
    taken += axes_taken(index, slices.at);
    dots += index.kind == Index::Kind::ellipsis ? 1 : 0;
  }
  const int64_t rank = type.shape.rank();
  if (taken > rank) {
    throw IndexError(cat("subscript: ", taken, " indices for the ", rank, " axes of ", type),
                     slices.at, "give at most one for each axis; td::newaxis adds one");
  }
  if (dots > 1)
    throw UserError("subscript: it has more than one td::ellipsis", slices.at,
                    "write td::all for the other axes");
  IndexList list;
  const auto fill = [&] { list.resize(list.size() + static_cast<size_t>(rank - taken), Slice{}); };
  for (const Index& index : slices.list) {
    if (index.kind == Index::Kind::ellipsis)
      fill();
    else
      list.push_back(index);
  }
  if (dots == 0) fill();
  return list;
}

// Larger than any size, and small enough that adding a size does not overflow.
constexpr int64_t kFar = int64_t{1} << 60;

// Resolves a bound, which counts from the end if it is negative.
Dim from_end(int64_t bound, Dim size) {
  const int64_t near = std::clamp(bound, -kFar, kFar);
  return near < 0 ? size + near : Dim(near);
}
Dim from_end(const Index& index, Dim size) {
  if (!index.size.is_traced()) return from_end(index.number, size);
  return is_less(index.size, 0) ? size + index.size : index.size;
}

Dim plain_number(const Index& index, Dim size, int64_t axis, const TensorType& type, Source at) {
  const Dim plain = from_end(index, size);
  if (is_less(plain, 0) || !is_less(plain, size)) {
    throw IndexError(
        cat("subscript: index ", index.size.is_traced() ? cat(index.size) : cat(index.number),
            " is out of range for axis ", axis, " of ", type),
        at,
        size == 0 ? std::string("the axis is empty")
                  : cat("indices go from ", -int64_t{size}, " to ", size - 1));
  }
  return plain;
}

struct Run {
  Dim begin, size;
  int64_t step;
};

// Python's rules: bounds are clamped, negative ones count from the end.
Run plain_slice(const Slice& slice, int64_t size, Source at) {
  if (slice.step == 0)
    throw UserError("subscript: the step of a slice must not be 0", at,
                    "1 takes every element, -1 every element backwards");
  const bool forward = slice.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const auto clamp = [&](int64_t bound) {
    return std::clamp(bound < 0 ? bound + size : bound, low, high);
  };
  const int64_t begin = slice.begin ? clamp(*slice.begin) : (forward ? 0 : size - 1);
  const int64_t end = slice.end ? clamp(*slice.end) : (forward ? size : -1);
  const int64_t reach = forward ? end - begin : begin - end;
  if (reach <= 0) return {std::max<int64_t>(0, begin), 0, 1};
  // Unsigned, so that the magnitude of the most negative step fits.
  const auto raw = static_cast<uint64_t>(slice.step);
  const uint64_t step = forward ? raw : 0 - raw;
  const auto size_of_run = static_cast<int64_t>((static_cast<uint64_t>(reach) - 1) / step + 1);
  // A single element needs no step, and a step beyond the axis times a stride might overflow.
  return {begin, size_of_run, size_of_run == 1 ? 1 : slice.step};
}

// The same for an open size. Comparisons with the bounds become guards.
Run open_slice(const Slice& slice, Dim size, Source at) {
  if (!slice.begin && !slice.end && slice.step == 1) return {0, size, 1};
  // Steps whose product with a stride might overflow specialise the trace to one size.
  if (slice.step == 0 || slice.step < -INT32_MAX || slice.step > INT32_MAX)
    return plain_slice(slice, size, at);
  const auto clamp = [&](int64_t bound) {
    const Dim plain = from_end(bound, size);
    return is_less(plain, 0) ? Dim(0) : is_less(size, plain) ? size : plain;
  };
  if (slice.step < 0) {
    // Counted from one past the end, so that an empty range has size 0.
    const auto past = [&](int64_t bound) { return bound == -1 ? size : clamp(bound + 1); };
    const Dim begin = slice.begin ? past(*slice.begin) : size;
    const Dim end = slice.end ? past(*slice.end) : Dim(0);
    if (!is_less(end, begin)) return {0, 0, 1};
    return {begin - 1, (begin - end - 1) / -slice.step + 1, slice.step};
  }
  const Dim begin = slice.begin ? clamp(*slice.begin) : Dim(0);
  const Dim end = slice.end ? clamp(*slice.end) : size;
  if (!is_less(begin, end)) return {begin, 0, 1};
  if (slice.step == 1) return {begin, end - begin, 1};
  const Dim count = (end - begin - 1) / slice.step + 1;
  return {begin, count, slice.step};
}

// Everything but tensor indices, as one view. `picks` are the tensor indices, each with the axis of
// the view it applies to.
struct ViewPart {
  Tensor view;
  std::vector<detail::Pick> picks;
};

// The range that a subscript selects of every axis of x, and the resulting shape.
struct Selection {
  DimList begin, size;  // One for each axis of x.
  AxisList step;
  Shape shape;
  std::vector<detail::Pick> picks;
};

Selection picked_of(const TensorType& type, const Slices& slices) {
  Selection picked;
  int64_t axis = 0;
  for (const Index& index : written_out(type, slices)) {
    if (index.kind == Index::Kind::new_axis) {
      picked.shape.push_back(1);
      continue;
    }
    if (index.kind == Index::Kind::tensor)
      picked.picks.push_back({picked.shape.rank(), index.tensor});
    const int64_t taken = axes_taken(index, slices.at);
    for (int64_t i = 0; i < taken; ++i, ++axis) {
      Run run{0, type.shape[axis], 1};
      if (index.kind == Index::Kind::number)
        run = {plain_number(index, type.shape[axis], axis, type, slices.at), 1, 1};
      if (index.kind == Index::Kind::slice)
        run = type.shape[axis].is_traced() ? open_slice(index.slice, type.shape[axis], slices.at)
                                           : plain_slice(index.slice, type.shape[axis], slices.at);
      picked.begin.push_back(run.begin);
      picked.size.push_back(run.size);
      picked.step.push_back(run.step);
      if (index.kind != Index::Kind::number) picked.shape.push_back(run.size);
    }
  }
  return picked;
}

bool picks_all(const Selection& picked, const Shape& shape) {
  if (picked.shape != shape) return false;
  for (size_t axis = 0; axis < picked.begin.size(); ++axis)
    if (picked.begin[axis] != 0 || picked.step[axis] != 1) return false;
  return true;
}

ViewPart view_of(const Tensor& x, const Slices& slices) {
  const TensorType type = type_of(x, slices.at);
  Selection picked = picked_of(type, slices);
  ViewPart result;
  result.picks = std::move(picked.picks);
  if (!result.picks.empty() && picks_all(picked, type.shape)) {
    result.view = x;  // The Variable itself, so that its gradient is row-sparse.
    return result;
  }
  if (detail::is_observed({&x})) {
    const Attrs attrs = Attrs().add(picked.begin).add(picked.size).add(picked.step);
    const Tensor part = detail::bind_op(def_of(&ops::slice), {&x, 1}, attrs, slices.at);
    result.view = reshape(part, picked.shape, slices.at);
    return result;
  }
  const ArrayRef& array = detail::array_of(x, slices.at);
  ArrayRef seen;
  seen.dtype = array.dtype;
  int64_t offset = 0;
  size_t axis = 0;
  for (const Index& index : written_out(type, slices)) {
    if (index.kind == Index::Kind::new_axis) {
      seen.shape.push_back(1);
      seen.strides.push_back(1);
      continue;
    }
    const int64_t taken = axes_taken(index, slices.at);
    for (int64_t i = 0; i < taken; ++i, ++axis) {
      offset += int64_t{picked.begin[axis]} * array.strides[axis];
      if (index.kind == Index::Kind::number) continue;
      seen.shape.push_back(picked.size[axis]);
      seen.strides.push_back(picked.step[axis] * array.strides[axis]);
    }
  }
  // An empty view may point anywhere: stay inside the memory.
  seen.data = array.data + (seen.size() == 0 ? 0 : offset * size_of(array.dtype));
  result.view = detail::make_view(x, seen, slices.at);
  return result;
}

bool has_tensor(const Slices& place) {
  return std::any_of(place.list.begin(), place.list.end(),
                     [](const Index& index) { return index.kind == Index::Kind::tensor; });
}

// The same place without its tensors: whole axes.
Slices view_place(const TensorType& type, const Slices& place) {
  Slices views({}, place.at);
  for (const Index& index : written_out(type, place)) {
    if (index.kind != Index::Kind::tensor)
      views.list.push_back(index);
    else
      views.list.resize(views.list.size() + static_cast<size_t>(axes_taken(index, place.at)),
                        Slice{});
  }
  return views;
}

Tensor updated_by_op(const Tensor& x, const Slices& place, const Operand& value) {
  const Source at = place.at;
  const TensorType type = type_of(x, at);
  const Selection picked = picked_of(type, place);
  const Tensor spread = broadcast_to(detail::tensor_of(value, at, type.dtype), picked.shape, at);
  const Tensor part = reshape(spread, Shape(picked.size), at);
  const Tensor operands[] = {x, part};
  return detail::bind_op(def_of(&ops::update), operands,
                         Attrs().add(picked.begin).add(picked.size).add(picked.step), at);
}

}  // namespace

Tensor Tensor::operator[](const Slices& slices) const {
  const ViewPart viewed = view_of(*this, slices);
  if (viewed.picks.empty()) return viewed.view;
  return detail::pick(viewed.view, viewed.picks, picks_come_first(slices), slices.at);
}

namespace detail {

Tensor changed_at(const Operand& x, const Slices& place, const Operand& value, Change change) {
  const Source at = place.at;
  const SourceScope scope(at);
  const Tensor target = tensor_of(x, at);
  const TensorType type = type_of(target, at);
  const Tensor given = tensor_of(value, at, type.dtype);
  const Slices views = view_place(type, place);
  const ViewPart viewed = view_of(target, place);
  const Tensor part = viewed.picks.empty() ? combined(viewed.view, given, change, at)
                                           : changed(viewed.view, viewed.picks,
                                                     picks_come_first(place), given, change, at);
  if (picks_all(picked_of(type, views), type.shape)) return broadcast_to(part, type.shape, at);
  return update(target, views, part);
}

}  // namespace detail

// The operand is emptied last, so that an update that fails leaves it unchanged.
Tensor update(const Operand& x, const Slices& place, const Operand& value) {
  const Source at = place.at;
  const SourceScope scope(at);
  if (has_tensor(place)) return detail::changed_at(x, place, value, detail::Change::set);
  if (detail::is_observed({x.tensor(), value.tensor()}))
    return updated_by_op(detail::tensor_of(x, at), place, value);
  const bool in_place = x.is_dying() && detail::is_sole(detail::state_of(*x.tensor(), at)) &&
                        detail::array_of(*x.tensor(), at).is_contiguous();
  Tensor copy = in_place ? Tensor() : identity(x, at);
  const Tensor& target = in_place ? *x.tensor() : copy;
  const ViewPart viewed = view_of(target, place);
  const Tensor values = detail::tensor_of(value, at, target.dtype());
  const Tensor spread = broadcast_to(values, viewed.view.shape(), at);
  compile::run_copy(detail::array_of(spread, at), detail::array_of(viewed.view, at));
  if (!in_place) return copy;
  detail::TensorState* const state = detail::TensorState::take(const_cast<Tensor&>(*x.tensor()));
  state->tape_id = 0;
  return detail::TensorState::adopt(state);
}

}  // namespace tidemark

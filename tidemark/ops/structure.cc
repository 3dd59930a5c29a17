#include "tidemark/ops/structure.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "tidemark/ops/reference.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/size.h"

namespace tidemark::ops::rule {

// ---- cast ---------------------------------------------------------------------------------------

TensorType infer_cast(const InferContext& context) {
  return {context.attrs.read().dtype(), context.operands[0].shape};
}

Term grad_cast(const GradContext& context, int) {
  return term::cast(context.g, context.operands[0].dtype());
}

void reference_cast(const ReferenceContext& context) {
  for (int64_t i = 0; i < context.result.size(); ++i) {
    const ArrayRef& from = context.operands[0];
    if (is_float(from.dtype) || is_float(context.result.dtype)) {
      reference::write(context.result, i, reference::read_float(from, i));
    } else {
      reference::write(context.result, i, reference::read_integer(from, i));
    }
  }
}

// ---- views --------------------------------------------------------------------------------------

TensorType infer_reshape(const InferContext& context) {
  const TensorType& x = context.operands[0];
  Shape shape = Shape(context.attrs.read().sizes());
  Dim known = 1;
  int64_t free = -1;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (!shape[axis].is_any()) {
      known = known * shape[axis];
    } else if (free < 0) {
      free = axis;
    } else {
      throw UserError(cat("reshape: ", shape, " has two sizes of -1"), context.at,
                      "only one size may be -1; it is inferred from the number of elements");
    }
  }
  const Dim size = x.shape.open_size();
  if (free >= 0 && known != 0) {
    const Dim found = size / known;
    if (found * known == size) {
      shape.set(free, found);
      known = size;
    }
  }
  if (known != size || (free >= 0 && shape[free].is_any())) {
    throw UserError(
        cat("reshape: ", x, " has ", size, " elements, ", shape, " has ",
            free >= 0 ? cat("a multiple of ", known) : cat(known)),
        context.at,
        "the number of elements must not change; one size may be -1, which is inferred");
  }
  return {x.dtype, shape};
}

// Splits and merges axes without a copy; false if the strides do not allow it.
bool view_reshape(const ArrayRef& operand, const Attrs&, ArrayRef& result) {
  result.data = operand.data;
  const int64_t size = operand.size();
  if (size == 0 || operand.is_contiguous()) {
    result.strides = contiguous_strides(result.shape);
    return true;
  }
  result.strides.resize(static_cast<size_t>(result.rank()));
  int64_t from = operand.rank() - 1;
  int64_t to = result.rank() - 1;
  while (to >= 0 || from >= 0) {
    while (from >= 0 && operand.shape[from] == 1) --from;
    while (to >= 0 && result.shape[to] == 1) result.strides[static_cast<size_t>(to--)] = 1;
    if (to < 0 && from < 0) break;
    // The smallest groups of trailing axes of the old and the new shape with equal numbers of
    // elements.
    int64_t old_size = operand.shape[from];
    int64_t new_size = result.shape[to];
    int64_t old_begin = from;
    int64_t new_begin = to;
    while (old_size != new_size) {
      if (old_size < new_size) {
        old_size *= operand.shape[--old_begin];
      } else {
        new_size *= result.shape[--new_begin];
      }
    }
    // The strides of the old group must match those of one merged axis. The stride of an axis of
    // size 1 does not matter.
    int64_t even = operand.strides[static_cast<size_t>(from)] * int64_t{operand.shape[from]};
    for (int64_t axis = from - 1; axis >= old_begin; --axis) {
      if (operand.shape[axis] == 1) continue;
      if (operand.strides[static_cast<size_t>(axis)] != even) return false;
      even *= int64_t{operand.shape[axis]};
    }
    int64_t stride = operand.strides[static_cast<size_t>(from)];
    for (int64_t axis = to; axis >= new_begin; --axis) {
      result.strides[static_cast<size_t>(axis)] = stride;
      stride *= result.shape[axis];
    }
    from = old_begin - 1;
    to = new_begin - 1;
  }
  return true;
}

Term grad_reshape(const GradContext& context, int) {
  return term::reshape(context.g, context.operands[0].shape());
}

TensorType infer_transpose(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::span<const int64_t> order = context.attrs.read().integers();
  Shape shape;
  for (const int64_t axis : order) shape.push_back(x.shape[axis]);
  return {x.dtype, shape};
}

TensorType infer_stop_gradient(const InferContext& context) { return context.operands[0]; }

bool view_stop_gradient(const ArrayRef& operand, const Attrs&, ArrayRef& result) {
  result = operand;
  return true;
}

Term grad_stop_gradient(const GradContext& context, int) { return context.g.like(0); }

bool view_transpose(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) {
  result.data = operand.data;
  result.strides.clear();
  for (const int64_t axis : attrs.read().integers()) {
    result.strides.push_back(operand.strides[static_cast<size_t>(axis)]);
  }
  return true;
}

Term grad_transpose(const GradContext& context, int) {
  const std::span<const int64_t> order = context.attrs.read().integers();
  AxisList back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return term::transpose(context.g, back);
}

TensorType infer_slice(const InferContext& context) {
  Attrs::Reader read = context.attrs.read();
  read.sizes();
  return {context.operands[0].dtype, Shape(read.sizes())};
}

bool view_slice(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) {
  Attrs::Reader read = attrs.read();
  const std::span<const Dim> begin = read.sizes();
  read.sizes();
  const std::span<const int64_t> step = read.integers();
  int64_t offset = 0;
  result.strides.resize(begin.size());
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    offset += int64_t{begin[axis]} * operand.strides[axis];
    result.strides[axis] = operand.strides[axis] * step[axis];
  }
  result.data = result.size() == 0 ? operand.data : operand.data + offset * size_of(operand.dtype);
  return true;
}

// Pads with zeros where the slice left elements out.
Term grad_slice(const GradContext& context, int) {
  Attrs::Reader read = context.attrs.read();
  const DimList begin(read.sizes()), size(read.sizes());
  const AxisList step(read.integers());
  const Shape& whole = context.operands[0].shape();
  const size_t rank = begin.size();
  DimList low(rank), high(rank), first(rank);
  AxisList inside(rank), flip(rank, 1);
  bool backwards = false;
  for (size_t i = 0; i < rank; ++i) {
    const Dim count = size[i], all = whole[static_cast<int64_t>(i)];
    if (!is_less(0, count)) {
      high[i] = all;
      continue;
    }
    const Dim reach = (count - 1) * std::abs(step[i]);
    low[i] = step[i] > 0 ? begin[i] : begin[i] - reach;
    inside[i] = std::abs(step[i]) - 1;
    high[i] = all - low[i] - reach - 1;
    if (step[i] < 0) {
      backwards = true;
      flip[i] = -1;
      first[i] = count - 1;
    }
  }
  Term g = context.g;
  if (backwards) g = slice.apply({g}, Attrs().add(first).add(size).add(flip));
  return pad.apply({g}, Attrs().add(low).add(high).add(inside).add(0.0).add(int64_t{0}));
}

TensorType infer_broadcast(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const Shape shape = Shape(context.attrs.read().sizes());
  const int64_t shift = shape.rank() - x.shape.rank();
  bool fits = shift >= 0;
  for (int64_t axis = 0; fits && axis < x.shape.rank(); ++axis) {
    const Dim mine = x.shape[axis], wanted = shape[axis + shift];
    fits = mine.known_or(0) == 1 || mine == wanted || mine == 1;
  }
  if (!fits) {
    throw UserError(cat("broadcast_to: ", x, " does not broadcast to ", shape), context.at,
                    "sizes must be equal, or 1 in the operand");
  }
  return {x.dtype, shape};
}

bool view_broadcast(const ArrayRef& operand, const Attrs&, ArrayRef& result) {
  result.data = operand.data;
  result.strides.resize(static_cast<size_t>(result.rank()), 0);
  const int64_t shift = result.rank() - operand.rank();
  for (int64_t axis = 0; axis < result.rank(); ++axis) {
    const bool repeats =
        axis < shift || (operand.shape[axis - shift] == 1 && result.shape[axis] != 1);
    result.strides[static_cast<size_t>(axis)] =
        repeats ? 0 : operand.strides[static_cast<size_t>(axis - shift)];
  }
  return true;
}

TensorType infer_view_as_real(const InferContext& context) {
  const TensorType& z = context.operands[0];
  if (!is_complex(z.dtype))
    throw UserError(cat("view_as_real: takes complex numbers, got ", z), context.at,
                    "make them: td::complex(re, im), or td::cast(x, td::c64)");
  return pairs_type(z);
}

TensorType infer_view_as_complex(const InferContext& context) {
  const TensorType& pairs = context.operands[0];
  const bool has_pairs = pairs.shape.rank() > 0 && pairs.shape[-1].known_or(0) == 2;
  if (!has_pairs || (pairs.dtype != DType::f32 && pairs.dtype != DType::f64))
    throw UserError(cat("view_as_complex: takes pairs of f32 or f64 on the last axis, got ", pairs),
                    context.at, "a pair is a real and an imaginary part: td::stack({re, im}, -1)");
  TensorType type{complex_dtype(pairs.dtype), pairs.shape};
  type.shape.erase(type.shape.rank() - 1);
  return type;
}

bool view_view_as_real(const ArrayRef& operand, const Attrs&, ArrayRef& result) {
  result.data = operand.data;
  result.dtype = part_dtype(operand.dtype);
  result.strides.clear();
  for (const int64_t stride : operand.strides) result.strides.push_back(2 * stride);
  result.strides.push_back(1);
  return true;
}

bool view_view_as_complex(const ArrayRef& operand, const Attrs&, ArrayRef& result) {
  const auto rank = static_cast<size_t>(result.rank());
  result.dtype = complex_dtype(operand.dtype);
  if (result.size() == 0) {
    result.data = operand.data;
    result.strides = contiguous_strides(result.shape);
    return true;
  }
  if (operand.strides[rank] != 1) return false;
  result.data = operand.data;
  result.strides.resize(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const bool is_one = operand.shape[static_cast<int64_t>(axis)] == 1;
    if (!is_one && operand.strides[axis] % 2 != 0) return false;
    result.strides[axis] = is_one ? 0 : operand.strides[axis] / 2;
  }
  return true;
}

Term grad_view_as_real(const GradContext& context, int) { return term::view_as_complex(context.g); }

Term grad_view_as_complex(const GradContext& context, int) { return term::view_as_real(context.g); }

void reference_same_bytes(const ReferenceContext& context) {
  const ArrayRef& from = context.operands[0];
  std::memcpy(context.result.data, from.data,
              static_cast<size_t>(from.size() * size_of(from.dtype)));
}

Term grad_broadcast(const GradContext& context, int) {
  return term::sum_to(context.g, context.operands[0].shape());
}

// The index map of every view: for each element of the result, the operand's element.
void reference_view(const ReferenceContext& context) {
  ArrayRef seen = context.result;
  const ArrayRef& operand = context.operands[0];
  TIDEMARK_CHECK(context.op.view(operand, context.attrs, seen), "a dense operand can be viewed");
  const int64_t bytes = size_of(operand.dtype);
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * seen.strides[axis];
    std::memcpy(context.result.data + i * bytes, seen.data + offset * bytes,
                static_cast<size_t>(bytes));
  });
}

// ---- pieces -------------------------------------------------------------------------------------

TensorType infer_concat(const InferContext& context) {
  const int64_t axis = context.attrs.read().integer();
  TensorType type = context.operands[0];
  Dim total = 0;
  for (const TensorType& piece : context.operands) {
    bool same = piece.shape.rank() == type.shape.rank();
    for (int64_t i = 0; same && i < type.shape.rank(); ++i) {
      same = i == axis || piece.shape[i] == type.shape[i];
    }
    if (!same) {
      throw UserError(cat("concat: ", context.operands[0], " and ", piece,
                          " differ in an axis other than ", axis),
                      context.at, "all other sizes must be equal");
    }
    total = total + piece.shape[axis];
  }
  type.shape.set(axis, total);
  return type;
}

Term grad_concat(const GradContext& context, int index) {
  const int64_t axis = context.attrs.read().integer();
  const Shape& mine = context.operands[static_cast<size_t>(index)].shape();
  DimList begin(static_cast<size_t>(mine.rank())), end;
  const AxisList step(static_cast<size_t>(mine.rank()), 1);
  Dim before = 0;
  for (int i = 0; i < index; ++i)
    before = before + context.operands[static_cast<size_t>(i)].shape()[axis];
  begin[static_cast<size_t>(axis)] = before;
  for (int64_t i = 0; i < mine.rank(); ++i) end.push_back(i == axis ? before + mine[i] : mine[i]);
  return term::slice(context.g, begin, end, step);
}

void reference_concat(const ReferenceContext& context) {
  const int64_t axis = context.attrs.read().integer();
  int64_t begin = 0;
  for (const ArrayRef& piece : context.operands) {
    const Strides strides = contiguous_strides(context.result.shape);
    const int64_t bytes = size_of(piece.dtype);
    reference::for_each_index(piece.shape, [&](std::span<const int64_t> index, int64_t i) {
      int64_t to = begin * strides[static_cast<size_t>(axis)];
      for (size_t a = 0; a < index.size(); ++a) to += index[a] * strides[a];
      std::memcpy(context.result.data + to * bytes, piece.data + i * bytes,
                  static_cast<size_t>(bytes));
    });
    begin += piece.shape[axis];
  }
}

TensorType infer_pad(const InferContext& context) {
  TensorType type = context.operands[0];
  Attrs::Reader read = context.attrs.read();
  const std::span<const Dim> low = read.sizes(), high = read.sizes();
  const std::span<const int64_t> inside = read.integers();
  for (int64_t axis = 0; axis < type.shape.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const Dim size = type.shape[axis];
    const Dim padded = low[i] + high[i] + size;
    type.shape.set(axis, inside[i] == 0 ? padded : padded + larger(0, size - 1) * inside[i]);
  }
  return type;
}

Term grad_pad(const GradContext& context, int) {
  Attrs::Reader read = context.attrs.read();
  const DimList low(read.sizes());
  read.sizes();
  const AxisList inside(read.integers());
  const Shape& shape = context.operands[0].shape();
  DimList end;
  AxisList step;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    step.push_back(inside[i] + 1);
    const Dim size = shape[axis], first = low[i];
    end.push_back(is_less(0, size) ? first + (size - 1) * step[i] + 1 : first);
  }
  return term::slice(context.g, low, end, step);
}

void reference_pad(const ReferenceContext& context) {
  Attrs::Reader read = context.attrs.read();
  const std::span<const Dim> low = read.sizes();
  read.sizes();
  const std::span<const int64_t> inside = read.integers();
  const double value = read.number();
  const int64_t whole = read.integer();
  for (int64_t i = 0; i < context.result.size(); ++i) {
    if (is_float(context.result.dtype))
      reference::write(context.result, i, static_cast<long double>(value));
    else
      reference::write(context.result, i, whole);
  }
  const ArrayRef& x = context.operands[0];
  const Strides strides = contiguous_strides(context.result.shape);
  const int64_t bytes = size_of(x.dtype);
  reference::for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    int64_t to = 0;
    for (size_t a = 0; a < index.size(); ++a)
      to += (int64_t{low[a]} + index[a] * (inside[a] + 1)) * strides[a];
    std::memcpy(context.result.data + to * bytes, x.data + i * bytes, static_cast<size_t>(bytes));
  });
}

TensorType infer_update(const InferContext& context) {
  const TensorType& part = context.operands[1];
  const Shape place = infer_slice(context).shape;
  TIDEMARK_CHECK(part.shape == place && part.dtype == context.operands[0].dtype, "update: ", part,
                 " in the place ", place);
  return context.operands[0];
}

Term grad_update(const GradContext& context, int index) {
  if (index == 1) return slice.apply({context.g}, context.attrs);
  return update.apply({context.g, context.operands[1].like(0)}, context.attrs);
}

void reference_update(const ReferenceContext& context) {
  const int64_t bytes = size_of(context.result.dtype);
  std::memcpy(context.result.data, context.operands[0].data,
              static_cast<size_t>(context.result.size() * bytes));
  Attrs::Reader read = context.attrs.read();
  const std::span<const Dim> begin = read.sizes();
  read.sizes();
  const std::span<const int64_t> step = read.integers();
  const ArrayRef& part = context.operands[1];
  const Strides strides = contiguous_strides(context.result.shape);
  reference::for_each_index(part.shape, [&](std::span<const int64_t> index, int64_t i) {
    int64_t to = 0;
    for (size_t a = 0; a < index.size(); ++a)
      to += (int64_t{begin[a]} + index[a] * step[a]) * strides[a];
    std::memcpy(context.result.data + to * bytes, part.data + i * bytes,
                static_cast<size_t>(bytes));
  });
}

}  // namespace tidemark::ops::rule

namespace tidemark::ops {

TensorType pairs_type(const TensorType& type) {
  if (!is_complex(type.dtype)) return type;
  TensorType pairs{part_dtype(type.dtype), type.shape};
  pairs.shape.push_back(2);
  return pairs;
}

Attrs pairs_attrs(const OpDef& op, const Attrs& attrs, int64_t rank) {
  Attrs made;
  attrs.for_each(op.attrs, [&](const AttrDef& attr, auto items) {
    SmallVec<typename decltype(items)::value_type, 8> list(items);
    if (attr.role == AttrRole::permutation)
      list.push_back(rank);
    else if (attr.is_per_axis())
      list.push_back(attr.holds_sizes() ? 2 : attr.neutral_item());
    if (attr.is_list())
      made.add(std::span<const typename decltype(items)::value_type>(list));
    else
      made.add(list[0]);
  });
  return made;
}

}  // namespace tidemark::ops

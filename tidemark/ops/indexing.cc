#include "tidemark/ops/indexing.h"

#include <algorithm>
#include <cstring>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/types/size.h"

namespace tidemark::ops::rule {
namespace {

void check_indices(const InferContext& context, const TensorType& indices) {
  if (!is_integer(indices.dtype)) {
    throw UserError(cat(context.op.name, ": indices must be integers, got ", indices), context.at,
                    "cast them: td::cast(indices, td::i32)");
  }
}

int64_t axis_of(const Attrs& attrs) { return attrs.read().integer(); }

// The position of index `i` in [0, size); negative indices count from the end.
int64_t place(int64_t i, int64_t size) { return i < 0 ? i + size : i; }

int64_t offset_of(std::span<const int64_t> index, const Strides& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

void copy_element(const ArrayRef& from, int64_t at, const ArrayRef& to, int64_t i) {
  const int64_t bytes = size_of(from.dtype);
  std::memcpy(to.data + i * bytes, from.data + at * bytes, static_cast<size_t>(bytes));
}

// The index of `x` that element `index` of a gather over `axis` reads.
AxisList gathered(std::span<const int64_t> index, int64_t axis, int64_t picked, int64_t picks) {
  AxisList source;
  for (int64_t i = 0; i < axis; ++i) source.push_back(index[static_cast<size_t>(i)]);
  source.push_back(picked);
  for (size_t i = static_cast<size_t>(axis + picks); i < index.size(); ++i)
    source.push_back(index[i]);
  return source;
}

}  // namespace

TensorType infer_gather(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const TensorType& indices = context.operands[1];
  check_indices(context, indices);
  const int64_t axis = axis_of(context.attrs);
  Shape shape;
  for (int64_t i = 0; i < axis; ++i) shape.push_back(x.shape[i]);
  for (const Dim dim : indices.shape) shape.push_back(dim);
  for (int64_t i = axis + 1; i < x.shape.rank(); ++i) shape.push_back(x.shape[i]);
  return {x.dtype, shape};
}

Term grad_gather(const GradContext& context, int index) {
  if (index != 0) return {};
  const Attrs attrs = Attrs().add(axis_of(context.attrs)).add(false);
  return scatter_add.apply({context.operands[0].like(0), context.operands[1], context.g}, attrs);
}

void reference_gather(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const ArrayRef& indices = context.operands[1];
  const int64_t axis = axis_of(context.attrs);
  const Strides strides = contiguous_strides(x.shape);
  const Strides index_strides = contiguous_strides(indices.shape);
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t at =
        offset_of(index.subspan(static_cast<size_t>(axis), static_cast<size_t>(indices.rank())),
                  index_strides);
    const int64_t picked = place(reference::read_integer(indices, at), x.shape[axis]);
    copy_element(x, offset_of(gathered(index, axis, picked, indices.rank()), strides),
                 context.result, i);
  });
}

TensorType infer_take_along_axis(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const TensorType& indices = context.operands[1];
  check_indices(context, indices);
  const int64_t axis = axis_of(context.attrs);
  bool same = x.shape.rank() == indices.shape.rank();
  for (int64_t i = 0; same && i < x.shape.rank(); ++i) {
    same = i == axis || x.shape[i] == indices.shape[i];
  }
  if (!same) {
    throw UserError(cat("take_along_axis: ", x, " and indices ", indices,
                        " differ in an axis other than ", axis),
                    context.at, "all other sizes must be equal");
  }
  return {x.dtype, indices.shape};
}

namespace {

// The numbers 0, 1, ... along one axis; the other axes have size 1.
Term numbers_along(Builder* builder, int64_t axis, const Shape& shape, DType dtype) {
  const Attrs attrs = arange_attrs(shape[axis], dtype);
  Shape along(std::vector<Dim>(static_cast<size_t>(shape.rank()), Dim(1)));
  along.set(axis, shape[axis]);
  return term::reshape({builder, builder->apply(def_of(&arange), {}, attrs)}, along);
}

// The gradient of picking one element along an axis: g where the position equals the index, else 0.
// It is elementwise, so it fuses into the kernel that uses it.
Term put_where_picked(const GradContext& context, int64_t axis, bool from_end) {
  const Term g = context.g, x = context.operands[0];
  const int64_t size = x.shape()[axis];
  const DType dtype = size < INT32_MAX ? DType::i32 : DType::i64;
  Term index = term::cast(context.operands[1], dtype);
  if (from_end)
    index = term::where(term::less(index, index.like(0)), index + static_cast<double>(size), index);
  const Term hit = term::equal(numbers_along(g.builder, axis, x.shape(), dtype), index);
  return term::where(hit, g, g.like(0));
}

}  // namespace

Term grad_take_along_axis(const GradContext& context, int index) {
  if (index != 0) return {};
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  const Term x = context.operands[0], indices = context.operands[1];
  if (indices.shape()[axis] == 1 && !x.shape()[axis].is_traced())
    return put_where_picked(context, axis, read.boolean());
  const Attrs attrs = Attrs().add(axis).add(true);
  return scatter_add.apply({context.operands[0].like(0), context.operands[1], context.g}, attrs);
}

void reference_take_along_axis(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const int64_t axis = axis_of(context.attrs);
  const Strides strides = contiguous_strides(x.shape);
  reference::for_each_index(context.result.shape, [&](std::span<const int64_t> index, int64_t i) {
    AxisList source(index);
    source[static_cast<size_t>(axis)] =
        place(reference::read_integer(context.operands[1], i), x.shape[axis]);
    copy_element(x, offset_of(source, strides), context.result, i);
  });
}

TensorType infer_put(const InferContext& context) {
  const TensorType& array = context.operands[0];
  const TensorType& index = context.operands[1];
  const TensorType& element = context.operands[2];
  check_indices(context, index);
  if (array.shape.rank() == 0)
    throw UserError(cat("put: ", array, " is a scalar: it has no axis to index"), context.at,
                    "give it one: td::reshape(x, {1})");
  Shape wanted = index.shape;
  for (int64_t i = 1; i < array.shape.rank(); ++i) wanted.push_back(array.shape[i]);
  if (element.shape != wanted) {
    throw UserError(cat("put: ", element, " does not fit index ", index, " of ", array), context.at,
                    cat("it must have the shape ", wanted));
  }
  return array;
}

// If an index occurs twice the last one wins, and only that one has a gradient. To find the
// winners, each update puts its number at its index; those that read their own number back have
// won.
Term grad_put(const GradContext& context, int operand) {
  const Term array = context.operands[0], index = context.operands[1],
             element = context.operands[2];
  if (operand == 1) return {};
  if (operand == 0) return put.apply({context.g, index, element.like(0)}, {});
  const Attrs first_axis = Attrs().add(int64_t{0});
  const Term found = gather.apply({context.g, index}, first_axis);
  if (index.shape().rank() == 0) return found;
  const Term ones = term::reshape(index.like(1), {index.shape().size()});
  const Term numbers =
      term::reshape(cumsum.apply({ones}, Attrs().add(int64_t{0}).add(false)), index.shape());
  const Term none{array.builder, array.builder->constant(0, {numbers.dtype(), {array.shape()[0]}})};
  const Term last = gather.apply({put.apply({none, index, numbers}, {}), index}, first_axis);
  Shape spread = index.shape();
  for (int64_t i = 1; i < array.shape().rank(); ++i) spread.push_back(1);
  return term::where(term::reshape(term::equal(last, numbers), spread), found, found.like(0));
}

void reference_put(const ReferenceContext& context) {
  const ArrayRef& array = context.operands[0];
  const ArrayRef& element = context.operands[2];
  for (int64_t i = 0; i < array.size(); ++i) copy_element(array, i, context.result, i);
  const int64_t row = element.size() / std::max<int64_t>(1, context.operands[1].size());
  for (int64_t i = 0; i < element.size(); ++i) {
    const int64_t to = place(reference::read_integer(context.operands[1], i / row), array.shape[0]);
    copy_element(element, i, context.result, to * row + i % row);
  }
}

TensorType infer_scatter(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const TensorType& indices = context.operands[1];
  const TensorType& updates = context.operands[2];
  check_indices(context, indices);
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  const InferContext like_gather{context.op, context.operands, context.attrs, context.at};
  const TensorType wanted =
      read.boolean() ? infer_take_along_axis(like_gather) : infer_gather(like_gather);
  if (updates.shape != wanted.shape) {
    throw UserError(cat(context.op.name, ": updates ", updates, " do not fit indices ", indices,
                        " along axis ", axis, " of ", x),
                    context.at, cat("they must have the shape ", wanted.shape));
  }
  return x;
}

namespace {

// The elements of `from` that the updates of a scatter go to.
Term picked_by(const GradContext& context, Term from) {
  Attrs::Reader read = context.attrs.read();
  const Attrs axis = Attrs().add(read.integer());
  if (!read.boolean()) return gather.apply({from, context.operands[1]}, axis);
  return take_along_axis.apply({from, context.operands[1]}, Attrs(axis).add(true));
}

}  // namespace

Term grad_scatter_add(const GradContext& context, int index) {
  if (index == 1) return {};
  return index == 0 ? context.g : picked_by(context, context.g);
}

// The updates that target the same element compete: those that are equal to the result share its
// gradient evenly, the element of the first operand included.
Term grad_scatter_extremum(const GradContext& context, int index) {
  if (index == 1) return {};
  const Term x = context.operands[0], indices = context.operands[1], updates = context.operands[2];
  const auto picked = [&](Term from) { return picked_by(context, from); };
  const DType dtype = context.g.dtype();
  const Term kept = term::equal(x, context.result);
  const Term won = term::equal(updates, picked(context.result));
  const Term winners =
      scatter_add.apply({term::cast(kept, dtype), indices, term::cast(won, dtype)}, context.attrs);
  // Without winners the result is NaN, which equals nothing.
  const Term share = context.g / winners;
  if (index == 0) return term::where(kept, share, share.like(0));
  const Term shares = picked(share);
  return term::where(won, shares, shares.like(0));
}

// Each factor has the product of the others as its slope: the product of all factors that are not
// zero, divided by it, unless another factor is zero.
Term grad_scatter_mul(const GradContext& context, int index) {
  if (index == 1) return {};
  const Term x = context.operands[0], indices = context.operands[1], updates = context.operands[2];
  const DType dtype = context.g.dtype();
  const auto zero = [](Term factor) { return term::equal(factor, factor.like(0)); };
  const auto without_zeros = [&](Term factor) {
    return term::where(zero(factor), factor.like(1), factor);
  };
  const Term rest =
      scatter_mul.apply({without_zeros(x), indices, without_zeros(updates)}, context.attrs);
  const Term zeros = scatter_add.apply(
      {term::cast(zero(x), dtype), indices, term::cast(zero(updates), dtype)}, context.attrs);
  const Term none = context.g * 0.0;
  const Term if_zero = term::where(term::equal(zeros, zeros.like(1)), context.g * rest, none);
  const Term if_not = term::where(zero(zeros), context.g * rest, none);
  const auto slope = [&](Term factor, Term of_zero, Term of_other) {
    return term::where(zero(factor), of_zero, of_other / without_zeros(factor));
  };
  if (index == 0) return slope(x, if_zero, if_not);
  return slope(updates, picked_by(context, if_zero), picked_by(context, if_not));
}

namespace {

template <class T>
T combined(Routine how, T a, T b) {
  switch (how) {
    case Routine::scatter_max:
      return a != a || a > b ? a : b;
    case Routine::scatter_min:
      return a != a || a < b ? a : b;
    case Routine::scatter_mul:
      return a * b;
    default:
      return a + b;
  }
}

void combine_element(const ReferenceContext& context, int64_t to, int64_t i) {
  const ArrayRef &result = context.result, &updates = context.operands[2];
  const Routine how = context.op.routine;
  if (is_float(result.dtype)) {
    const long double x = reference::read_float(result, to), y = reference::read_float(updates, i);
    // A wider sum or product of f64 would be rounded twice.
    return reference::write(result, to,
                            result.dtype == DType::f64
                                ? combined(how, static_cast<double>(x), static_cast<double>(y))
                                : combined(how, x, y));
  }
  const int64_t a = reference::read_integer(result, to), b = reference::read_integer(updates, i);
  if (how == Routine::scatter_max || how == Routine::scatter_min) {
    const int64_t x = reference::ordered(a, result.dtype), y = reference::ordered(b, result.dtype);
    return reference::write(result, to, combined(how, x, y) == x ? a : b);
  }
  // Sums and products wrap.
  reference::write(
      result, to,
      static_cast<int64_t>(combined(how, static_cast<uint64_t>(a), static_cast<uint64_t>(b))));
}

}  // namespace

void reference_scatter(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  const ArrayRef& indices = context.operands[1];
  const ArrayRef& updates = context.operands[2];
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  const bool along = read.boolean();
  for (int64_t i = 0; i < x.size(); ++i) copy_element(x, i, context.result, i);
  const Strides strides = contiguous_strides(x.shape);
  const Strides index_strides = contiguous_strides(indices.shape);
  reference::for_each_index(updates.shape, [&](std::span<const int64_t> index, int64_t i) {
    AxisList target(index);
    if (along) {
      target[static_cast<size_t>(axis)] = place(reference::read_integer(indices, i), x.shape[axis]);
    } else {
      const int64_t at =
          offset_of(index.subspan(static_cast<size_t>(axis), static_cast<size_t>(indices.rank())),
                    index_strides);
      target = gathered(index, axis, place(reference::read_integer(indices, at), x.shape[axis]),
                        indices.rank());
    }
    combine_element(context, offset_of(target, strides), i);
  });
}

TensorType infer_first_equal(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_indices(context, x);
  if (x.shape.rank() != 1)
    throw UserError(cat("first_equal: takes a list, got ", x), context.at,
                    "reshape it: td::reshape(x, {-1})");
  return {DType::i64, x.shape};
}

void reference_first_equal(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t first = 0;
    while (reference::read_integer(x, first) != reference::read_integer(x, i)) ++first;
    reinterpret_cast<int64_t*>(context.result.data)[i] = first;
  }
}

TensorType infer_cumsum(const InferContext& context) {
  const TensorType& x = context.operands[0];
  return {is_float(x.dtype) ? x.dtype : widened_integer(x.dtype), x.shape};
}

Term grad_cumsum(const GradContext& context, int) {
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  return cumsum.apply({context.g}, Attrs().add(axis).add(!read.boolean()));
}

void reference_cumsum(const ReferenceContext& context) {
  const ArrayRef& x = context.operands[0];
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  const bool reverse = read.boolean();
  const int64_t count = x.shape[axis];
  const int64_t stride = contiguous_strides(x.shape)[static_cast<size_t>(axis)];
  reference::for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    const int64_t here = index[static_cast<size_t>(axis)];
    const int64_t from = reverse ? here : 0;
    const int64_t to = reverse ? count : here + 1;
    long double total = 0;
    uint64_t whole = 0;
    for (int64_t j = from; j < to; ++j) {
      const int64_t at = i + (j - here) * stride;
      if (is_float(x.dtype))
        total += reference::read_float(x, at);
      else
        whole += static_cast<uint64_t>(reference::read_integer(x, at));
    }
    if (is_float(x.dtype))
      reference::write(context.result, i, total);
    else
      reference::write(context.result, i, static_cast<int64_t>(whole));
  });
}

// ---- sorting ------------------------------------------------------------------------------------

TensorType infer_sort(const InferContext& context) {
  TensorType type = context.operands[0];
  if (context.result == 1) type.dtype = DType::i64;
  return type;
}

TensorType infer_top_k(const InferContext& context) {
  TensorType type = infer_sort(context);
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  const Dim k = read.size(), size = type.shape[axis];
  if (k.is_any() || (!size.is_any() && is_less(size, k))) {
    throw UserError(cat("top_k: k = ", written(k), ", but axis ", axis, " of ", context.operands[0],
                        " has ", size, " elements"),
                    context.at, "k goes from 0 to the size of the axis");
  }
  type.shape.set(axis, k);
  return type;
}

// Each element's gradient goes back to its position.
Term grad_sort(const GradContext& context, int) {
  const Attrs attrs = Attrs().add(axis_of(context.attrs)).add(true);
  return scatter_add.apply({context.operands[0].like(0), context.results[1], context.g}, attrs);
}

namespace {

// Whether element i comes before element j in increasing order; NaNs come last.
bool is_before(const ArrayRef& x, int64_t i, int64_t j) {
  if (!is_float(x.dtype)) return reference::read_ordered(x, i) < reference::read_ordered(x, j);
  const long double a = reference::read_float(x, i), b = reference::read_float(x, j);
  return a == a && (b != b || a < b);
}

// Writes as many elements of each row as the results have.
void sort_rows(const ReferenceContext& context, int64_t axis, bool descending) {
  const ArrayRef &x = context.operands[0], &values = context.results[0];
  const int64_t stride = contiguous_strides(x.shape)[static_cast<size_t>(axis)];
  const int64_t length = x.shape[axis], kept = values.shape[axis];
  for (int64_t first = 0; first < x.size(); ++first) {
    if (first / stride % length != 0) continue;  // Not the beginning of a row.
    std::vector<int64_t> places;
    for (int64_t i = 0; i < length; ++i) places.push_back(first + i * stride);
    std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
      return descending ? is_before(x, j, i) : is_before(x, i, j);
    });
    const int64_t to = first / (stride * length) * (stride * kept) + first % stride;
    for (int64_t i = 0; i < kept; ++i) {
      const int64_t place = places[static_cast<size_t>(i)];
      copy_element(x, place, values, to + i * stride);
      reference::write(context.results[1], to + i * stride, (place - first) / stride);
    }
  }
}

}  // namespace

void reference_sort(const ReferenceContext& context) {
  Attrs::Reader read = context.attrs.read();
  const int64_t axis = read.integer();
  sort_rows(context, axis, read.boolean());
}

void reference_top_k(const ReferenceContext& context) {
  sort_rows(context, axis_of(context.attrs), true);
}

}  // namespace tidemark::ops::rule

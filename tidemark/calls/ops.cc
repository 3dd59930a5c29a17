#include "tidemark/calls/ops.h"

#include <algorithm>

#include "tidemark/calls/create.h"
#include "tidemark/calls/take_class.h"
#include "tidemark/device/memory.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/direct.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tensor/variable.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

// The tensors cast to their common dtype.
std::vector<Tensor> alike(std::span<const Tensor> list, std::string_view op, Source at) {
  if (list.empty()) throw UserError(cat(op, ": the list is empty"), at, "give at least one tensor");
  DType common = type_of(list[0], at).dtype;
  for (const Tensor& tensor : list) common = promote(common, type_of(tensor, at).dtype);
  std::vector<Tensor> result;
  for (const Tensor& tensor : list) result.push_back(cast(tensor, common, at));
  return result;
}

Tensor sliced(const Tensor& x, int64_t axis, Dim begin, Dim size, Source at) {
  const Shape& shape = x.shape();
  DimList begins(static_cast<size_t>(shape.rank())), sizes(std::span<const Dim>{shape});
  const AxisList steps(begins.size(), 1);
  begins[static_cast<size_t>(axis)] = begin;
  sizes[static_cast<size_t>(axis)] = size;
  return bind_op(def_of(&ops::slice), {&x, 1}, Attrs().add(begins).add(sizes).add(steps), at);
}

}  // namespace

Tensor cast(const Operand& x, DType dtype, Source at) { return detail::cast_to(x, dtype, at); }

// ---- shape --------------------------------------------------------------------------------------

Tensor reshape(const Operand& x, const Shape& shape, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  // A size of -1 is inferred first, so that the attribute holds the final shape.
  const Attrs asked = Attrs().add(shape);
  const OpDef& op = def_of(&ops::reshape);
  const Shape plain = op.infer({op, {&type, 1}, asked, at}).shape;
  return bind_op(op, {&tensor, 1}, Attrs().add(plain), at);
}

Tensor transpose(const Operand& x, const std::vector<int64_t>& order, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  const int64_t rank = type.shape.rank();
  AxisList axes;
  for (const int64_t axis : order) axes.push_back(plain_axis(axis, rank, "transpose", type, at));
  if (order.size() == 0) {
    for (int64_t axis = rank - 1; axis >= 0; --axis) axes.push_back(axis);
  }
  AxisList sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (sorted.size() != static_cast<size_t>(rank) || sorted[static_cast<size_t>(axis)] != axis) {
      throw UserError(
          cat("transpose: the order must name each of the ", rank, " axes of ", type, " once"), at,
          "leave it out to reverse all axes");
    }
  }
  return bind_op(def_of(&ops::transpose), {&tensor, 1}, Attrs().add(axes), at);
}

Tensor stop_gradient(const Operand& x, Source at) {
  const Tensor tensor = tensor_of(x, at);
  return bind_op(def_of(&ops::stop_gradient), {&tensor, 1}, {}, at);
}

Tensor transfer(const Operand& x, int64_t memory, Source at) {
  const Tensor tensor = tensor_of(x, at);
  if (memory != device::kHostMemory) (void)device::memory(static_cast<int32_t>(memory));
  return bind_op(def_of(&ops::transfer), {&tensor, 1}, Attrs().add(memory), at);
}

Tensor expand_dims(const Operand& x, int64_t axis, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  Shape shape = type.shape;
  shape.insert(plain_axis(axis, shape.rank() + 1, "expand_dims", type, at), 1);
  return reshape(tensor, shape, at);
}

Tensor squeeze(const Operand& x, const Axes& axes, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  const AxisList gone = plain_axes(axes, "squeeze", type, at);
  Shape shape;
  for (int64_t axis = 0; axis < type.shape.rank(); ++axis) {
    const bool named = std::find(gone.begin(), gone.end(), axis) != gone.end();
    const bool one = named && type.shape[axis] == 1;
    if (named && !one && !axes.every()) {
      throw UserError(
          cat("squeeze: axis ", axis, " of ", type, " has size ", type.shape[axis], ", not 1"), at,
          "to take one element of it use x[...]; to merge axes use td::reshape");
    }
    if (!named || !one) shape.push_back(type.shape[axis]);
  }
  return reshape(tensor, shape, at);
}

Tensor broadcast_to(const Operand& x, const Shape& shape, Source at) {
  const Tensor tensor = tensor_of(x, at);
  return bind_op(def_of(&ops::broadcast_to), {&tensor, 1}, Attrs().add(shape), at);
}

Tensor concat(const TensorList& list, int64_t axis, Source at) {
  const std::vector<Tensor> pieces = alike(list.list(), "concat", at);
  const TensorType type = type_of(pieces[0], at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), "concat", type, at);
  return detail::bind_op(def_of(&ops::concat), pieces, Attrs().add(plain), at);
}

Tensor stack(const TensorList& list, int64_t axis, Source at) {
  std::vector<Tensor> pieces;
  for (const Tensor& tensor : list.list()) {
    if (!pieces.empty() && tensor.shape() != list.list()[0].shape()) {
      throw UserError(cat("stack: ", type_of(list.list()[0], at), " and ", type_of(tensor, at),
                          " have different shapes"),
                      at, "give them equal shapes first, or use td::concat");
    }
    pieces.push_back(expand_dims(tensor, axis, at));
  }
  if (pieces.empty()) throw UserError("stack: the list is empty", at, "give at least one tensor");
  return concat(pieces, axis, at);
}

std::vector<Tensor> split(const Operand& x, const std::vector<int64_t>& sizes, int64_t axis,
                          Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), "split", type, at);
  int64_t total = 0;
  for (const int64_t size : sizes) {
    if (size < 0)
      throw UserError(cat("split: a part cannot have ", size, " elements"), at,
                      "sizes must not be negative");
    total += size;
  }
  if (total != type.shape[plain]) {
    throw UserError(cat("split: the sizes add up to ", total, ", axis ", plain, " of ", type,
                        " has ", type.shape[plain]),
                    at, "every element must be in one part");
  }
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(sliced(tensor, plain, begin, size, at));
    begin += size;
  }
  return parts;
}

std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), "split", type, at);
  const Dim size = parts < 1 ? Dim(0) : type.shape[plain] / parts;
  if (parts < 1 || size * parts != type.shape[plain]) {
    throw UserError(
        cat("split: axis ", plain, " of ", type, " does not divide into ", parts, " equal parts"),
        at, "give the sizes: td::split(x, {3, 4}, axis)");
  }
  std::vector<Tensor> list;
  for (int64_t i = 0; i < parts; ++i) list.push_back(sliced(tensor, plain, size * i, size, at));
  return list;
}

std::vector<Tensor> unstack(const Operand& x, int64_t axis, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  const SourceScope scope(at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), "unstack", type, at);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < type.shape[plain]; ++i)
    parts.push_back(squeeze(sliced(tensor, plain, i, 1, at), plain, at));
  return parts;
}

namespace {

// Known only when a function runs, or watched by a tape.
bool is_value(const Operand& x) {
  if (x.tensor() == nullptr) return false;
  const detail::TensorState* const state = detail::TensorState::of(*x.tensor());
  return state != nullptr &&
         (state->kind == detail::TensorState::Kind::traced || detail::is_watched({x.tensor()}));
}

}  // namespace

Tensor pad(const Operand& x, const Padding2& widths, const Operand& value, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  if (static_cast<int64_t>(widths.size()) != type.shape.rank()) {
    throw UserError(
        cat("pad: ", widths.size(), " widths for the ", type.shape.rank(), " axes of ", type), at,
        "give {before, after} for every axis");
  }
  DimList low, high;
  const AxisList inside(widths.size());
  for (const auto& [before, after] : widths) {
    if (before.is_any() || after.is_any())
      throw UserError(cat("pad: widths must not be negative, got {", written(before), ", ",
                          written(after), "}"),
                      at, "use a slice to make a tensor smaller");
    low.push_back(before);
    high.push_back(after);
  }
  if (is_value(value) || detail::is_complex(value)) {
    // The value is known only at run time, or a tape watches it, or it has two parts: pad with
    // zeros, then select.
    const Tensor kept = broadcast_to(full({}, true, DType::boolean, at), type.shape, at);
    return where(pad(kept, widths, false, at), pad(x, widths, 0, at),
                 tensor_of(value, at, type.dtype), at);
  }
  // The value is a number that is known while tracing.
  const Tensor number = [&] {
    const detail::NoTrace eager;
    return tensor_of(value, at, part_dtype(type.dtype));
  }();
  return bind_op(def_of(&ops::pad), {&tensor, 1},
                 Attrs()
                     .add(low)
                     .add(high)
                     .add(inside)
                     .add(number.item<double>(at))
                     .add(number.item<int64_t>(at)),
                 at);
}

namespace {

// Shared by tile and repeat: [a, b] becomes [a, 1, b, 1], is broadcast to [a, m, b, n] and merged.
// If `after`, each new axis follows its own (repeat), else it precedes it (tile).
Tensor multiplied(const Tensor& x, std::span<const Dim> counts, bool after, Source at) {
  const Shape& shape = x.shape();
  Shape open, wide, merged;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const Dim count = counts[static_cast<size_t>(axis)];
    for (Shape* list : {&open, &wide}) {
      if (!after) list->push_back(list == &open ? Dim(1) : count);
      list->push_back(shape[axis]);
      if (after) list->push_back(list == &open ? Dim(1) : count);
    }
    merged.push_back(shape[axis] * count);
  }
  return reshape(broadcast_to(reshape(x, open, at), wide, at), merged, at);
}

}  // namespace

Tensor tile(const Operand& x, const std::vector<int64_t>& counts, Source at) {
  Tensor tensor = tensor_of(x, at);
  for (const int64_t count : counts) {
    if (count < 0)
      throw UserError(cat("tile: counts must not be negative, got ", count), at,
                      "0 gives an empty tensor, 1 leaves an axis as it is");
  }
  std::vector<Dim> all_counts(counts.begin(), counts.end());
  Shape shape = tensor.shape();
  while (shape.rank() < static_cast<int64_t>(counts.size())) shape.insert(0, 1);
  while (all_counts.size() < static_cast<size_t>(shape.rank()))
    all_counts.insert(all_counts.begin(), 1);
  return multiplied(reshape(tensor, shape, at), all_counts, false, at);
}

Tensor repeat(const Operand& x, Dim count, std::optional<int64_t> axis, Source at) {
  Tensor tensor = tensor_of(x, at);
  if (count.is_any())
    throw UserError("repeat: the count must not be negative", at, "0 gives an empty tensor");
  if (!axis) tensor = reshape(tensor, {-1}, at);
  const TensorType type = type_of(tensor, at);
  const int64_t plain = plain_axis(axis.value_or(0), type.shape.rank(), "repeat", type, at);
  DimList counts(static_cast<size_t>(type.shape.rank()), 1);
  counts[static_cast<size_t>(plain)] = count;
  return multiplied(tensor, counts, true, at);
}

Tensor flip(const Operand& x, const Axes& axes, Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  DimList begins(static_cast<size_t>(type.shape.rank()));
  AxisList steps(begins.size(), 1);
  for (const int64_t axis : plain_axes(axes, "flip", type, at)) {
    const Dim size = type.shape[axis];
    begins[static_cast<size_t>(axis)] = is_less(0, size) ? size - 1 : Dim(0);
    steps[static_cast<size_t>(axis)] = -1;
  }
  return bind_op(def_of(&ops::slice), {&tensor, 1}, Attrs().add(begins).add(type.shape).add(steps),
                 at);
}

namespace {

void check_matrices(const Tensor& x, std::string_view op, Source at) {
  if (x.rank() < 2)
    throw UserError(cat(op, ": needs at least two axes, got ", type_of(x, at)), at,
                    "add an axis: td::expand_dims(x, 0)");
}

// The mask column - row <= diagonal over the last two axes.
Tensor below(const Tensor& x, int64_t diagonal, Source at) {
  const SourceScope scope(at);
  return arange(x.shape()[-1]) - diagonal <= expand_dims(arange(x.shape()[-2]), 1);
}

}  // namespace

Tensor tril(const Operand& x, int64_t diagonal, Source at) {
  const Tensor tensor = tensor_of(x, at);
  check_matrices(tensor, "tril", at);
  if (auto part = detail::within_band(tensor, {.most = diagonal}, at)) return *std::move(part);
  return where(below(tensor, diagonal, at), tensor, Operand(0, at), at);
}

Tensor triu(const Operand& x, int64_t diagonal, Source at) {
  const Tensor tensor = tensor_of(x, at);
  check_matrices(tensor, "triu", at);
  if (auto part = detail::within_band(tensor, {.least = diagonal}, at)) return *std::move(part);
  return where(below(tensor, diagonal - 1, at), Operand(0, at), tensor, at);
}

// ---- indexing -----------------------------------------------------------------------------------

Tensor gather(const Operand& x, const Operand& indices, int64_t axis, Source at) {
  const Tensor operands[] = {tensor_of(x, at), tensor_of(indices, at)};
  const TensorType type = type_of(operands[0], at);
  return bind_op(def_of(&ops::gather), operands,
                 Attrs().add(plain_axis(axis, type.shape.rank(), "gather", type, at)), at);
}

Tensor detail::gather_from(const Variable& table, const Operand& indices, int64_t axis, Source at) {
  const auto rows = [&](const Tensor& value) { return gather(value, indices, axis, at); };
  return rows_read(table, rows, at);
}

Tensor take_along_axis(const Operand& x, const Operand& indices, int64_t axis, Source at) {
  const Tensor operands[] = {tensor_of(x, at), tensor_of(indices, at)};
  const TensorType type = type_of(operands[0], at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), "take_along_axis", type, at);
  return bind_op(def_of(&ops::take_along_axis), operands, Attrs().add(plain).add(true), at);
}

Tensor detail::take_class(const Tensor& x, const Tensor& labels, Source at) {
  const Tensor operands[] = {x, labels};
  return bind_op(def_of(&ops::take_along_axis), operands, Attrs().add(x.rank() - 1).add(false), at);
}

Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis,
                   Source at) {
  const Tensor target = tensor_of(x, at);
  const TensorType type = type_of(target, at);
  const Tensor operands[] = {target, tensor_of(indices, at), tensor_of(updates, at, type.dtype)};
  const int64_t plain = plain_axis(axis, type.shape.rank(), "scatter_add", type, at);
  return bind_op(def_of(&ops::scatter_add), operands, Attrs().add(plain).add(false), at);
}

Tensor put(const Operand& array, const Operand& index, const Operand& element, Source at) {
  const DType dtype = type_of(tensor_of(array, at), at).dtype;
  const Tensor rest[] = {tensor_of(index, at), tensor_of(element, at, dtype)};
  return detail::bind_onto(def_of(&ops::put), array, rest, {}, at);
}

Tensor one_hot(const Operand& indices, int64_t depth, DType dtype, Source at) {
  const SourceScope scope(at);
  const Tensor list = tensor_of(indices, at);
  if (!is_integer(list.dtype()))
    throw UserError(cat("one_hot: indices must be integers, got ", type_of(list, at)), at,
                    "cast them: td::cast(indices, td::i32)");
  if (depth < 0)
    throw UserError(cat("one_hot: the depth must not be negative, got ", depth), at,
                    "it is the number of classes");
  return cast(expand_dims(list, -1) == arange(depth), dtype);
}

Tensor first_equal(const Operand& x, Source at) {
  const Tensor tensor = tensor_of(x, at);
  return bind_op(def_of(&ops::first_equal), {&tensor, 1}, {}, at);
}

std::vector<Tensor> detail::bind_along_axis(const AxisCall& call, const Operand& x, int64_t axis,
                                            Source at) {
  const Tensor tensor = tensor_of(x, at);
  const TensorType type = type_of(tensor, at);
  Attrs attrs;
  attrs.add(plain_axis(axis, type.shape.rank(), call.name, type, at)).append(call.attrs);
  return bind_results(def_of(&call.op), {&tensor, 1}, attrs, call.needed, at);
}

// ---- contraction --------------------------------------------------------------------------------

namespace {

Tensor swap_last(const Tensor& x, Source at) {
  AxisList order;
  for (int64_t axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return bind_op(def_of(&ops::transpose), {&x, 1}, Attrs().add(order), at);
}

}  // namespace

Tensor MatmulFunction::operator()(const Operand& a, const Operand& b, MatmulOptions options,
                                  Source at) const {
  Tensor list[] = {tensor_of(a, at), tensor_of(b, at)};
  const OpDef& op = def_of(&ops::matmul);
  const DType promoted = detail::product_dtype(list[0].dtype(), list[1].dtype());
  const DType common = is_complex(promoted) ? promoted : admit(op, promoted, at);
  for (Tensor& operand : list) operand = cast(operand, common, at);
  const bool row = list[0].rank() == 1, column = list[1].rank() == 1;
  if (row) list[0] = expand_dims(list[0], 0, at);
  if (column) list[1] = expand_dims(list[1], 1, at);
  if (options.transpose_a && !row) list[0] = swap_last(list[0], at);
  if (options.transpose_b && !column) list[1] = swap_last(list[1], at);
  Tensor result = bind_op(op, list, {}, at);
  if (column) result = squeeze(result, -1, at);
  if (row) result = squeeze(result, column ? -1 : -2, at);
  return result;
}

Tensor tensordot(const Operand& a, const Operand& b, int64_t axes, Source at) {
  const Tensor x = tensor_of(a, at), y = tensor_of(b, at);
  if (axes < 0 || axes > x.rank() || axes > y.rank()) {
    throw UserError(cat("tensordot: cannot contract ", axes, " axes of ", type_of(x, at), " and ",
                        type_of(y, at)),
                    at, "both must have that many axes");
  }
  Shape shape;
  Dim rows = 1, inner = 1, columns = 1;
  for (int64_t i = 0; i < x.rank() - axes; ++i) {
    shape.push_back(x.shape()[i]);
    rows = rows * x.shape()[i];
  }
  for (int64_t i = 0; i < axes; ++i) {
    const Dim mine = x.shape()[x.rank() - axes + i], theirs = y.shape()[i];
    if (mine != theirs) {
      throw UserError(
          cat("tensordot: the last ", axes, " sizes of ", type_of(x, at), " and the first of ",
              type_of(y, at), " differ (", mine, " and ", theirs, ")"),
          at, "transpose one of them, or contract fewer axes");
    }
    inner = inner * mine;
  }
  for (int64_t i = axes; i < y.rank(); ++i) {
    shape.push_back(y.shape()[i]);
    columns = columns * y.shape()[i];
  }
  return reshape(matmul(reshape(x, {rows, inner}, at), reshape(y, {inner, columns}, at), {}, at),
                 shape, at);
}

namespace {

// Counted from the front, in the order given.
std::vector<int64_t> contracted(const std::vector<int64_t>& axes, const TensorType& type,
                                Source at) {
  plain_axes(axes, "tensordot", type, at);  // Refuses an axis that is given twice.
  std::vector<int64_t> list;
  for (const int64_t axis : axes)
    list.push_back(plain_axis(axis, type.shape.rank(), "tensordot", type, at));
  return list;
}

std::vector<int64_t> axes_besides(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> list;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) list.push_back(axis);
  return list;
}

}  // namespace

Tensor tensordot(const Operand& a, const Operand& b, const TensordotAxes& axes, Source at) {
  const Tensor x = tensor_of(a, at), y = tensor_of(b, at);
  const TensorType left = type_of(x, at), right = type_of(y, at);
  const size_t count = axes.axes_a.size();
  if (count != axes.axes_b.size())
    throw UserError(
        cat("tensordot: ", count, " axes of ", left, " and ", axes.axes_b.size(), " of ", right),
        at, "each axis of the first goes with one of the second");
  const std::vector<int64_t> mine = contracted(axes.axes_a, left, at),
                             theirs = contracted(axes.axes_b, right, at);
  for (size_t i = 0; i < count; ++i) {
    const Dim rows = left.shape[mine[i]], columns = right.shape[theirs[i]];
    if (rows != columns)
      throw UserError(cat("tensordot: axis ", mine[i], " of ", left, " and axis ", theirs[i],
                          " of ", right, " differ (", rows, " and ", columns, ")"),
                      at, "axes that are contracted have the same size");
  }
  std::vector<int64_t> first = axes_besides(mine, x.rank()), last = theirs;
  first.insert(first.end(), mine.begin(), mine.end());
  const std::vector<int64_t> rest = axes_besides(theirs, y.rank());
  last.insert(last.end(), rest.begin(), rest.end());
  return tensordot(transpose(x, first, at), transpose(y, last, at), static_cast<int64_t>(count),
                   at);
}

Tensor outer(const Operand& a, const Operand& b, Source at) {
  const Tensor x = reshape(a, {-1, 1}, at);
  return multiply(x, reshape(b, {-1}, at), at);
}

}  // namespace tidemark

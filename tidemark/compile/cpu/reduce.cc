// Reductions: the order in which axes are folded, and how threads share a reduction with few
// results.
#include <algorithm>
#include <limits>

#include "tidemark/compile/cpu/chunks.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/frame.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"

namespace tidemark::compile {
namespace {

using Columns = BufferRef::Columns;

// A reduction that is ready to run. The operand's axes are [rows..., folded] to fold along lanes,
// and [rows..., folded, columns] to fold along columns; the result is dense in [rows..., columns].
struct Fold {
  const OpDef& op;
  Nest::Order order;
  const ArrayRef& operand;
  const ArrayRef& result;

  int64_t fold_axis() const { return operand.rank() - (order == Nest::Order::lanes ? 1 : 2); }
};

// The operand and the result along the axes of the nest.
Frame frame_of(const Fold& fold) {
  Frame frame;
  for (const Dim dim : fold.operand.shape) frame.extents.push_back(dim);
  frame.add(fold.operand);
  // The dense result has the operand's other axes, and a stride of 0 along the folded one.
  ArrayRef seen = fold.result;
  seen.shape = fold.operand.shape;
  seen.shape.erase(fold.fold_axis());
  seen.strides = contiguous_strides(seen.shape);
  seen.strides.insert(static_cast<size_t>(fold.fold_axis()), 0);
  frame.add(seen);
  frame.collapse(0, fold.fold_axis());
  return frame;
}

Columns columns_of(const Fold& fold, const Frame& frame) {
  const int64_t stride = frame.strides[0].back();
  return stride == size_of(fold.operand.dtype) ? Columns::unit
         : stride == 0                         ? Columns::repeat
                                               : Columns::strided;
}

Nest nest_of(const Fold& fold, Columns columns) {
  return reduce_nest(fold.op, fold.operand.dtype, fold.result.dtype, fold.order, columns);
}

int64_t whole_workspace(const Fold& fold) {
  if (fold.order == Nest::Order::lanes) return 0;
  const Frame frame = frame_of(fold);
  return column_workspace(nest_of(fold, columns_of(fold, frame)), frame, num_threads());
}

// Many rows of a few columns.
void run_short(const Fold& fold, const Frame& frame, Columns columns) {
  constexpr RowBuffer kBuffers[] = {{}, {.by_row = true}};
  const int64_t length = frame.extents.back();
  const uint64_t form =
      static_cast<uint64_t>(length) << 12 | static_cast<uint64_t>(fold.operand.dtype) << 8 |
      static_cast<uint64_t>(fold.result.dtype) << 4 | static_cast<uint64_t>(columns);
  CachedKernel& kernel = cached_kernel({fold.op.self, form}, [&] {
    Nest nest = narrow_nest(nest_of(fold, columns), kBuffers, length).value();
    nest.buffers.back().columns = Columns::unit;  // The result is dense.
    return nest;
  });
  launch_narrow(kernel, frame, kBuffers);
}

void run_whole(const Fold& fold) {
  const Frame frame = frame_of(fold);
  const bool lanes = fold.order == Nest::Order::lanes;
  const Columns columns = columns_of(fold, frame);
  if (lanes && has_short_rows(frame, kShortFold)) return run_short(fold, frame, columns);
  const int32_t known = lanes ? known_row(frame) : 0;
  const uint64_t form = static_cast<uint64_t>(known) << 12 |
                        static_cast<uint64_t>(fold.operand.dtype) << 8 |
                        static_cast<uint64_t>(fold.result.dtype) << 4 |
                        static_cast<uint64_t>(lanes) << 2 | static_cast<uint64_t>(columns);
  CachedKernel& kernel =
      cached_kernel({fold.op.self, form}, [&] { return nest_of(fold, columns); }, known);
  if (lanes)
    launch_lanes(kernel, frame);
  else
    launch_columns(kernel, frame);
}

// How a long reduction with few results is cut; see chunks.h.
struct FoldChunks {
  explicit FoldChunks(const Fold& fold)
      : axis(fold.fold_axis()),
        length(fold.operand.shape[axis]),
        columns(fold.order == Nest::Order::lanes ? 1 : int64_t{fold.operand.shape[-1]}),
        rows(fold.result.size() / std::max<int64_t>(1, columns)),
        chunk(fold.op.gives_index ? 0
                                  : chunk_length(fold.order, length, rows, columns, num_threads())),
        dtype(partial_dtype(fold.op, fold.operand.dtype, fold.result.dtype)) {}

  bool is_cut() const { return chunk > 0; }
  int64_t count() const { return (length + chunk - 1) / chunk; }
  Shape partials() const { return {rows, count(), columns}; }
  // Chunks [first, first + number) of one row, each `size` long, as [number, size, ...].
  ArrayRef part(const ArrayRef& operand, int64_t row, int64_t first, int64_t number,
                int64_t size) const {
    ArrayRef part = operand;
    const auto at = static_cast<size_t>(axis);
    part.data += first * chunk * part.strides[at] * size_of(part.dtype);
    part.shape.set(axis, size);
    part.shape.insert(axis, number);
    part.strides.insert(at, part.strides[at] * chunk);
    for (int64_t outer = axis - 1; outer >= 0; --outer) {
      const int64_t extent = part.shape[outer];
      part.data += row % extent * part.strides[static_cast<size_t>(outer)] * size_of(part.dtype);
      row /= extent;
    }
    for (int64_t outer = 0; outer < axis; ++outer) {
      part.shape.erase(0);
      part.strides.erase(0);
    }
    return part;
  }
  // The shape of the results of this many chunks.
  Shape results(Nest::Order order, int64_t number) const {
    return order == Nest::Order::lanes ? Shape{number} : Shape{number, columns};
  }

  int64_t axis, length, columns, rows, chunk;
  DType dtype;
};

// Calls run(first chunk, number of chunks, length) for the full chunks, then for the shorter last
// one.
template <class Run>
void for_each_part(const FoldChunks& chunks, Run run) {
  const int64_t whole = chunks.length / chunks.chunk;
  run(0, whole, chunks.chunk);
  if (whole < chunks.count()) run(whole, 1, chunks.length - whole * chunks.chunk);
}

int64_t fold_workspace(const Fold& fold) {
  if (fold.result.size() == 0) return 0;
  const FoldChunks chunks(fold);
  if (!chunks.is_cut()) return whole_workspace(fold);
  int64_t most = 0;
  for_each_part(chunks, [&](int64_t first, int64_t number, int64_t size) {
    const ArrayRef one = chunks.part(fold.operand, 0, first, number, size);
    const ArrayRef out = dense_layout({chunks.dtype, chunks.results(fold.order, number)});
    most = std::max(most, whole_workspace({fold.op, fold.order, one, out}));
  });
  if (chunks.dtype != fold.result.dtype)
    most = std::max(most, Temporary::bytes(chunks.dtype, fold.result.shape));
  return Temporary::bytes(chunks.dtype, chunks.partials()) + most;
}

void run_in_chunks(const Fold& fold, const FoldChunks& chunks) {
  const Temporary partials(chunks.dtype, chunks.partials());
  for_each_part(chunks, [&](int64_t first, int64_t number, int64_t size) {
    // There are few rows here: one at a time keeps the chunks of a row together in `partials`.
    for (int64_t row = 0; row < chunks.rows; ++row) {
      ArrayRef out = partials.ref();
      out.data += (row * chunks.count() + first) * chunks.columns * size_of(chunks.dtype);
      out.shape = chunks.results(fold.order, number);
      const ArrayRef one = chunks.part(fold.operand, row, first, number, size);
      run_whole({fold.op, fold.order, one, out});
    }
  });
  if (chunks.dtype == fold.result.dtype)
    return combine_chunks(fold.op.monoid, partials.ref(), fold.result);
  const Temporary total(chunks.dtype, fold.result.shape);
  combine_chunks(fold.op.monoid, partials.ref(), total.ref());
  run_copy(total.ref(), fold.result);
}

void run_fold(const Fold& fold) {
  if (fold.result.size() == 0) return;
  const FoldChunks chunks(fold);
  chunks.is_cut() ? run_in_chunks(fold, chunks) : run_whole(fold);
}

// The array with permuted axes.
ArrayRef permuted(const ArrayRef& array, const AxisList& order) {
  ArrayRef seen = array;
  seen.shape = {};
  seen.strides.clear();
  for (const int64_t axis : order) {
    seen.shape.push_back(array.shape[axis]);
    seen.strides.push_back(array.strides[static_cast<size_t>(axis)]);
  }
  return seen;
}

// Merges axes [begin, end) of an array into one, if they are evenly spaced.
bool merge_axes(ArrayRef& array, int64_t begin, int64_t end) {
  for (int64_t axis = end - 1; axis > begin; --axis) {
    const auto i = static_cast<size_t>(axis);
    if (array.strides[i - 1] != array.strides[i] * int64_t{array.shape[axis]}) return false;
  }
  int64_t extent = 1;
  for (int64_t axis = begin; axis < end; ++axis) extent *= array.shape[axis];
  const int64_t stride = array.strides[static_cast<size_t>(end - 1)];
  for (int64_t axis = end - 1; axis > begin; --axis) {
    array.shape.erase(axis);
    array.strides.erase(static_cast<size_t>(axis));
  }
  array.shape.set(begin, extent);
  array.strides[static_cast<size_t>(begin)] = stride;
  return true;
}

// Axes [begin, end) of an operand, which are folded in some order.
struct FoldAxes {
  int64_t begin = 0, end = 0;
  Nest::Order order = Nest::Order::lanes;
};

// Merges the folded axes into one, and the columns too. Returns false if they are not evenly
// spaced: the operand must be copied first.
bool make_even(ArrayRef& operand, const FoldAxes& axes) {
  return merge_axes(operand, axes.begin, axes.end) &&
         (axes.order == Nest::Order::lanes || merge_axes(operand, axes.begin + 1, operand.rank()));
}

int64_t group_workspace(const OpDef& op, const ArrayRef& operand, const FoldAxes& axes,
                        const ArrayRef& result) {
  ArrayRef even = operand;
  if (make_even(even, axes)) return fold_workspace({op, axes.order, even, result});
  even = dense_layout({operand.dtype, operand.shape});
  make_even(even, axes);
  return Temporary::bytes(operand.dtype, operand.shape) +
         fold_workspace({op, axes.order, even, result});
}

void fold_group(const OpDef& op, const ArrayRef& operand, const FoldAxes& axes,
                const ArrayRef& result) {
  ArrayRef even = operand;
  if (make_even(even, axes)) return run_fold({op, axes.order, even, result});
  const Temporary dense(operand.dtype, operand.shape);
  run_copy(operand, dense.ref());
  even = dense.ref();
  make_even(even, axes);
  run_fold({op, axes.order, even, result});
}

// A sum over axes that repeat one element is that element times their extent. The product is
// computed in f64, where it is exact for all dtypes but f64 itself, and so is rounded once.
void run_repeated_sum(const ArrayRef& operand, int64_t count, const ArrayRef& result) {
  const DType wide = repeated_dtype(result.dtype);
  const PointwiseType type{.compute = {wide, wide}, .result = result.dtype};
  const uint64_t number = number_bits(static_cast<double>(count), count, wide == DType::f64, wide);
  const Input inputs[] = {{.array = &operand}, {.number = number}};
  run_pointwise(def_of(&multiply), inputs, type, result);
}

// A reduction without the axes that need no fold: those of extent 1, and those that repeat one
// element, which are folded by arithmetic. The remaining axes determine the order, so it depends
// only on logical axes and extents.
struct Reduction {
  Reduction(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
            const ArrayRef& result)
      : x(operand), y(result) {
    for (int64_t axis = operand.rank() - 1; axis >= 0; --axis) {
      const bool folds = std::find(axes.begin(), axes.end(), axis) != axes.end();
      const int64_t extent = operand.shape[axis];
      const bool repeated = folds && extent > 1 &&
                            operand.strides[static_cast<size_t>(axis)] == 0 &&
                            op.monoid != Monoid::product && !op.gives_index;
      if (extent == 1 || repeated) {
        if (repeated && op.monoid == Monoid::sum) repeats *= extent;
        x.shape.erase(axis);
        x.strides.erase(static_cast<size_t>(axis));
        for (int64_t& later : folded) --later;
      } else if (folds) {
        folded.insert(0, axis);
      }
    }
    y.shape = {};
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      if (!is_folded(axis)) y.shape.push_back(x.shape[axis]);
    y.strides = contiguous_strides(y.shape);
    // Trailing folded axes are folded along lanes; then the others along columns.
    inner = x.rank();
    outer = folded;
    while (!outer.empty() && outer.back() == inner - 1) {
      --inner;
      outer.pop_back();
    }
  }

  bool has_inner() const { return inner < x.rank(); }
  FoldAxes inner_axes() const { return {inner, x.rank(), Nest::Order::lanes}; }
  // The shape after the inner axes are folded.
  Shape without_inner() const {
    Shape part;
    for (int64_t axis = 0; axis < inner; ++axis) part.push_back(x.shape[axis]);
    return part;
  }
  // [rows..., folded..., columns...]: the axes that are kept before the last folded one are rows.
  ArrayRef by_columns(FoldAxes& axes) const {
    AxisList order;
    const int64_t last = folded.back();
    for (int64_t axis = 0; axis < last; ++axis)
      if (!is_folded(axis)) order.push_back(axis);
    axes.begin = static_cast<int64_t>(order.size());
    for (const int64_t axis : folded) order.push_back(axis);
    axes.end = static_cast<int64_t>(order.size());
    axes.order = Nest::Order::columns;
    for (int64_t axis = last + 1; axis < x.rank(); ++axis) order.push_back(axis);
    return permuted(x, order);
  }
  bool is_folded(int64_t axis) const {
    return std::find(folded.begin(), folded.end(), axis) != folded.end();
  }

  ArrayRef x, y;
  AxisList folded, outer;  // All folded axes; those without the inner ones.
  int64_t inner = 0;       // The first of the trailing folded axes.
  int64_t repeats = 1;
};

// Whether all elements of a dense array are folded, so that they are one axis.
bool folds_all(const ArrayRef& operand, std::span<const int64_t> axes) {
  return axes.size() == static_cast<size_t>(operand.rank()) && operand.size() > 1 &&
         operand.is_contiguous();
}
ArrayRef flat(const ArrayRef& operand) {
  return {operand.data, operand.dtype, {operand.size()}, {1}};
}
ArrayRef single(const ArrayRef& result) { return {result.data, result.dtype, {}, {}}; }

}  // namespace

int64_t reduce_workspace(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                         const ArrayRef& result) {
  if (result.size() == 0 || operand.size() == 0) return 0;
  if (folds_all(operand, axes)) {
    const ArrayRef x = flat(operand), y = single(result);
    return fold_workspace({op, Nest::Order::lanes, x, y});
  }
  const Reduction made(op, operand, axes, result);
  const DType wide = partial_dtype(op, made.x.dtype, made.y.dtype);
  if (made.folded.empty()) return 0;
  if (made.repeats > 1) {
    const ArrayRef once = dense_layout({wide, made.y.shape});
    return Temporary::bytes(wide, made.y.shape) + reduce_workspace(op, made.x, made.folded, once);
  }
  if (made.has_inner() && made.outer.empty())
    return group_workspace(op, made.x, made.inner_axes(), made.y);
  if (made.has_inner()) {
    const ArrayRef once = dense_layout({wide, made.without_inner()});
    return Temporary::bytes(wide, once.shape) +
           std::max(group_workspace(op, made.x, made.inner_axes(), once),
                    reduce_workspace(op, once, made.outer, made.y));
  }
  FoldAxes columns;
  const ArrayRef x = made.by_columns(columns);
  return group_workspace(op, x, columns, made.y);
}

void run_reduce(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                const ArrayRef& result) {
  if (result.size() == 0) return;
  if (operand.size() == 0)
    return run_fill(identity_bits(op.monoid, compute_dtype(result.dtype)), result);
  if (folds_all(operand, axes)) {
    const ArrayRef x = flat(operand), y = single(result);
    return run_fold({op, Nest::Order::lanes, x, y});
  }
  const Reduction made(op, operand, axes, result);
  const DType wide = partial_dtype(op, made.x.dtype, made.y.dtype);
  if (made.repeats > 1) {
    if (made.folded.empty()) return run_repeated_sum(made.x, made.repeats, made.y);
    const Temporary once(wide, made.y.shape);
    run_reduce(op, made.x, made.folded, once.ref());
    return run_repeated_sum(once.ref(), made.repeats, made.y);
  }
  if (made.folded.empty() && !op.gives_index) return run_copy(made.x, made.y);
  if (made.folded.empty()) return run_fill(0, made.y);
  if (made.has_inner() && made.outer.empty())
    return fold_group(op, made.x, made.inner_axes(), made.y);
  if (made.has_inner()) {
    const Temporary once(wide, made.without_inner());
    fold_group(op, made.x, made.inner_axes(), once.ref());
    return run_reduce(op, once.ref(), made.outer, made.y);
  }
  FoldAxes columns;
  const ArrayRef x = made.by_columns(columns);
  fold_group(op, x, columns, made.y);
}

}  // namespace tidemark::compile

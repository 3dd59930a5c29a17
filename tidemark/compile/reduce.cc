// Reductions: which axes fold in which order, and how threads share one that has few results.
#include <algorithm>
#include <limits>

#include "tidemark/compile/chunks.h"
#include "tidemark/compile/eager.h"
#include "tidemark/compile/frame.h"
#include "tidemark/compile/kernels.h"
#include "tidemark/compile/launch.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"

namespace tidemark::compile {
namespace {

using Columns = BufferRef::Columns;

// A reduction ready to run: the operand's axes are [rows..., folded] in the order of lanes, and
// [rows..., folded, columns] in the order of columns; the result is dense in [rows..., columns].
struct Fold {
  const OpDef& op;
  Nest::Order order;
  const ArrayRef& operand;
  const ArrayRef& result;

  int64_t fold_axis() const { return operand.rank() - (order == Nest::Order::lanes ? 1 : 2); }
};

void run_whole(const Fold& fold) {
  Frame frame;
  for (const Dim dim : fold.operand.shape) frame.extents.push_back(dim);
  frame.add(fold.operand);
  // The result, dense, has the operand's other axes, and does not move along the folded one.
  ArrayRef seen = fold.result;
  seen.shape = fold.operand.shape;
  seen.shape.erase(fold.fold_axis());
  seen.strides = contiguous_strides(seen.shape);
  seen.strides.insert(static_cast<size_t>(fold.fold_axis()), 0);
  frame.add(seen);
  frame.collapse(0, fold.fold_axis());
  const bool lanes = fold.order == Nest::Order::lanes;
  const int64_t stride = frame.strides[0].back();
  const Columns columns = stride == size_of(fold.operand.dtype) ? Columns::unit
                          : stride == 0                         ? Columns::repeat
                                                                : Columns::strided;
  const uint64_t form = static_cast<uint64_t>(fold.operand.dtype) << 8 |
                        static_cast<uint64_t>(fold.result.dtype) << 4 |
                        static_cast<uint64_t>(lanes) << 2 | static_cast<uint64_t>(columns);
  CachedKernel& kernel = cached_kernel({fold.op.self, form}, [&] {
    return reduce_nest(fold.op, fold.operand.dtype, fold.result.dtype, fold.order, columns);
  });
  if (lanes)
    launch_lanes(kernel, frame);
  else
    launch_columns(kernel, frame);
}

// See `chunks.h`.
bool run_in_chunks(const Fold& fold) {
  const int64_t axis = fold.fold_axis();
  const int64_t length = fold.operand.shape[axis];
  const int64_t columns = fold.order == Nest::Order::lanes ? 1 : int64_t{fold.operand.shape[-1]};
  const int64_t rows = fold.result.size() / std::max<int64_t>(1, columns);
  const int64_t chunk = chunk_length(fold.order, length, rows, columns, num_threads());
  if (fold.op.gives_index || chunk == 0) return false;

  const int64_t chunks = (length + chunk - 1) / chunk;
  const DType wide = partial_dtype(fold.op, fold.operand.dtype, fold.result.dtype);
  const Temporary partials(wide, {rows, chunks, columns});
  // The operand with its folded axis split in two: rows x whole chunks, then the rest.
  const auto run_part = [&](int64_t first, int64_t count, int64_t size) {
    ArrayRef part = fold.operand;
    const auto at = static_cast<size_t>(axis);
    part.data += first * chunk * part.strides[at] * size_of(part.dtype);
    part.shape.set(axis, size);
    part.shape.insert(axis, count);
    part.strides.insert(at, part.strides[at] * chunk);
    // Rows are few here: one at a time keeps the chunks of each together in `partials`.
    for (int64_t row = 0; row < rows; ++row) {
      ArrayRef one = part;
      int64_t number = row;
      for (int64_t outer = axis - 1; outer >= 0; --outer) {
        const int64_t extent = part.shape[outer];
        one.data +=
            number % extent * part.strides[static_cast<size_t>(outer)] * size_of(part.dtype);
        number /= extent;
      }
      for (int64_t outer = 0; outer < axis; ++outer) {
        one.shape.erase(0);
        one.strides.erase(0);
      }
      ArrayRef out = partials.ref();
      out.data += (row * chunks + first) * columns * size_of(wide);
      out.shape = fold.order == Nest::Order::lanes ? Shape{count} : Shape{count, columns};
      run_whole({fold.op, fold.order, one, out});
    }
  };
  const int64_t whole = length / chunk;
  run_part(0, whole, chunk);
  if (whole < chunks) run_part(whole, 1, length - whole * chunk);
  if (wide == fold.result.dtype) {
    combine_chunks(fold.op.monoid, partials.ref(), fold.result);
  } else {
    const Temporary total(wide, fold.result.shape);
    combine_chunks(fold.op.monoid, partials.ref(), total.ref());
    run_copy(total.ref(), fold.result);
  }
  return true;
}

void run_fold(const Fold& fold) {
  if (fold.result.size() == 0) return;
  if (!run_in_chunks(fold)) run_whole(fold);
}

// The array with its axes in another order.
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

// Axes [begin, end) of an array as one, where they step evenly.
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

// Folds axes [begin, end), which step evenly or are copied until they do.
void fold_group(const OpDef& op, ArrayRef operand, int64_t begin, int64_t end, Nest::Order order,
                const ArrayRef& result) {
  if (!merge_axes(operand, begin, end)) {
    const Temporary dense(operand.dtype, operand.shape);
    run_copy(operand, dense.ref());
    ArrayRef merged = dense.ref();
    merge_axes(merged, begin, end);
    if (order == Nest::Order::columns) merge_axes(merged, begin + 1, merged.rank());
    return run_fold({op, order, merged, result});
  }
  if (order == Nest::Order::columns && !merge_axes(operand, begin + 1, operand.rank())) {
    // Columns that do not step evenly: the axes in front of the last one become rows.
    const Temporary dense(operand.dtype, operand.shape);
    run_copy(operand, dense.ref());
    ArrayRef merged = dense.ref();
    merge_axes(merged, begin + 1, merged.rank());
    return run_fold({op, order, merged, result});
  }
  run_fold({op, order, operand, result});
}

// A sum over axes that repeat one element is that element times their number. The product is made
// in f64, where it is exact for all but f64 itself, and so rounded once.
void run_repeated_sum(const ArrayRef& operand, int64_t count, const ArrayRef& result) {
  const DType wide = is_float(result.dtype) ? DType::f64 : DType::i64;
  const PointwiseType type{.compute = {wide, wide}, .result = result.dtype};
  const uint64_t number = number_bits(static_cast<double>(count), count, wide == DType::f64, wide);
  const Input inputs[] = {{.array = &operand}, {.number = number}};
  run_pointwise(def_of(&multiply), inputs, type, result);
}

}  // namespace

void run_reduce(const OpDef& op, const ArrayRef& operand, std::span<const int64_t> axes,
                const ArrayRef& result) {
  if (result.size() == 0) return;
  if (operand.size() == 0)
    return run_fill(identity_bits(op.monoid, compute_dtype(result.dtype)), result);
  if (axes.size() == static_cast<size_t>(operand.rank()) && operand.size() > 1 &&
      operand.is_contiguous()) {
    const ArrayRef x{operand.data, operand.dtype, {operand.size()}, {1}};
    const ArrayRef y{result.data, result.dtype, {}, {}};
    return run_fold({op, Nest::Order::lanes, x, y});
  }
  // Axes of extent 1 fold nothing, and axes that repeat one element fold by arithmetic: what is
  // left decides the order, so that it depends on logical axes and extents alone.
  ArrayRef x = operand;
  AxisList folded;
  int64_t repeats = 1;
  for (int64_t axis = operand.rank() - 1; axis >= 0; --axis) {
    const bool folds = std::find(axes.begin(), axes.end(), axis) != axes.end();
    const int64_t extent = operand.shape[axis];
    const bool repeated = folds && extent > 1 && operand.strides[static_cast<size_t>(axis)] == 0 &&
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
  ArrayRef y = result;
  y.shape = {};
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (std::find(folded.begin(), folded.end(), axis) == folded.end())
      y.shape.push_back(x.shape[axis]);
  }
  y.strides = contiguous_strides(y.shape);
  if (repeats > 1) {
    if (folded.empty()) return run_repeated_sum(x, repeats, y);
    const Temporary once(partial_dtype(op, x.dtype, y.dtype), y.shape);
    run_reduce(op, x, folded, once.ref());
    return run_repeated_sum(once.ref(), repeats, y);
  }
  if (folded.empty() && !op.gives_index) return run_copy(x, y);
  if (folded.empty()) return run_fill(0, y);

  // Trailing folded axes go by lanes; the others, after them, by columns.
  int64_t inner = x.rank();
  while (!folded.empty() && folded.back() == inner - 1) {
    --inner;
    folded.pop_back();
  }
  const bool has_inner = inner < x.rank();
  if (has_inner && folded.empty()) return fold_group(op, x, inner, x.rank(), Nest::Order::lanes, y);
  if (has_inner) {
    Shape part;
    for (int64_t axis = 0; axis < inner; ++axis) part.push_back(x.shape[axis]);
    const DType wide = partial_dtype(op, x.dtype, y.dtype);
    const Temporary once(wide, part);
    fold_group(op, x, inner, x.rank(), Nest::Order::lanes, once.ref());
    return run_reduce(op, once.ref(), folded, y);
  }
  // [rows..., folded..., columns...]: axes before the last folded one that are kept are rows.
  AxisList order;
  const int64_t last = folded.back();
  for (int64_t axis = 0; axis < last; ++axis) {
    if (std::find(folded.begin(), folded.end(), axis) == folded.end()) order.push_back(axis);
  }
  const auto begin = static_cast<int64_t>(order.size());
  for (const int64_t axis : folded) order.push_back(axis);
  const auto end = static_cast<int64_t>(order.size());
  for (int64_t axis = last + 1; axis < x.rank(); ++axis) order.push_back(axis);
  fold_group(op, permuted(x, order), begin, end, Nest::Order::columns, y);
}

}  // namespace tidemark::compile

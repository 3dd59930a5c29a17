#include "tidemark/calls/ordered.h"

#include <algorithm>

#include "tidemark/calls/create.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/direct.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

void check_has_order(const Tensor& x, std::string_view name, Source at) {
  if (is_complex(x.dtype())) refuse_complex(OnComplex::needs_order, name, at);
}

// `count` elements of the last axis, from `begin` on, as a view.
Tensor part_of_last(const Tensor& x, Dim begin, Dim count, Source at) {
  const auto rank = static_cast<size_t>(x.rank());
  DimList begins(rank, 0);
  begins[rank - 1] = begin;
  Shape sizes = x.shape();
  sizes.set(x.rank() - 1, count);
  return bind_op(def_of(&ops::slice), {&x, 1},
                 Attrs().add(begins).add(sizes).add(AxisList(rank, 1)), at);
}

Tensor element_of_last(const Tensor& x, Dim place, Source at) {
  return squeeze(part_of_last(x, place, 1, at), -1, at);
}

// x with these axes merged into one, the last.
Tensor merged_last(const Tensor& x, const AxisList& axes, Source at) {
  AxisList order;
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    order.push_back(i);
    shape.push_back(x.shape()[i]);
  }
  Dim size = 1;
  for (const int64_t axis : axes) {
    order.push_back(axis);
    size = size * x.shape()[axis];
  }
  shape.push_back(size);
  const bool moves = !std::is_sorted(order.begin(), order.end());
  return reshape(moves ? bind_op(def_of(&ops::transpose), {&x, 1}, Attrs().add(order), at) : x,
                 shape, at);
}

void check_not_empty(std::string_view name, const Tensor& x, Dim size, Source at) {
  if (!is_less(0, size))
    throw UserError(cat(name, ": ", type_of(x, at), " has no elements to choose from"), at,
                    "reduce over axes that have elements");
}

// The size of a result that depends on values: the bound, or in eager code the exact number.
Dim size_of_result(std::string_view name, const SizeOptions& options, const Tensor& count,
                   Source at) {
  if (options.max_size) return *options.max_size;
  if (detail::tracing())
    throw UserError(
        cat(name, ": the number of results is known only when the function runs"), at,
        cat("give a bound, td::", name, "(x, {.max_size = 100}); `size` is their number"));
  return count.item<int64_t>(at);
}

// `elements` at their targets in a list of this size. A target that is not below the size, or not
// wanted, goes into one more element, which is cut off.
Tensor packed(const Tensor& elements, const Tensor& targets, Dim size, Source at) {
  const Tensor room = zeros({size + 1}, elements.dtype());
  return part_of_last(put(room, minimum(targets, Operand(size)), elements), 0, size, at);
}

}  // namespace

Tensor searchsorted(const Operand& sorted, const Operand& values, SearchOptions options,
                    Source at) {
  const SourceScope scope(at);
  Tensor rows = tensor_of(sorted, at), wanted = tensor_of(values, at);
  const DType common = promote(rows.dtype(), wanted.dtype());
  rows = cast(rows, common);
  wanted = cast(wanted, common);
  const Shape shape = wanted.shape();
  if (rows.rank() == 1) wanted = reshape(wanted, {-1});
  const Tensor operands[] = {rows, wanted};
  return reshape(bind_op(def_of(&ops::searchsorted), operands, Attrs().add(options.right), at),
                 shape);
}

Tensor bincount(const Operand& x, const BincountOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor list = tensor_of(x, at);
  if (!is_integer(list.dtype()) || list.rank() != 1)
    throw UserError(cat("bincount: needs a list of whole numbers, got ", type_of(list, at)), at,
                    "cast and flatten it: td::reshape(td::cast(x, td::i32), {-1})");
  if (options.weights && options.weights->shape() != list.shape())
    throw UserError(
        cat("bincount: weights ", type_of(*options.weights, at), " do not fit ", type_of(list, at)),
        at, "give one weight for each number");
  const Tensor numbers = cast(list, DType::i64);
  Dim length = 0;
  if (options.length) {
    length = *options.length;
  } else if (detail::tracing()) {
    throw UserError("bincount: the largest number is known only when the function runs", at,
                    "give the length: td::bincount(x, {.length = 100})");
  } else if (list.size() > 0) {
    length = max(numbers).item<int64_t>(at) + 1;
    if (const auto least = min(numbers).item<int64_t>(at); least < 0)
      throw UserError(cat("bincount: ", least, " is negative"), at,
                      "give a length, td::bincount(x, {.length = 100}), to leave such numbers out");
  }
  if (!options.weights && detail::is_plain(numbers) && !length.is_traced())
    return detail::occurrences(numbers, length, at);
  const Tensor ones = options.weights ? *options.weights : ones_like(numbers);
  const Tensor target = where(logical_or(numbers < 0, numbers >= Operand(length)), length, numbers);
  return part_of_last(scatter_add(zeros({length + 1}, ones.dtype()), target, ones), 0, length, at);
}

Histogram histogram(const Operand& x, const HistogramOptions& options, Source at) {
  const SourceScope scope(at);
  if (options.bins < 1)
    throw UserError(cat("histogram: the number of bins must be positive, got ", options.bins), at,
                    "write {.bins = 10}");
  if (options.low && options.high && *options.high < *options.low)
    throw UserError(cat("histogram: low = ", *options.low, " is above high = ", *options.high), at,
                    "exchange them");
  const Tensor given = reshape(tensor_of(x, at), {-1});
  check_has_order(given, "histogram", at);
  const Tensor list = is_float(given.dtype()) ? given : cast(given, DType::f64);
  const bool some = is_less(0, list.shape()[0]);
  const auto end_of = [&](std::optional<double> named, const ReduceOp& op, double otherwise) {
    if (named || !some) return constant(named.value_or(otherwise), DType::f64);
    return cast(op(list), DType::f64);
  };
  const Tensor least = end_of(options.low, min, 0), most = end_of(options.high, max, 1);
  const Tensor flat = least == most;
  const Tensor low = where(flat, least - 0.5, least), high = where(flat, most + 0.5, most);
  const Tensor numbers = arange(options.bins + 1);
  const Tensor inner =
      cast(numbers, DType::f64) * ((high - low) / static_cast<double>(options.bins)) + low;
  const Tensor edges = cast(where(numbers == options.bins, high, inner), list.dtype());
  if (const std::optional<Tensor> counts = detail::between_edges(list, edges, at))
    return {*counts, edges};
  const Tensor after = searchsorted(edges, list, {.right = true}) - 1;
  const Tensor bin =
      where(list == element_of_last(edges, options.bins, at), options.bins - 1, after);
  return {bincount(bin, {.length = Dim(options.bins)}, at), edges};
}

namespace detail {

Tensor median_of(const Tensor& x, const AxisList& axes, Keep keep) {
  const Source at = *SourceScope::current();  // ReduceFunction holds one.
  check_has_order(x, "median", at);
  const Tensor rows = merged_last(is_float(x.dtype()) ? x : cast(x, DType::f64), axes, at);
  const Dim size = rows.shape()[-1];
  check_not_empty("median", x, size, at);
  const Tensor sorted = sort(rows, -1);
  const Tensor below = element_of_last(sorted, (size - 1) / 2, at);
  const Tensor above = element_of_last(sorted, size / 2, at);
  const Tensor last = element_of_last(sorted, size - 1, at);
  const Tensor both = below + above;  // May be too large where half of it is not.
  const Tensor middle = where(isinf(both), below * 0.5 + above * 0.5, both * 0.5);
  Tensor result = where(isnan(last), last, middle);
  if (keep == Keep::yes)
    for (const int64_t axis : axes) result = expand_dims(result, axis);
  return result;
}

}  // namespace detail

Tensor quantile(const Operand& x, const Operand& q, std::optional<int64_t> axis,
                QuantileOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at), shares = cast(tensor_of(q, at, DType::f64), DType::f64);
  if (!detail::tracing() && shares.size() > 0) {
    const double least = min(shares).item<double>(at), most = max(shares).item<double>(at);
    if (!(least >= 0 && most <= 1))
      throw UserError(cat("quantile: q goes from 0 to 1, got ", least < 0 ? least : most), at,
                      "the median is 0.5; divide percentages by 100");
  }
  check_has_order(given, "quantile", at);
  const DType real = is_float(given.dtype()) ? given.dtype() : DType::f64;
  const Tensor tensor = axis ? given : reshape(given, {-1});
  const int64_t plain =
      plain_axis(axis.value_or(0), tensor.rank(), "quantile", type_of(tensor, at), at);
  const Tensor rows =
      merged_last(cast(tensor, is_low_precision(real) ? DType::f32 : real), AxisList{plain}, at);
  const Dim size = rows.shape()[-1];
  check_not_empty("quantile", tensor, size, at);
  const Tensor sorted = sort(rows, -1), place = reshape(shares, {-1}) * Operand(size - 1);
  const auto at_place = [&](const Tensor& position) {
    return gather(sorted, cast(position, DType::i64), -1);
  };
  const auto between = [&] {
    const Tensor low = floor(place), below = at_place(low), above = at_place(ceil(place));
    const Tensor part =
        options.method == Interpolation::midpoint ? where(place == low, 0.0, 0.5) : place - low;
    const Tensor share = cast(part, sorted.dtype()), apart = above - below;
    // Equal ends are taken as they are: infinities have no difference. From the nearer end, so that
    // the result never passes the other.
    const Tensor mixed = where(share < 0.5, below + apart * share, above - apart * (1 - share));
    return where(below == above, below, mixed);
  };
  const auto chosen = [&] {
    switch (options.method) {
      case Interpolation::lower:
        return at_place(floor(place));
      case Interpolation::higher:
        return at_place(ceil(place));
      case Interpolation::nearest:
        return at_place(round(place));
      default:
        return between();
    }
  };
  const Tensor last = part_of_last(sorted, size - 1, 1, at);
  const Tensor found = cast(where(isnan(last), last, chosen()), real);
  // The axis of q comes first, in its own shape.
  AxisList order = {found.rank() - 1};
  Shape shape = shares.shape();
  for (int64_t i = 0; i + 1 < found.rank(); ++i) {
    order.push_back(i);
    shape.push_back(found.shape()[i]);
  }
  return reshape(bind_op(def_of(&ops::transpose), {&found, 1}, Attrs().add(order), at), shape);
}

Unique unique(const Operand& x, SizeOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor list = reshape(tensor_of(x, at), {-1});
  const Dim size = list.shape()[0];
  if (!is_less(0, size)) {
    const Dim none = options.max_size.value_or(0);
    return {zeros({none}, list.dtype()), zeros({0}, DType::i64), zeros({none}, DType::i64),
            zeros({}, DType::i64)};
  }
  if (!options.max_size && detail::is_plain(list)) {
    const detail::Distinct found = detail::distinct(list, tensor_of(x, at).shape(), at);
    return {found.values, found.inverse, found.counts, found.size};
  }
  const Tensor sorted = sort(list), order = argsort(list);
  const Tensor later = part_of_last(sorted, 1, size - 1, at);
  const Tensor earlier = part_of_last(sorted, 0, size - 1, at);
  // NaNs count as equal.
  const Tensor differs =
      logical_and(later != earlier, logical_not(logical_and(later != later, earlier != earlier)));
  const Tensor rank = concat({zeros({1}, DType::i64), cumsum(differs)});
  const Tensor count = element_of_last(rank, size - 1, at) + 1;
  const Dim room = size_of_result("unique", options, count, at);
  return {.values = packed(sorted, rank, room, at),
          .inverse = reshape(put(zeros({size}, DType::i64), order, rank), tensor_of(x, at).shape()),
          .counts = bincount(rank, {.length = room}, at),
          .size = count};
}

Nonzero nonzero(const Operand& x, SizeOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor tensor = tensor_of(x, at);
  if (!options.max_size && detail::is_plain(tensor)) {
    Tensor indices =
        detail::true_indices(tensor.dtype() == DType::boolean ? tensor : tensor != 0, at);
    const int64_t count = indices.shape()[0];
    return {std::move(indices), detail::literal(DType::i64, 0, count, at)};
  }
  const Tensor hits = reshape(tensor, {-1}) != 0;
  const Tensor running = cumsum(hits);
  const Tensor count = sum(hits);
  const Dim room = size_of_result("nonzero", options, count, at);
  const Tensor targets = where(hits, running - 1, room);
  const Tensor flat = packed(arange(hits.shape()[0]), targets, room, at);
  std::vector<Tensor> columns;
  Tensor rest = flat;
  for (int64_t axis = tensor.rank() - 1; axis >= 0; --axis) {
    const Operand size(larger(tensor.shape()[axis], 1));
    columns.insert(columns.begin(), axis == 0 ? rest : rest % size);
    if (axis > 0) rest = floor_divide(rest, size);
  }
  if (columns.empty()) return {zeros({room, 0}, DType::i64), count};
  return {stack(columns, 1), count};
}

}  // namespace tidemark

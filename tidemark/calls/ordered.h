// Searches, counts, quantiles and distinct elements: what depends on the order of elements.
//
// The sizes of some results depend on values. Eager code gets the exact size. In a function the
// size is `max_size`, and `size` says how many elements there are: elements beyond it are 0, and
// those that do not fit are left out.
#pragma once

#include "tidemark/calls/ops.h"

namespace tidemark {

struct SearchOptions {
  bool right = false;  // After equal elements, not before them.
};
// Where values would be inserted in sorted rows: i64. One row serves all values; several rows are
// the last axis of `sorted`, whose other axes are those of the values. NaNs are larger than all
// numbers.
Tensor searchsorted(const Operand& sorted, const Operand& values, SearchOptions options = {},
                    Source at = Source::here());

struct BincountOptions {
  std::optional<Tensor> weights = {};
  // Default, in eager code: the largest element plus 1.
  std::optional<Dim> length = {};
};
// How often each of 0, 1, ... occurs in a list of whole numbers, or the sum of its weights. Numbers
// outside the length are not counted.
Tensor bincount(const Operand& x, const BincountOptions& options = {}, Source at = Source::here());

struct HistogramOptions {
  int64_t bins = 10;
  // Default: the least and the largest element.
  std::optional<double> low = {}, high = {};
};
struct Histogram {
  Tensor counts, edges;
};
// The number of elements in each of several intervals of equal width, and the ends of the
// intervals. Only the last one includes its upper end.
Histogram histogram(const Operand& x, const HistogramOptions& options = {},
                    Source at = Source::here());

namespace detail {
Tensor median_of(const Tensor& x, const AxisList& axes, Keep keep);
}  // namespace detail
// The middle element, or the mean of the two in the middle; NaN if there is one.
inline constexpr ReduceFunction median = {detail::median_of, "median"};

enum class Interpolation { linear, lower, higher, midpoint, nearest };
struct QuantileOptions {
  Interpolation method = Interpolation::linear;
};
// The value below which a share q of the elements lies, for each q in [0, 1]; NaN if there is one.
// The axes of q come first. Without an axis, of the flattened tensor.
Tensor quantile(const Operand& x, const Operand& q, std::optional<int64_t> axis = {},
                QuantileOptions options = {}, Source at = Source::here());

struct SizeOptions {
  std::optional<Dim> max_size = {};
};
struct Unique {
  Tensor values, inverse, counts, size;
};
// The distinct elements in increasing order; for each element of x its position among them; how
// often each occurs; and their number.
Unique unique(const Operand& x, SizeOptions options = {}, Source at = Source::here());
struct Nonzero {
  Tensor indices, size;
};
// The indices of the elements that are not zero or false, as the rows of a matrix, and their
// number.
Nonzero nonzero(const Operand& x, SizeOptions options = {}, Source at = Source::here());

}  // namespace tidemark

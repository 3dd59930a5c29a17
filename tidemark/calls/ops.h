// Functions on tensors, besides the op objects of ops/pointwise.h and ops/reduce.h (td::exp,
// td::maximum, td::sum, td::softmax, ...). Negative axes count from the end.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/ops/indexing.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/special.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {
namespace detail {
Tensor gather_from(const Variable& table, const Operand& indices, int64_t axis, Source at);
}

Tensor cast(const Operand& x, DType dtype, Source at = Source::here());

// ---- shape --------------------------------------------------------------------------------------

// One size may be -1; it is inferred.
Tensor reshape(const Operand& x, const Shape& shape, Source at = Source::here());
// All axes reversed, or in the given order.
Tensor transpose(const Operand& x, const std::vector<int64_t>& order = {},
                 Source at = Source::here());
// The same memory; gradients treat it as a constant.
Tensor stop_gradient(const Operand& x, Source at = Source::here());
// The tensor copied to the memory of this number, 0 being the host's; itself where it lies there.
Tensor transfer(const Operand& x, int64_t memory, Source at = Source::here());
Tensor expand_dims(const Operand& x, int64_t axis, Source at = Source::here());
// Removes the named axes, which have size 1, or all axes of size 1.
Tensor squeeze(const Operand& x, const Axes& axes = {}, Source at = Source::here());
Tensor broadcast_to(const Operand& x, const Shape& shape, Source at = Source::here());
Tensor concat(const TensorList& list, int64_t axis = 0, Source at = Source::here());
Tensor stack(const TensorList& list, int64_t axis = 0, Source at = Source::here());
// Into `parts` equal views, or into views of the given sizes.
std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis = 0,
                          Source at = Source::here());
std::vector<Tensor> split(const Operand& x, const std::vector<int64_t>& sizes, int64_t axis = 0,
                          Source at = Source::here());
std::vector<Tensor> unstack(const Operand& x, int64_t axis = 0, Source at = Source::here());
// The number of elements to add before and after each axis.
using Padding2 = std::vector<std::pair<Dim, Dim>>;
Tensor pad(const Operand& x, const Padding2& widths, const Operand& value = 0,
           Source at = Source::here());
// The tensor repeated along each axis.
Tensor tile(const Operand& x, const std::vector<int64_t>& counts, Source at = Source::here());
// Each element repeated `count` times in a row; without an axis, of the flattened tensor. A tensor
// of one element is broadcast, not copied.
Tensor repeat(const Operand& x, Dim count, std::optional<int64_t> axis = {},
              Source at = Source::here());
Tensor flip(const Operand& x, const Axes& axes = {}, Source at = Source::here());
// The lower (upper) triangle of the last two axes, zeros elsewhere; `diagonal` 0 is the main one.
Tensor tril(const Operand& x, int64_t diagonal = 0, Source at = Source::here());
Tensor triu(const Operand& x, int64_t diagonal = 0, Source at = Source::here());
// The elements of a diagonal of the last two axes, as a view; `offset` counts columns to the right.
Tensor diagonal(const Operand& x, int64_t offset = 0, Source at = Source::here());
// A matrix with the vector x on a diagonal, or a diagonal of the matrix x.
Tensor diag(const Operand& x, int64_t offset = 0, Source at = Source::here());
// Elements moved by `shift` places along an axis; those pushed out at the end return at the front.
// Without an axis, of the flattened tensor.
Tensor roll(const Operand& x, int64_t shift, std::optional<int64_t> axis = {},
            Source at = Source::here());
// Along several axes, by a shift for each or by one for all. Shifts of the same axis add up.
Tensor roll(const Operand& x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes,
            Source at = Source::here());
enum class Indexing { xy, ij };
struct MeshgridOptions {
  Indexing indexing = Indexing::xy;
};
// Coordinates of a grid, as views: tensor number i has the values of vector number i along its
// axis. With `xy` the first two axes are exchanged.
std::vector<Tensor> meshgrid(const TensorList& list, MeshgridOptions options = {},
                             Source at = Source::here());
// Differences of neighbours along an axis, taken n times.
Tensor diff(const Operand& x, int64_t n = 1, int64_t axis = -1, Source at = Source::here());

// ---- indexing -----------------------------------------------------------------------------------

Tensor gather(const Operand& x, const Operand& indices, int64_t axis = 0,
              Source at = Source::here());
// Of a Variable. Under an Autocast only what is gathered is converted.
template <std::same_as<Variable> V>
Tensor gather(const V& table, const Operand& indices, int64_t axis = 0,
              Source at = Source::here()) {
  return detail::gather_from(table, indices, axis, at);
}
Tensor take_along_axis(const Operand& x, const Operand& indices, int64_t axis,
                       Source at = Source::here());
// x with updates added at the indices; equal indices add up in order.
Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates,
                   int64_t axis = 0, Source at = Source::here());
// The array with the slices of its first axis at `index` replaced; if an index occurs twice, the
// last one wins. In place if the array was moved in and is not shared.
Tensor put(const Operand& array, const Operand& index, const Operand& element,
           Source at = Source::here());
// 1 at each index, 0 elsewhere, along a new last axis; an index out of range gives zeros.
Tensor one_hot(const Operand& indices, int64_t depth, DType dtype = DType::f32,
               Source at = Source::here());
// For each element of a list of whole numbers, the position of the first equal element, i64: [0, 1,
// 0] for [7, 3, 7].
Tensor first_equal(const Operand& x, Source at = Source::here());
struct RunningOptions {
  bool exclusive = false;  // Element i is left out of result i.
  bool reverse = false;    // From the last element to the first.
};
// Running sums along an axis, in order.
Tensor cumsum(const Operand& x, int64_t axis = 0, RunningOptions options = {},
              Source at = Source::here());

namespace detail {
// A call of an op that works along one axis of one operand.
struct AxisCall {
  const NamedOp& op;
  std::string_view name;  // Of the function, for errors.
  Attrs attrs = {};       // The attributes after the axis.
  uint32_t needed = 1;    // Bit i: result i is needed.
};
std::vector<Tensor> bind_along_axis(const AxisCall& call, const Operand& x, int64_t axis,
                                    Source at);
}  // namespace detail

struct SortOptions {
  bool descending = false;
};
// The elements along an axis in increasing or decreasing order. The sort is stable; NaNs are larger
// than all numbers.
inline Tensor sort(const Operand& x, int64_t axis = -1, SortOptions options = {},
                   Source at = Source::here()) {
  return detail::bind_along_axis({ops::sort, "sort", Attrs().add(options.descending)}, x, axis,
                                 at)[0];
}
// The positions in x, along the axis, of the elements of sort(x): i64.
inline Tensor argsort(const Operand& x, int64_t axis = -1, SortOptions options = {},
                      Source at = Source::here()) {
  return detail::bind_along_axis({ops::sort, "argsort", Attrs().add(options.descending), 2}, x,
                                 axis, at)[1];
}
struct TopK {
  Tensor values, indices;
};
// The k largest elements along an axis, the largest first, and their positions (i64). Of equal
// elements the first comes first; NaNs are larger than all numbers.
inline TopK top_k(const Operand& x, Dim k, int64_t axis = -1, Source at = Source::here()) {
  const std::vector<Tensor> both =
      detail::bind_along_axis({ops::top_k, "top_k", Attrs().add(k), 3}, x, axis, at);
  return {both[0], both[1]};
}

// ---- contraction --------------------------------------------------------------------------------

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
inline constexpr struct MatmulFunction {
  // A vector is a row on the left and a column on the right.
  Tensor operator()(const Operand& a, const Operand& b, MatmulOptions options = {},
                    Source at = Source::here()) const;
} matmul;
// Sums products over the last `axes` axes of a and the first ones of b.
Tensor tensordot(const Operand& a, const Operand& b, int64_t axes = 2, Source at = Source::here());
struct TensordotAxes {
  std::vector<int64_t> axes_a = {}, axes_b = {};  // Each axis of a goes with one of b, in order.
};
// Sums products over these axes. The result has the other axes of a, then those of b.
Tensor tensordot(const Operand& a, const Operand& b, const TensordotAxes& axes,
                 Source at = Source::here());
// Products summed over the letters that the result leaves out: "bij,bjk->bik". A letter names an
// axis; one that occurs twice in an operand selects its diagonal. "..." stands for the axes that
// have no letter, which broadcast. Without "->" the result has the axes of "...", then the letters
// that occur once, in alphabetical order. Several operands are multiplied two at a time, in the
// order that takes the fewest operations and bytes.
Tensor einsum(std::string_view subscripts, const Operand& x, Source at = Source::here());
Tensor einsum(std::string_view subscripts, const Operand& a, const Operand& b,
              Source at = Source::here());
Tensor einsum(std::string_view subscripts, const TensorList& list, Source at = Source::here());
Tensor outer(const Operand& a, const Operand& b, Source at = Source::here());
// Every element of a times the whole of b, in its place.
Tensor kron(const Operand& a, const Operand& b, Source at = Source::here());
// Vector products of the three elements along an axis.
Tensor cross(const Operand& a, const Operand& b, int64_t axis = -1, Source at = Source::here());
// Distances between rows: [..., n, d] and [..., m, d] give [..., n, m]. The slope at distance 0 is
// 0.
Tensor cdist(const Operand& a, const Operand& b, Source at = Source::here());

// ---- reductions made of others ------------------------------------------------------------------

struct ReduceFunction {
  Tensor (*body)(const Tensor& x, const AxisList& axes, Keep keep);
  const char* name;
  Tensor operator()(const Operand& x, const Axes& axes = {}, Keep keep = Keep::no,
                    Source at = Source::here()) const;
};
namespace detail {
Tensor mean_of(const Tensor& x, const AxisList& axes, Keep keep);
Tensor var_of(const Tensor& x, const AxisList& axes, Keep keep);
Tensor std_of(const Tensor& x, const AxisList& axes, Keep keep);
Tensor logsumexp_of(const Tensor& x, const AxisList& axes, Keep keep);
Tensor norm_of(const Tensor& x, const AxisList& axes, Keep keep);
}  // namespace detail
inline constexpr ReduceFunction mean = {detail::mean_of, "mean"};
inline constexpr ReduceFunction var = {detail::var_of, "var"};
inline constexpr ReduceFunction std = {detail::std_of, "std"};
inline constexpr ReduceFunction logsumexp = {detail::logsumexp_of, "logsumexp"};
// The square root of the sum of squares.
inline constexpr ReduceFunction norm = {detail::norm_of, "norm"};

// ---- comparison of floats -----------------------------------------------------------------------

struct NanToNumOptions {
  double nan = 0;
  // Default: the largest and the least finite number of the dtype.
  std::optional<double> posinf = {}, neginf = {};
};
// x with NaN and infinities replaced.
Tensor nan_to_num(const Operand& x, const NanToNumOptions& options = {},
                  Source at = Source::here());
// The neighbour of a towards b, among the numbers of the dtype. Its slope by a is 1.
Tensor nextafter(const Operand& a, const Operand& b, Source at = Source::here());
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
// Where |a - b| <= atol + rtol |b|; equal infinities are close.
Tensor isclose(const Operand& a, const Operand& b, CloseOptions options = {},
               Source at = Source::here());
// Whether all elements are.
Tensor allclose(const Operand& a, const Operand& b, CloseOptions options = {},
                Source at = Source::here());

// ---- activations, norms, losses -----------------------------------------------------------------

Tensor leaky_relu(const Operand& x, double slope = 0.01, Source at = Source::here());

struct NormOptions {
  std::optional<Tensor> scale = {}, bias = {};
  double epsilon = 1e-5;
};
// Over the last axis.
Tensor layer_norm(const Operand& x, const NormOptions& options = {}, Source at = Source::here());
Tensor rms_norm(const Operand& x, const NormOptions& options = {}, Source at = Source::here());
// Rows of the table, one for each id.
Tensor embedding(const Operand& table, const Operand& ids, Source at = Source::here());
template <std::same_as<Variable> V>
Tensor embedding(const V& table, const Operand& ids, Source at = Source::here()) {
  return gather(table, ids, 0, at);
}
struct AttentionOptions {
  bool causal = false;
  std::optional<double> scale = {};  // Default: 1 / sqrt of the last size.
  std::optional<Tensor> mask = {};   // Bool, broadcast to [..., queries, keys]: false masks a key.
};
// softmax(q k' scale) v over the last two axes: [..., tokens, features]. A query whose keys are all
// masked gives zeros.
Tensor attention(const Operand& q, const Operand& k, const Operand& v,
                 AttentionOptions options = {}, Source at = Source::here());
// The mean of squared differences.
Tensor mse(const Operand& y_true, const Operand& y_pred, Source at = Source::here());
// The mean of -log softmax(logits)[label] over the last axis; labels are integers.
Tensor sparse_softmax_cross_entropy(const Operand& labels, const Operand& logits,
                                    Source at = Source::here());

}  // namespace tidemark

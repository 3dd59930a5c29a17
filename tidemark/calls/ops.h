// The functions users call, beside the op objects of ops/pointwise.h and ops/reduce.h (td::exp,
// td::maximum, td::sum, td::softmax, ...). Negative axes count from the end.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {

Tensor cast(const Operand& x, DType dtype, Source at = Source::here());

// ---- shape --------------------------------------------------------------------------------------

// One size may be -1: it is found.
Tensor reshape(const Operand& x, const Shape& shape, Source at = Source::here());
// All axes reversed, or in the given order.
Tensor transpose(const Operand& x, std::initializer_list<int64_t> order = {},
                 Source at = Source::here());
// The same bytes, taken for a constant by gradients.
Tensor stop_gradient(const Operand& x, Source at = Source::here());
Tensor expand_dims(const Operand& x, int64_t axis, Source at = Source::here());
// The axes of size 1 that are named, or all of them, gone.
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
// How many elements to put before and after each axis.
using Padding2 = std::vector<std::pair<Dim, Dim>>;
Tensor pad(const Operand& x, const Padding2& widths, const Operand& value = 0,
           Source at = Source::here());
// The whole repeated along each axis.
Tensor tile(const Operand& x, const std::vector<int64_t>& counts, Source at = Source::here());
// Each element `count` times, one after another; without an axis, of the flattened tensor. A tensor
// of one element is repeated without copying it.
Tensor repeat(const Operand& x, Dim count, std::optional<int64_t> axis = {},
              Source at = Source::here());
Tensor flip(const Operand& x, const Axes& axes = {}, Source at = Source::here());
// The lower (upper) triangle of the last two axes, zeros elsewhere; `diagonal` 0 is the main one.
Tensor tril(const Operand& x, int64_t diagonal = 0, Source at = Source::here());
Tensor triu(const Operand& x, int64_t diagonal = 0, Source at = Source::here());

// ---- indexing -----------------------------------------------------------------------------------

Tensor gather(const Operand& x, const Operand& indices, int64_t axis = 0,
              Source at = Source::here());
Tensor take_along_axis(const Operand& x, const Operand& indices, int64_t axis,
                       Source at = Source::here());
// x with updates added at the rows indices point to; repeated indices add up in order.
Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates,
                   int64_t axis = 0, Source at = Source::here());
// The array with the slices of its first axis that the index points at replaced; where an index
// comes twice, the last one stays. In place when the array was moved in and nobody else holds its
// bytes.
Tensor put(const Operand& array, const Operand& index, const Operand& element,
           Source at = Source::here());
// 1 at each index, 0 elsewhere, along a new last axis; an index out of range gives zeros.
Tensor one_hot(const Operand& indices, int64_t depth, DType dtype = DType::f32,
               Source at = Source::here());
// Of a list of whole numbers, i64: for each where the first that is equal stands. [7, 3, 7] gives
// [0, 1, 0].
Tensor first_equal(const Operand& x, Source at = Source::here());
Tensor cumsum(const Operand& x, int64_t axis = 0, Source at = Source::here());

// The elements along an axis in increasing order. Equal elements keep their order, also descending;
// NaNs are larger than all numbers.
struct SortOptions {
  bool descending = false;
};
Tensor sort(const Operand& x, int64_t axis = -1, SortOptions options = {},
            Source at = Source::here());
// Where the elements of sort(x) stand in x along the axis: i64.
Tensor argsort(const Operand& x, int64_t axis = -1, SortOptions options = {},
               Source at = Source::here());
// The k largest elements along an axis, the largest first, and where they stand (i64). Of equal
// ones the first comes first; NaNs are larger than all numbers.
struct TopK {
  Tensor values, indices;
};
TopK top_k(const Operand& x, Dim k, int64_t axis = -1, Source at = Source::here());

// ---- contraction --------------------------------------------------------------------------------

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
inline constexpr struct MatmulFunction {
  // Vectors are taken as a row on the left and a column on the right.
  Tensor operator()(const Operand& a, const Operand& b, MatmulOptions options = {},
                    Source at = Source::here()) const;
} matmul;
// The last `axes` axes of a against the first of b.
Tensor tensordot(const Operand& a, const Operand& b, int64_t axes = 2, Source at = Source::here());
// Products summed over the letters that the result leaves out: "bij,bjk->bik". A letter names an
// axis; one that comes twice in an operand walks its diagonal. Without "->" the result has the
// letters that come once, in the order of the alphabet.
Tensor einsum(std::string_view subscripts, const Operand& x, Source at = Source::here());
Tensor einsum(std::string_view subscripts, const Operand& a, const Operand& b,
              Source at = Source::here());
Tensor outer(const Operand& a, const Operand& b, Source at = Source::here());

enum class Padding { valid, same };
enum class ImageLayout { nhwc, nchw };
struct ConvOptions {
  std::array<int64_t, 2> strides = {1, 1};
  Padding padding = Padding::valid;
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t groups = 1;
  ImageLayout layout = ImageLayout::nhwc;
};
// x is [n, height, width, in] or [n, in, height, width]; w is [height, width, in / groups, out]. An
// NCHW result is a view of the NHWC one that is computed.
Tensor conv2d(const Operand& x, const Operand& w, ConvOptions options = {},
              Source at = Source::here());

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
struct AttentionOptions {
  bool causal = false;
  std::optional<double> scale = {};  // Default: 1 / sqrt of the last size.
  std::optional<Tensor> mask = {};   // Bool, broadcast to [..., queries, keys]: false leaves out.
};
// softmax(q k' scale) v over the last two axes: [..., tokens, features]. A query for which the mask
// leaves no key gives zeros.
Tensor attention(const Operand& q, const Operand& k, const Operand& v,
                 AttentionOptions options = {}, Source at = Source::here());
// The mean of squared differences.
Tensor mse(const Operand& y_true, const Operand& y_pred, Source at = Source::here());
// The mean of -log softmax(logits)[label] over the last axis; labels are integers.
Tensor sparse_softmax_cross_entropy(const Operand& labels, const Operand& logits,
                                    Source at = Source::here());

}  // namespace tidemark

#include "tidemark/calls/callables.h"

#include "tidemark/base/made_once.h"
#include "tidemark/base/text.h"

namespace tidemark {
namespace {

// A function that runs several ops, or none.
struct Composite {
  std::string_view name, arguments, results, brief;
};

constexpr std::string_view kTensor = "tensor";
constexpr std::string_view kReduction = "x: tensor, axes: axes = none, keep: bool = false";
constexpr std::string_view kPool =
    "x: tensor, size: ints = [2, 2], strides: ints = none, padding: valid|same|pairs = valid, "
    "layout: nhwc|nchw = nhwc";
constexpr std::string_view kPool1d =
    "x: tensor, size: int = 2, strides: int = none, padding: valid|same|pairs = valid, "
    "layout: nhwc|nchw = nhwc";
constexpr std::string_view kPool3d =
    "x: tensor, size: ints = [2, 2, 2], strides: ints = none, padding: valid|same|pairs = valid, "
    "layout: nhwc|nchw = nhwc";
constexpr std::string_view kAdaptive = "x: tensor, sizes: ints, layout: nhwc|nchw = nhwc";
constexpr std::string_view kShuffle = "x: tensor, factor: int, layout: nhwc|nchw = nhwc";

constexpr std::string_view kRunning =
    "x: tensor, axis: int = 0, exclusive: bool = false, reverse: bool = false";
constexpr std::string_view kSized = "x: tensor, max_size: size = none";
constexpr std::string_view kSegments = "data: tensor, segments: tensor, count: size = none";

constexpr std::string_view kComplex = "z: tensor";
constexpr std::string_view kTransform =
    "x: tensor, n: int = none, axis: int = -1, norm: backward|ortho|forward = backward";
constexpr std::string_view kTransforms =
    "x: tensor, s: ints = none, axes: ints = none, norm: backward|ortho|forward = backward";

constexpr std::string_view kStructure = "structure";
constexpr std::string_view kMap =
    "f: function, elems: structure, parallel_iterations: int = none, chunk: int|automatic = none";

// In the order of the headers (tests/checks/callables.py compares the two).
constexpr Composite kComposites[] = {
    // calls/ops.h
    {"transfer", "x: tensor, memory: int", kTensor,
     "A copy in the memory of this number; 0 is the host's."},
    {"expand_dims", "x: tensor, axis: int", kTensor, "A new axis of size 1 at this position."},
    {"squeeze", "x: tensor, axes: axes = none", kTensor,
     "The named axes of size 1 removed, or all axes of size 1."},
    {"stack", "list: tensors, axis: int = 0", kTensor, "Tensors one after another on a new axis."},
    {"split", "x: tensor, parts: int, axis: int = 0", "tensors", "Equal parts along an axis."},
    {"split", "x: tensor, sizes: ints, axis: int = 0", "tensors",
     "Parts of these sizes along an axis."},
    {"unstack", "x: tensor, axis: int = 0", "tensors", "The slices of an axis, one by one."},
    {"tile", "x: tensor, counts: ints", kTensor, "The tensor repeated along each axis."},
    {"repeat", "x: tensor, count: size, axis: int = none", kTensor,
     "Each element repeated `count` times in a row; without an axis, of the flattened tensor."},
    {"flip", "x: tensor, axes: axes = none", kTensor,
     "The order of elements reversed along these axes, or along all."},
    {"tril", "x: tensor, diagonal: int = 0", kTensor,
     "The lower triangle of the last two axes, zeros elsewhere."},
    {"triu", "x: tensor, diagonal: int = 0", kTensor,
     "The upper triangle of the last two axes, zeros elsewhere."},
    {"diagonal", "x: tensor, offset: int = 0", kTensor,
     "The elements of a diagonal of the last two axes, as a view."},
    {"diag", "x: tensor, offset: int = 0", kTensor,
     "A matrix with the vector x on a diagonal, or a diagonal of the matrix x."},
    {"roll", "x: tensor, shift: int, axis: int = none", kTensor,
     "Elements moved along an axis; those pushed out at the end return at the front. Without an "
     "axis, of the flattened tensor."},
    {"roll", "x: tensor, shifts: ints, axes: ints", kTensor,
     "Elements moved along several axes, by a shift for each or by one for all."},
    {"meshgrid", "list: tensors, indexing: xy|ij = xy", "tensors",
     "The coordinates of a grid, one tensor for each vector, as views."},
    {"diff", "x: tensor, n: int = 1, axis: int = -1", kTensor,
     "Differences of neighbours along an axis, taken n times."},
    {"one_hot", "indices: tensor, depth: int, dtype: dtype = f32", kTensor,
     "1 at each index, 0 elsewhere, along a new last axis; an index out of range gives zeros."},
    {"tensordot", "a: tensor, b: tensor, axes: int = 2", kTensor,
     "Products summed over the last axes of a and the first axes of b."},
    {"tensordot", "a: tensor, b: tensor, axes_a: ints = none, axes_b: ints = none", kTensor,
     "Products summed over these axes; the result has the other axes of a, then those of b."},
    {"einsum", "subscripts: text, x: tensor", kTensor,
     "Elements summed over the letters that the result leaves out."},
    {"einsum", "subscripts: text, a: tensor, b: tensor", kTensor,
     "Products summed over the letters that the result leaves out."},
    {"einsum", "subscripts: text, list: tensors", kTensor,
     "Products of several tensors, two at a time in the cheapest order, summed over the letters "
     "that "
     "the result leaves out."},
    {"outer", "a: tensor, b: tensor", kTensor, "Every element of a times every element of b."},
    {"kron", "a: tensor, b: tensor", kTensor,
     "Every element of a times the whole of b, in its place."},
    {"cross", "a: tensor, b: tensor, axis: int = -1", kTensor,
     "Vector products of the three elements along an axis."},
    {"cdist", "a: tensor, b: tensor", kTensor,
     "Distances between the rows of a and those of b; the slope at distance 0 is 0."},
    {"mean", kReduction, kTensor, "The mean of elements."},
    {"var", kReduction, kTensor, "The mean of squared differences from the mean."},
    {"std", kReduction, kTensor, "The square root of the variance; its slope at 0 is 0."},
    {"logsumexp", kReduction, kTensor, "The logarithm of the sum of exponentials."},
    {"norm", kReduction, kTensor, "The square root of the sum of squares; its slope at 0 is 0."},
    {"nan_to_num", "x: tensor, nan: float = 0, posinf: float = none, neginf: float = none", kTensor,
     "NaN and infinities replaced; infinities by the largest and least finite numbers unless "
     "named."},
    {"nextafter", "a: tensor, b: tensor", kTensor,
     "The neighbour of a towards b, among the numbers of the dtype; its slope by a is 1."},
    {"isclose",
     "a: tensor, b: tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = false",
     kTensor, "True where |a - b| <= atol + rtol * |b|."},
    {"allclose",
     "a: tensor, b: tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = false",
     kTensor, "True if isclose is true of all elements."},
    {"leaky_relu", "x: tensor, slope: float = 0.01", kTensor,
     "x where it is above 0, else x times the slope."},
    {"layer_norm", "x: tensor, scale: tensor = none, bias: tensor = none, epsilon: float = 1e-5",
     kTensor, "Mean 0 and variance 1 over the last axis, then scaled and shifted."},
    {"rms_norm", "x: tensor, scale: tensor = none, bias: tensor = none, epsilon: float = 1e-5",
     kTensor, "Mean square 1 over the last axis, then scaled and shifted."},
    {"embedding", "table: tensor, ids: tensor", kTensor, "Rows of the table, one for each id."},
    {"attention",
     "q: tensor, k: tensor, v: tensor, causal: bool = false, scale: float = none, "
     "mask: tensor = none",
     kTensor, "softmax(q k' scale) v over the last two axes."},
    {"mse", "y_true: tensor, y_pred: tensor", kTensor, "The mean of squared differences."},
    {"sparse_softmax_cross_entropy", "labels: tensor, logits: tensor", kTensor,
     "The mean of -log softmax(logits)[label] over the last axis."},
    // calls/windows.h
    {"conv1d",
     "x: tensor, w: tensor, strides: int = 1, padding: valid|same|pairs = valid, dilations: int = "
     "1, groups: int = 1, layout: nhwc|nchw = nhwc",
     kTensor, "Windows of a row [n, width, in] times a [width, in, out] kernel."},
    {"conv_transpose1d",
     "x: tensor, w: tensor, strides: int = 1, padding: valid|same|pairs = valid, sizes: shape = "
     "none, dilations: int = 1, groups: int = 1, layout: nhwc|nchw = nhwc",
     kTensor, "The gradient by the row of a convolution with the kernel [width, out, in]."},
    {"conv_transpose2d",
     "x: tensor, w: tensor, strides: ints = [1, 1], padding: valid|same|pairs = valid, sizes: "
     "shape = none, dilations: ints = [1, 1], groups: int = 1, layout: nhwc|nchw = nhwc",
     kTensor,
     "The gradient by the image of a convolution with the kernel [height, width, out, in]."},
    {"conv_transpose3d",
     "x: tensor, w: tensor, strides: ints = [1, 1, 1], padding: valid|same|pairs = valid, sizes: "
     "shape = none, dilations: ints = [1, 1, 1], groups: int = 1, layout: nhwc|nchw = nhwc",
     kTensor,
     "The gradient by the image of a convolution with the kernel [depth, height, width, out, in]."},
    {"depthwise_conv2d",
     "x: tensor, w: tensor, strides: ints = [1, 1], padding: valid|same|pairs = valid, dilations: "
     "ints = [1, 1], layout: nhwc|nchw = nhwc",
     kTensor, "Each channel by windows of its own, [height, width, in, times]."},
    {"depthwise_conv1d",
     "x: tensor, w: tensor, strides: int = 1, padding: valid|same|pairs = valid, dilations: int = "
     "1, layout: nhwc|nchw = nhwc",
     kTensor, "Each channel by windows of its own, [width, in, times]."},
    {"separable_conv2d",
     "x: tensor, depthwise: tensor, pointwise: tensor, strides: ints = [1, 1], padding: "
     "valid|same|pairs = valid, dilations: ints = [1, 1], layout: nhwc|nchw = nhwc",
     kTensor, "A depthwise convolution, then one with windows of one pixel."},
    {"separable_conv1d",
     "x: tensor, depthwise: tensor, pointwise: tensor, strides: int = 1, padding: "
     "valid|same|pairs = valid, dilations: int = 1, layout: nhwc|nchw = nhwc",
     kTensor, "A depthwise convolution, then one with windows of one pixel."},
    {"pad", "x: tensor, widths: pairs, mode: reflect|symmetric|edge", kTensor,
     "Padded with elements of x: mirrored at its outermost elements or its edges, or those "
     "repeated."},
    {"resize",
     "x: tensor, sizes: shape, method: nearest|bilinear|bicubic = bilinear, antialias: bool = "
     "false, layout: nhwc|nchw = nhwc",
     kTensor, "An image with other sizes, each pixel a weighted sum of its neighbours."},
    {"pixel_shuffle", kShuffle, kTensor, "Channels become blocks of factor x factor pixels."},
    {"pixel_unshuffle", kShuffle, kTensor, "Blocks of factor x factor pixels become channels."},
    // grad/pooling.h
    {"max_pool", kPool, kTensor, "The largest element of each window of an image."},
    {"avg_pool", kPool, kTensor, "The mean of each window of an image; padding does not count."},
    {"max_pool1d", kPool1d, kTensor, "The largest element of each window of a row."},
    {"avg_pool1d", kPool1d, kTensor, "The mean of each window of a row; padding does not count."},
    {"max_pool3d", kPool3d, kTensor, "The largest element of each window of a volume."},
    {"avg_pool3d", kPool3d, kTensor,
     "The mean of each window of a volume; padding does not count."},
    {"adaptive_max_pool", kAdaptive, kTensor,
     "The largest element of each of so many windows; equal ones share the gradient."},
    {"adaptive_avg_pool", kAdaptive, kTensor, "The mean of each of so many windows."},
    {"extract_patches",
     "x: tensor, sizes: ints, strides: ints = none, dilations: ints = none, padding: "
     "valid|same|pairs = valid, layout: nhwc|nchw = nhwc",
     kTensor, "Every window of an image as channels, tap by tap; padding is 0."},
    // calls/scans.h
    {"cumlogsumexp", kRunning, kTensor,
     "The logarithm of running sums of exponentials along an axis, without overflow."},
    // calls/ordered.h
    {"bincount", "x: tensor, weights: tensor = none, length: size = none", kTensor,
     "How often each of 0, 1, ... occurs, or the sum of its weights; in functions with a length."},
    {"histogram", "x: tensor, bins: int = 10, low: float = none, high: float = none",
     "counts: tensor, edges: tensor",
     "The number of elements in intervals of equal width, and the ends of the intervals."},
    {"median", kReduction, kTensor,
     "The middle element, or the mean of the two in the middle; NaN if there is one."},
    {"quantile",
     "x: tensor, q: tensor, axis: int = none, method: linear|lower|higher|midpoint|nearest = "
     "linear",
     kTensor, "The value below which a share q of the elements lies; the axes of q come first."},
    {"unique", kSized, "values: tensor, inverse: tensor, counts: tensor, size: tensor",
     "The distinct elements in increasing order, where each element of x is among them, how often "
     "each occurs, and their number; in functions with a max_size."},
    {"nonzero", kSized, "indices: tensor, size: tensor",
     "The indices of elements that are not zero or false, one a row, and their number; in "
     "functions "
     "with a max_size."},
    // calls/scatter.h
    {"scatter_nd", "indices: tensor, updates: tensor, shape: shape", kTensor,
     "Zeros with updates added at the elements or slices that the last axis of the indices names."},
    {"segment_sum", kSegments, kTensor, "The sum of the slices of each segment."},
    {"segment_mean", kSegments, kTensor,
     "The mean of the slices of each segment; 0 where there are none."},
    {"segment_prod", kSegments, kTensor, "The product of the slices of each segment."},
    {"segment_max", kSegments, kTensor, "The largest elements of the slices of each segment."},
    {"segment_min", kSegments, kTensor, "The least elements of the slices of each segment."},
    // calls/linalg.h
    {"linalg::cholesky_solve", "l: tensor, b: tensor", kTensor,
     "The x with l l^T x = b, where l is lower triangular; a vector b is a single right side."},
    {"linalg::inv", "x: tensor", kTensor, "The inverse of a square matrix."},
    {"linalg::det", "x: tensor", kTensor, "The determinant of a square matrix."},
    {"linalg::slogdet", "x: tensor", "sign: tensor, logdet: tensor",
     "The sign of the determinant, and the logarithm of its magnitude; 0 and -inf if it is 0."},
    {"linalg::lstsq", "a: tensor, b: tensor, rtol: float = none", kTensor,
     "The shortest x with the least |a x - b|; singular values up to rtol times the largest count "
     "as 0 (default: the longer side times the dtype's epsilon)."},
    {"linalg::vector_norm", "x: tensor, ord: float = 2, axes: axes = none, keep: bool = false",
     kTensor,
     "(sum of |x|^ord)^(1 / ord); inf: the largest magnitude, -inf: the least, 0: how many "
     "elements "
     "are not 0."},
    {"linalg::matrix_norm",
     "x: tensor, ord: fro|nuc|one|least_one|inf|least_inf|two|least_two = fro, keep: bool = false",
     kTensor,
     "The root of the sum of squares; the sum of the singular values; the largest (least) sum of "
     "magnitudes of a column, of a row; the largest (least) singular value."},
    // calls/complex.h
    {"complex", "re: tensor, im: tensor", kTensor,
     "Complex numbers from real and imaginary parts: c128 if one of them is f64, else c64."},
    {"polar", "size: tensor, angle: tensor", kTensor, "Complex numbers from sizes and angles."},
    {"real", kComplex, kTensor, "The real parts of complex numbers, as a view."},
    {"imag", kComplex, kTensor, "The imaginary parts of complex numbers, as a view."},
    {"conj", kComplex, kTensor, "The conjugates of complex numbers."},
    {"angle", kComplex, kTensor, "The angles of complex numbers, in (-pi, pi]."},
    {"view_as_real", kComplex, kTensor,
     "Complex numbers as pairs of reals, on a new last axis of size 2; a view."},
    {"view_as_complex", "pairs: tensor", kTensor,
     "Pairs of reals on the last axis as complex numbers; a view if pairs are adjacent."},
    // calls/fourier.h
    {"fft::fft", kTransform, kTensor, "The Fourier transform of complex numbers along an axis."},
    {"fft::ifft", kTransform, kTensor,
     "The inverse Fourier transform of complex numbers along an axis."},
    {"fft::rfft", kTransform, kTensor,
     "The Fourier transform of reals along an axis: the first n / 2 + 1 complex numbers."},
    {"fft::irfft", kTransform, kTensor, "The reals whose Fourier transform this is."},
    {"fft::hfft", kTransform, kTensor,
     "The Fourier transform of a signal whose first half is given and whose second is conjugate: "
     "reals."},
    {"fft::ihfft", kTransform, kTensor, "The first half of the signal whose transform this is."},
    {"fft::fftn", kTransforms, kTensor, "The Fourier transform along several axes, or all."},
    {"fft::ifftn", kTransforms, kTensor,
     "The inverse Fourier transform along several axes, or all."},
    {"fft::rfftn", kTransforms, kTensor,
     "The Fourier transform of reals along several axes, or all; the last one is halved."},
    {"fft::irfftn", kTransforms, kTensor,
     "The reals whose Fourier transform along these axes this is."},
    {"fft::fft2", kTransforms, kTensor, "The Fourier transform along the last two axes."},
    {"fft::ifft2", kTransforms, kTensor, "The inverse Fourier transform along the last two axes."},
    {"fft::rfft2", kTransforms, kTensor, "The Fourier transform of reals along the last two axes."},
    {"fft::irfft2", kTransforms, kTensor,
     "The reals whose Fourier transform along the last two axes this is."},
    {"fft::fftfreq", "n: int, d: float = 1.0, dtype: dtype = f32", kTensor,
     "The frequencies of a transform of length n, in cycles per unit of the spacing d."},
    {"fft::rfftfreq", "n: int, d: float = 1.0, dtype: dtype = f32", kTensor,
     "The frequencies of a transform of n reals, in cycles per unit of the spacing d."},
    {"fft::fftshift", "x: tensor, axes: axes = none", kTensor,
     "The frequency 0 moved to the middle of each axis."},
    {"fft::ifftshift", "x: tensor, axes: axes = none", kTensor,
     "The frequency 0 moved from the middle of each axis to its beginning."},
    // calls/create.h
    {"constant", "values: numbers, dtype: dtype = none", kTensor,
     "Numbers in nested lists; complex ones give c64, floats f32, integers i32, bools bool unless "
     "a "
     "dtype is named."},
    {"from_callback", "shape: shape, dtype: dtype, write: callback", kTensor,
     "A tensor whose elements the callback writes."},
    {"zeros", "shape: shape, dtype: dtype = f32", kTensor, "Zeros."},
    {"ones", "shape: shape, dtype: dtype = f32", kTensor, "Ones."},
    {"full", "shape: shape, value: tensor, dtype: dtype = none", kTensor,
     "One value everywhere; the dtype is the value's own unless named."},
    {"zeros_like", "x: tensor", kTensor, "Zeros of the same type."},
    {"ones_like", "x: tensor", kTensor, "Ones of the same type."},
    {"full_like", "x: tensor, value: tensor", kTensor, "One value everywhere, of the same type."},
    {"linspace", "start: float, stop: float, count: int, dtype: dtype = f32", kTensor,
     "Evenly spaced numbers from start to stop, both included."},
    {"eye", "rows: int, dtype: dtype = f32", kTensor, "Ones on the diagonal, zeros elsewhere."},
    {"eye", "rows: int, columns: int, dtype: dtype = f32", kTensor,
     "Ones on the diagonal, zeros elsewhere."},
    // calls/random.h
    {"random::seed", "seed: int", {}, "Seeds the generator of draws without a key."},
    {"random::state", {}, kTensor, "The state of the generator of draws without a key."},
    {"random::set_state", "state: tensor", {}, "Restores a state of that generator."},
    {"random::normal",
     "shape: shape, mean: float = 0, stddev: float = 1, dtype: dtype = f32, key: key = none",
     kTensor, "Draws from the normal distribution."},
    {"random::uniform",
     "shape: shape, low: float = 0, high: float = 1, dtype: dtype = f32, key: key = none", kTensor,
     "Draws from the uniform distribution over [low, high)."},
    {"random::integers",
     "shape: shape, low: int = 0, high: int = 2, dtype: dtype = i32, key: key = none", kTensor,
     "Whole numbers drawn uniformly from [low, high)."},
    {"random::bernoulli", "shape: shape, p: float = 0.5, key: key = none", kTensor,
     "True with probability p."},
    {"random::bernoulli", "p: tensor, shape: shape", kTensor,
     "True with a probability of its own for each element."},
    {"random::permutation", "n: int, key: key = none", kTensor,
     "The numbers from 0 to n - 1 in random order."},
    {"dropout", "x: tensor, rate: float = 0.5, key: key = none", kTensor,
     "Each element set to zero with probability `rate`; the others are scaled to keep the mean."},
    // calls/distributions.h
    {"random::exponential", "shape: shape, rate: float = 1, dtype: dtype = f32, key: key = none",
     kTensor, "Draws of density rate * exp(-rate * x)."},
    {"random::gumbel", "shape: shape, dtype: dtype = f32, key: key = none", kTensor,
     "Draws from the Gumbel distribution, -log of an exponential."},
    {"random::laplace",
     "shape: shape, mean: float = 0, scale: float = 1, dtype: dtype = f32, key: key = none",
     kTensor, "Draws that are exponential on both sides of the mean."},
    {"random::truncated_normal",
     "shape: shape, mean: float = 0, stddev: float = 1, low: float = -2, high: float = 2, dtype: "
     "dtype = f32, key: key = none",
     kTensor, "Normal draws within bounds, which are in standard deviations from the mean."},
    {"random::gamma", "alpha: tensor, shape: shape, dtype: dtype = f32, key: key = none", kTensor,
     "Draws of density proportional to x^(alpha - 1) exp(-x)."},
    {"random::beta", "a: tensor, b: tensor, shape: shape, dtype: dtype = f32, key: key = none",
     kTensor, "Draws of density proportional to x^(a - 1) (1 - x)^(b - 1)."},
    {"random::poisson", "rate: tensor, shape: shape, dtype: dtype = i64, key: key = none", kTensor,
     "How many events happen where `rate` are expected."},
    {"random::categorical", "logits: tensor, count: int = none, key: key = none", kTensor,
     "A class of each row, with probability softmax(logits); `count` of them on a new last axis."},
    {"random::multinomial", "trials: int, probabilities: tensor, key: key = none", kTensor,
     "How often each class comes in so many draws."},
    {"random::integers",
     "low: tensor, high: tensor, shape: shape, dtype: dtype = i64, key: key = none", kTensor,
     "Whole numbers in [low, high), with bounds for each element."},
    {"random::bernoulli", "p: tensor, shape: shape, key: key = none", kTensor,
     "True with a probability for each element, by a key."},
    {"random::permutation", "x: tensor, axis: int = 0, key: key = none", kTensor,
     "The slices of x along an axis, in random order."},
    // calls/effect.h
    {"print", "first: text, parts: parts", {}, "Prints one line of texts, numbers and tensors."},
    {"check_numerics", "x: tensor, message: text", kTensor,
     "x unchanged; an error if an element is infinite or NaN."},
    {"assert_that",
     "condition: tensor, message: text, values: tensors = none",
     {},
     "An error that shows the values, unless every element of the condition is true."},
    // trace/control_flow.h
    {"cond", "condition: tensor, if_true: function, if_false: function", kStructure,
     "The result of one of two functions, chosen by a bool."},
    {"switch_case", "index: tensor, first: function, rest: functions", kStructure,
     "The result of the function with this index; of the last one if the index is out of range."},
    {"while_loop",
     "condition: function, body: function, loop_vars: structure, max_iterations: int = none, "
     "shape_invariants: shapes = none, save: save = automatic",
     kStructure, "Runs the body while the condition holds."},
    {"fori_loop",
     "lower: tensor, upper: tensor, body: function, init: structure, save: save = automatic",
     kStructure, "Runs the body for each whole number from lower up to, but not including, upper."},
    {"scan",
     "body: function, init: structure, xs: structure, reverse: bool = false, "
     "save: save = automatic",
     "state: structure, stacked: structure",
     "Runs the body for each slice with a carried state, and stacks its outputs."},
    {"map_fn", kMap, kStructure,
     "Applies the function to every slice by itself and stacks the results."},
    {"vectorized_map", kMap, kStructure,
     "Applies the function to all slices at once if every op can be batched, else to each."},
};

// The arguments of an op object; none for ops whose definition lists their calls.
std::string_view arguments_of(const OpDef& op) {
  if (op.family == Family::reduce) return kReduction;
  if (op.family == Family::row) return "x: tensor, axis: int = -1";
  if (op.value == nullptr) return {};
  constexpr std::string_view by_arity[] = {"x: tensor", "a: tensor, b: tensor",
                                           "a: tensor, b: tensor, c: tensor"};
  return by_arity[op.arity - 1];
}

std::vector<Callable> build() {
  std::vector<Callable> list;
  for (const OpDef& op : catalogue()) {
    const std::string_view arguments = arguments_of(op);
    if (!arguments.empty()) list.push_back({op.name, arguments, kTensor, op.brief, &op});
  }
  for (const OpDef& op : catalogue())
    for (const CallDef& call : op.calls)
      list.push_back({call.name, call.arguments, call.results,
                      call.brief.empty() ? op.brief : call.brief, &op});
  for (const Composite& each : kComposites)
    list.push_back({each.name, each.arguments, each.results, each.brief, nullptr});
  return list;
}

// Removes and returns the text up to a mark, and removes the mark; the whole text if there is no
// mark.
std::string_view take(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
  return part;
}

}  // namespace

std::vector<Argument> Callable::argument_list() const {
  std::vector<Argument> list;
  for (std::string_view rest = arguments; !rest.empty();) {
    Argument argument;
    argument.name = take(rest, ": ");
    // A default that is a list, as in "[1, 1]", contains commas.
    const size_t comma = rest.find(", "), equals = rest.find(" = ");
    if (equals < comma) {
      argument.kind = take(rest, " = ");
      argument.fallback =
          rest[0] == '[' ? rest.substr(0, rest.find(']') + 1) : rest.substr(0, rest.find(", "));
      rest = rest.substr(argument.fallback.size());
      take(rest, ", ");
    } else {
      argument.kind = take(rest, ", ");
    }
    list.push_back(argument);
  }
  return list;
}

std::span<const Callable> callables() {
  static constinit MadeOnce<std::vector<Callable>> made;
  return made.get(build);
}

}  // namespace tidemark

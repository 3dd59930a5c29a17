// Runs what edges.py writes, one call a line, and writes what came out, one line each:
//
//   softmax axis=1 orders=2 | f32 [2,3] 0x0p+0 -inf nan 0x1p+0 0x1p+0 -0x0p+0
//   value f32 [2,3] ... | first f32 [2,3] ... | second f32 [2,3] ...
//
// `first` are the gradients by every float operand of the sum of the result's elements, each times
// a weight; `second` those of the sum of all of these, each times another. Each call is made
// eagerly and in a function, and a line that begins with "differs" says that the two are not the
// same bits. `edges_driver --ops` lists the catalogue, `edges_driver --calls` what can be called.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/scan.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tidemark.h"

namespace tidemark::edges {
namespace {

using Tensors = std::vector<Tensor>;

// ---- text ---------------------------------------------------------------------------------------

struct Call {
  std::string name;
  std::map<std::string, std::string> attrs;
  Tensors operands;

  std::vector<int64_t> list(const std::string& key) const {
    std::vector<int64_t> numbers;
    const auto found = attrs.find(key);
    std::istringstream in(found == attrs.end() ? "" : found->second);
    for (std::string one; std::getline(in, one, ',');) numbers.push_back(std::stoll(one));
    return numbers;
  }
  int64_t whole(const std::string& key, int64_t otherwise) const {
    return attrs.contains(key) ? std::stoll(attrs.at(key)) : otherwise;
  }
  double real(const std::string& key, double otherwise) const {
    return attrs.contains(key) ? std::stod(attrs.at(key)) : otherwise;
  }
  std::string text(const std::string& key) const {
    return attrs.contains(key) ? attrs.at(key) : std::string();
  }
  Shape shape() const {
    Shape made;
    for (const int64_t size : list("shape")) made.push_back(size);
    return made;
  }
};

DType dtype_named(const std::string& name) {
  for (int i = 0; i < kDTypes; ++i)
    if (cat(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  throw UserError(cat("no dtype is called ", name), Source::here());
}

Shape shape_of(const std::string& text) {
  Shape shape;
  std::istringstream in(text.substr(1, text.size() - 2));
  for (std::string size; std::getline(in, size, ',');) shape.push_back(std::stoll(size));
  return shape;
}

Tensor read_tensor(const std::string& text) {
  std::istringstream in(text);
  std::string dtype, shape, word;
  in >> dtype >> shape;
  std::vector<double> values;
  while (in >> word) values.push_back(std::strtod(word.c_str(), nullptr));
  return cast(reshape(constant(values), shape_of(shape)), dtype_named(dtype));
}

Call read_call(const std::string& line) {
  Call call;
  std::istringstream parts(line);
  std::string part, word;
  std::getline(parts, part, '|');
  std::istringstream head(part);
  head >> call.name;
  while (head >> word) {
    const size_t sign = word.find('=');
    call.attrs[word.substr(0, sign)] = word.substr(sign + 1);
  }
  while (std::getline(parts, part, '|')) call.operands.push_back(read_tensor(part));
  return call;
}

std::string written(const std::string& label, const Tensor& x) {
  std::string text = cat(label, " ", x.dtype(), " [");
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    text += cat(axis > 0 ? "," : "", int64_t{x.shape()[axis]});
  text += "]";
  char buffer[40];
  const Tensor flat = reshape(x, {-1});
  if (is_float(x.dtype())) {
    for (const double value : cast(flat, DType::f64).to_vector<double>()) {
      // The sign of a NaN means nothing.
      std::snprintf(buffer, sizeof(buffer), " %a", std::isnan(value) ? NAN : value);
      text += buffer;
    }
  } else {
    for (const int64_t value : cast(flat, DType::i64).to_vector<int64_t>()) {
      std::snprintf(buffer, sizeof(buffer), " %" PRId64, value);
      text += buffer;
    }
  }
  return text;
}

// ---- what can be called -------------------------------------------------------------------------

using Body = std::function<Tensor(const Call& call, const Tensors& x)>;

template <class Op>
const Op& as(const OpDef& op) {
  return *static_cast<const Op*>(op.self);
}

Axes axes_of(const Call& call) {
  return call.attrs.contains("axes") ? Axes(call.list("axes")) : Axes();
}
Keep keep_of(const Call& call) { return call.whole("keepdims", 0) != 0 ? Keep::yes : Keep::no; }

// An op as users call it.
Body of_op(const OpDef& op) {
  return [&op](const Call& call, const Tensors& x) {
    if (op.family == Family::reduce) return as<ReduceOp>(op)(x[0], axes_of(call), keep_of(call));
    if (op.family == Family::row) return as<RowOp>(op)(x[0], call.whole("axis", 0));
    if (op.arity == 1) return as<UnaryOp>(op)(x[0]);
    if (op.arity == 2) return as<BinaryOp>(op)(x[0], x[1]);
    return as<TernaryOp>(op)(x[0], x[1], x[2]);
  };
}

Body of_reduction(const ReduceFunction& function) {
  return [&function](const Call& call, const Tensors& x) {
    return function(x[0], axes_of(call), keep_of(call));
  };
}

nn::CrossEntropyOptions entropy_options(const Call& call) {
  return {.from_logits = call.whole("logits", 1) != 0, .label_smoothing = call.real("smooth", 0)};
}

ConvOptions conv_options(const Call& call) {
  ConvOptions options;
  if (call.text("padding") == "same") options.padding = Padding::same;
  return options;
}

PoolOptions pool_options(const Call& call) {
  PoolOptions options;
  const std::vector<int64_t> size = call.list("size");
  if (!size.empty()) options.size = {size[0], size[1]};
  if (const auto strides = call.list("strides"); !strides.empty())
    options.strides = std::array<int64_t, 2>{strides[0], strides[1]};
  if (call.text("padding") == "same") options.padding = Padding::same;
  return options;
}

Padding2 widths(const Call& call) {
  const std::vector<int64_t> list = call.list("widths");
  Padding2 pairs;
  for (size_t i = 0; i + 1 < list.size(); i += 2) pairs.emplace_back(list[i], list[i + 1]);
  return pairs;
}

Tensor einsum_of(const Call& call, const Tensors& x) {
  std::string subscripts = call.text("how");
  if (const size_t arrow = subscripts.find('>'); arrow != std::string::npos)
    subscripts.replace(arrow, 1, "->");
  return x.size() == 1 ? einsum(subscripts, x[0]) : einsum(subscripts, x[0], x[1]);
}

Tensor attention_of(const Call& call, const Tensors& x) {
  AttentionOptions options{.causal = call.whole("causal", 0) != 0};
  if (x.size() > 3) options.mask = x[3];
  return attention(x[0], x[1], x[2], options);
}

// How ":;1;T" subscripts: each T stands for the next tensor.
Index index_of(const std::string& text, const Tensor*& next) {
  if (text == "T") return *next++;
  if (text == "new") return newaxis;
  if (text == "...") return ellipsis;
  if (text == ":") return Slice{};
  if (text == "1:") return Slice{.begin = 1};
  if (text == "::-1") return Slice{.step = -1};
  return std::stoll(text);
}

Tensor subscripted(const Call& call, const Tensors& x) {
  Slices slices(std::initializer_list<Index>{});
  std::istringstream in(call.text("how"));
  const Tensor* next = x.data() + 1;
  for (std::string item; std::getline(in, item, ';');) slices.list.push_back(index_of(item, next));
  return x[0][slices];
}

NormOptions norm_options(const Call& call) { return {.epsilon = call.real("epsilon", 1e-5)}; }

RunningOptions running_options(const Call& call) {
  return {call.whole("exclusive", 0) != 0, call.whole("reverse", 0) != 0};
}
DirectionOptions direction(const Call& call) { return {call.whole("reverse", 0) != 0}; }

// Several results as one row.
Tensor in_a_row(const Tensors& parts) {
  Tensors rows;
  for (const Tensor& part : parts) rows.push_back(reshape(part, {-1}));
  return concat(rows);
}

bool is_set(const Call& call, const std::string& name, int64_t fallback = 0) {
  return call.whole(name, fallback) != 0;
}

linalg::MatrixNorm matrix_norm_named(const std::string& name) {
  constexpr const char* names[] = {"fro", "nuc",       "one", "least_one",
                                   "inf", "least_inf", "two", "least_two"};
  int64_t i = 0;
  while (name != names[i]) ++i;
  return static_cast<linalg::MatrixNorm>(i);
}

const std::map<std::string, Body>& linear_algebra() {
  using C = const Call&;
  using X = const Tensors&;
  static const std::map<std::string, Body> table = {
      {"cholesky", [](C, X x) { return linalg::cholesky(x[0]); }},
      {"solve_triangular",
       [](C c, X x) {
         return linalg::solve_triangular(
             x[0], x[1], {is_set(c, "lower", 1), is_set(c, "transposed"), is_set(c, "unit")});
       }},
      {"cholesky_solve", [](C, X x) { return linalg::cholesky_solve(x[0], x[1]); }},
      {"solve", [](C c, X x) { return linalg::solve(x[0], x[1], {is_set(c, "transposed")}); }},
      {"inv", [](C, X x) { return linalg::inv(x[0]); }},
      {"det", [](C, X x) { return linalg::det(x[0]); }},
      {"slogdet",
       [](C, X x) {
         const auto [sign, logdet] = linalg::slogdet(x[0]);
         return in_a_row({sign, logdet});
       }},
      {"lu", [](C, X x) { return linalg::lu(x[0]).lu; }},
      {"qr",
       [](C c, X x) {
         const auto [q, r] = linalg::qr(x[0], {is_set(c, "complete")});
         return in_a_row({q, r});
       }},
      {"eigh",
       [](C, X x) {
         const auto [values, vectors] = linalg::eigh(x[0]);
         return in_a_row({values, vectors});
       }},
      {"eigvalsh", [](C, X x) { return linalg::eigvalsh(x[0]); }},
      {"svd",
       [](C c, X x) {
         const auto [u, s, vh] = linalg::svd(x[0], {is_set(c, "full")});
         return in_a_row({u, s, vh});
       }},
      {"svdvals", [](C, X x) { return linalg::svdvals(x[0]); }},
      {"pinv",
       [](C c, X x) {
         const bool is_default = !c.attrs.contains("rtol");
         return is_default ? linalg::pinv(x[0]) : linalg::pinv(x[0], {c.real("rtol", 0)});
       }},
      {"lstsq", [](C, X x) { return linalg::lstsq(x[0], x[1]); }},
      {"expm", [](C, X x) { return linalg::expm(x[0]); }},
      {"vector_norm",
       [](C c, X x) {
         linalg::VectorNormOptions options{.ord = c.real("ord", 2), .keep = keep_of(c)};
         if (c.attrs.contains("axes")) options.axes = axes_of(c);
         return linalg::vector_norm(x[0], options);
       }},
      {"matrix_norm",
       [](C c, X x) {
         return linalg::matrix_norm(x[0], {matrix_norm_named(c.text("ord")), keep_of(c)});
       }},
  };
  return table;
}

// The public functions that are no op of one element, a reduction or a row. The names are theirs.
const std::map<std::string, Body>& composites() {
  using C = const Call&;
  using X = const Tensors&;
  static const std::map<std::string, Body> table = {
      {"allclose", [](C, X x) { return allclose(x[0], x[1]); }},
      {"argsort",
       [](C c, X x) { return argsort(x[0], c.whole("axis", 0), {c.whole("descending", 0) != 0}); }},
      {"arange", [](C c, X) { return arange(c.list("range")[0], c.list("range")[1]); }},
      {"attention", attention_of},
      {"avg_pool", [](C c, X x) { return avg_pool(x[0], pool_options(c)); }},
      {"broadcast_to", [](C c, X x) { return broadcast_to(x[0], c.shape()); }},
      {"cast", [](C c, X x) { return cast(x[0], dtype_named(c.text("to"))); }},
      {"cdist", [](C, X x) { return cdist(x[0], x[1]); }},
      {"concat", [](C c, X x) { return concat(x, c.whole("axis", 0)); }},
      {"conv2d", [](C c, X x) { return conv2d(x[0], x[1], conv_options(c)); }},
      {"conv1d", [](C c, X x) { return conv1d(x[0], x[1], {.padding = conv_options(c).padding}); }},
      {"conv3d", [](C c, X x) { return conv3d(x[0], x[1], {.padding = conv_options(c).padding}); }},
      {"conv_transpose1d", [](C, X x) { return conv_transpose1d(x[0], x[1], {.strides = 2}); }},
      {"conv_transpose2d",
       [](C, X x) { return conv_transpose2d(x[0], x[1], {.strides = {2, 3}}); }},
      {"conv_transpose3d",
       [](C, X x) { return conv_transpose3d(x[0], x[1], {.strides = {1, 2, 3}}); }},
      {"depthwise_conv1d", [](C, X x) { return depthwise_conv1d(x[0], x[1]); }},
      {"depthwise_conv2d", [](C, X x) { return depthwise_conv2d(x[0], x[1]); }},
      {"separable_conv1d", [](C, X x) { return separable_conv1d(x[0], x[1], x[2]); }},
      {"separable_conv2d", [](C, X x) { return separable_conv2d(x[0], x[1], x[2]); }},
      {"resample", [](C c, X x) { return resize(x[0], c.shape(), {.method = Resizing::bicubic}); }},
      {"resize",
       [](C c, X x) {
         const bool nearest = c.text("method") == "nearest";
         return resize(x[0], c.shape(),
                       {.method = nearest ? Resizing::nearest : Resizing::bilinear,
                        .antialias = c.whole("antialias", 0) != 0});
       }},
      {"pixel_shuffle", [](C c, X x) { return pixel_shuffle(x[0], c.whole("factor", 2)); }},
      {"pixel_unshuffle", [](C c, X x) { return pixel_unshuffle(x[0], c.whole("factor", 2)); }},
      {"max_pool1d", [](C c, X x) { return max_pool1d(x[0], {.padding = conv_options(c).padding}); }},
      {"avg_pool1d", [](C c, X x) { return avg_pool1d(x[0], {.padding = conv_options(c).padding}); }},
      {"max_pool3d", [](C c, X x) { return max_pool3d(x[0], {.padding = conv_options(c).padding}); }},
      {"avg_pool3d", [](C c, X x) { return avg_pool3d(x[0], {.padding = conv_options(c).padding}); }},
      {"adaptive_max_pool", [](C c, X x) { return adaptive_max_pool(x[0], c.list("sizes")); }},
      {"adaptive_avg_pool", [](C c, X x) { return adaptive_avg_pool(x[0], c.list("sizes")); }},
      {"extract_patches",
       [](C c, X x) {
         return extract_patches(x[0], c.list("sizes"), {.padding = conv_options(c).padding});
       }},
      {"cross", [](C, X x) { return cross(x[0], x[1]); }},
      {"bincount",
       [](C c, X x) {
         return bincount(x[0], {.weights = x[1], .length = Dim(c.whole("length", 3))});
       }},
      {"cumlogsumexp",
       [](C c, X x) { return cumlogsumexp(x[0], c.whole("axis", 0), running_options(c)); }},
      {"cummax", [](C c, X x) { return cummax(x[0], c.whole("axis", 0), direction(c)); }},
      {"cummin", [](C c, X x) { return cummin(x[0], c.whole("axis", 0), direction(c)); }},
      {"cumprod", [](C c, X x) { return cumprod(x[0], c.whole("axis", 0), running_options(c)); }},
      {"cumsum", [](C c, X x) { return cumsum(x[0], c.whole("axis", 0), running_options(c)); }},
      {"fourier",
       [](C c, X x) {
         const Attrs attrs = Attrs()
                                 .add(AxisList(c.list("axes")))
                                 .add(c.whole("inverse", 0) != 0)
                                 .add(c.real("scale", 1));
         return detail::bind_op(def_of(&ops::fourier), {x.data(), 1}, attrs, Source::here());
       }},
      {"linear_scan",
       [](C c, X x) { return linear_scan(x[0], x[1], c.whole("axis", 0), direction(c)); }},
      {"median", [](C c, X x) { return median(x[0], axes_of(c), keep_of(c)); }},
      {"quantile",
       [](C c, X x) {
         return quantile(x[0], c.real("q", 0), c.whole("axis", 0),
                         {static_cast<Interpolation>(c.whole("method", 0))});
       }},
      {"diag", [](C c, X x) { return diag(x[0], c.whole("offset", 0)); }},
      {"diagonal", [](C c, X x) { return diagonal(x[0], c.whole("offset", 0)); }},
      {"diff", [](C c, X x) { return diff(x[0], c.whole("n", 1), c.whole("axis", -1)); }},
      {"dropout", [](C c, X x) { return dropout(x[0], {.rate = c.real("rate", 0)}); }},
      {"einsum", einsum_of},
      {"embedding", [](C, X x) { return embedding(x[0], x[1]); }},
      {"expand_dims", [](C c, X x) { return expand_dims(x[0], c.whole("axis", 0)); }},
      {"first_equal", [](C, X x) { return first_equal(x[0]); }},
      {"flip", [](C, X x) { return flip(x[0]); }},
      {"gather", [](C c, X x) { return gather(x[0], x[1], c.whole("axis", 0)); }},
      {"index", subscripted},
      {"isclose", [](C, X x) { return isclose(x[0], x[1]); }},
      {"kron", [](C, X x) { return kron(x[0], x[1]); }},
      {"layer_norm", [](C c, X x) { return layer_norm(x[0], norm_options(c)); }},
      {"leaky_relu", [](C c, X x) { return leaky_relu(x[0], c.real("slope", 0.01)); }},
      {"logsumexp", of_reduction(logsumexp)},
      {"matmul", [](C, X x) { return matmul(x[0], x[1]); }},
      {"max_pool", [](C c, X x) { return max_pool(x[0], pool_options(c)); }},
      {"mean", of_reduction(mean)},
      {"meshgrid",
       [](C c, X x) {
         return stack(meshgrid(x, {c.whole("ij", 0) != 0 ? Indexing::ij : Indexing::xy}));
       }},
      {"mse", [](C, X x) { return mse(x[0], x[1]); }},
      {"nan_to_num", [](C, X x) { return nan_to_num(x[0]); }},
      {"nextafter", [](C, X x) { return nextafter(x[0], x[1]); }},
      {"norm", of_reduction(norm)},
      {"one_hot", [](C c, X x) { return one_hot(x[0], c.whole("depth", 3)); }},
      {"outer", [](C, X x) { return outer(x[0], x[1]); }},
      {"pad", [](C c, X x) { return pad(x[0], widths(c), c.real("value", 0)); }},
      {"put", [](C, X x) { return put(x[0], x[1], x[2]); }},
      {"repeat", [](C c, X x) { return repeat(x[0], c.whole("count", 2)); }},
      {"reshape", [](C c, X x) { return reshape(x[0], c.shape()); }},
      {"rms_norm", [](C c, X x) { return rms_norm(x[0], norm_options(c)); }},
      {"roll",
       [](C c, X x) {
         const std::optional<int64_t> axis =
             c.attrs.contains("axis") ? c.whole("axis", 0) : std::optional<int64_t>();
         return roll(x[0], c.whole("shift", 0), axis);
       }},
      {"scatter_add", [](C, X x) { return scatter_add(x[0], x[1], x[2]); }},
      {"scatter_max", [](C, X x) { return scatter_max(x[0], x[1], x[2]); }},
      {"scatter_min", [](C, X x) { return scatter_min(x[0], x[1], x[2]); }},
      {"scatter_mul", [](C, X x) { return scatter_mul(x[0], x[1], x[2]); }},
      {"scatter_nd", [](C c, X x) { return scatter_nd(x[0], x[1], c.shape()); }},
      {"searchsorted",
       [](C c, X x) { return searchsorted(x[0], x[1], {c.whole("right", 0) != 0}); }},
      {"segment_max", [](C, X x) { return segment_max(x[0], x[1], 3); }},
      {"segment_mean", [](C, X x) { return segment_mean(x[0], x[1], 3); }},
      {"segment_min", [](C, X x) { return segment_min(x[0], x[1], 3); }},
      {"segment_prod", [](C, X x) { return segment_prod(x[0], x[1], 3); }},
      {"segment_sum", [](C, X x) { return segment_sum(x[0], x[1], 3); }},
      {"slice", [](C c, X x) { return x[0][Slice{.step = c.whole("step", 1)}]; }},
      {"sort",
       [](C c, X x) { return sort(x[0], c.whole("axis", 0), {c.whole("descending", 0) != 0}); }},
      {"sparse_softmax_cross_entropy",
       [](C, X x) { return sparse_softmax_cross_entropy(x[0], x[1]); }},
      {"split", [](C c, X x) { return split(x[0], c.whole("parts", 2)).back(); }},
      {"squeeze", [](C, X x) { return squeeze(x[0]); }},
      {"stack", [](C c, X x) { return stack(x, c.whole("axis", 0)); }},
      {"std", of_reduction(std)},
      {"stop_gradient", [](C, X x) { return stop_gradient(x[0]); }},
      {"take_along_axis", [](C c, X x) { return take_along_axis(x[0], x[1], c.whole("axis", 0)); }},
      {"tensordot", [](C c, X x) { return tensordot(x[0], x[1], c.whole("axes", 2)); }},
      {"tile", [](C c, X x) { return tile(x[0], c.list("counts")); }},
      {"top_k", [](C c, X x) { return top_k(x[0], c.whole("k", 1), c.whole("axis", 0)).values; }},
      {"transpose", [](C, X x) { return transpose(x[0]); }},
      {"tril", [](C, X x) { return tril(x[0]); }},
      {"triu", [](C, X x) { return triu(x[0]); }},
      {"unstack", [](C, X x) { return unstack(x[0]).back(); }},
      {"update", [](C, X x) { return update(x[0], 0, x[1]); }},
      {"var", of_reduction(var)},
      {"losses::mse", [](C, X x) { return nn::losses::mse(x[0], x[1]); }},
      {"losses::mae", [](C, X x) { return nn::losses::mae(x[0], x[1]); }},
      {"losses::hinge", [](C, X x) { return nn::losses::hinge(x[0], x[1]); }},
      {"losses::cosine", [](C, X x) { return nn::losses::cosine(x[0], x[1]); }},
      {"losses::focal", [](C, X x) { return nn::losses::focal(x[0], x[1]); }},
      {"losses::kl_divergence",
       [](C c, X x) {
         return nn::losses::kl_divergence(x[0], x[1], {.from_logits = c.whole("logits", 1) != 0});
       }},
      {"losses::poisson",
       [](C c, X x) {
         return nn::losses::poisson(x[0], x[1], {.from_logs = c.whole("logits", 1) != 0});
       }},
      {"losses::triplet", [](C, X x) { return nn::losses::triplet(x[0], x[1], x[2]); }},
      {"losses::ctc", [](C, X x) { return nn::losses::ctc(x[0], x[1]); }},
      {"losses::huber", [](C c, X x) { return nn::losses::huber(x[0], x[1], c.real("delta", 1)); }},
      {"losses::binary_crossentropy",
       [](C c, X x) { return nn::losses::binary_crossentropy(x[0], x[1], entropy_options(c)); }},
      {"losses::categorical_crossentropy",
       [](C c, X x) {
         return nn::losses::categorical_crossentropy(x[0], x[1], entropy_options(c));
       }},
      {"losses::sparse_categorical_crossentropy",
       [](C c, X x) {
         return nn::losses::sparse_categorical_crossentropy(x[0], x[1], entropy_options(c));
       }},
  };
  return table;
}

constexpr const char* kActivations[] = {"elu",     "gelu", "leaky_relu", "log_softmax", "relu",
                                        "sigmoid", "silu", "softmax",    "softplus",    "tanh"};

bool is_called_by_op(const OpDef& op) {
  return op.family == Family::pointwise || op.family == Family::reduce || op.family == Family::row;
}

Body body_of(const std::string& name) {
  constexpr std::string_view kActivation = "activation::";
  if (name.starts_with(kActivation)) {
    return [activation = nn::Activation(name.substr(kActivation.size()))](
               const Call&, const Tensors& x) { return activation(x[0]); };
  }
  for (const auto* table : {&composites(), &linear_algebra()})
    if (const auto found = table->find(name); found != table->end()) return found->second;
  const OpDef* const op = find_op(name);
  if (op == nullptr || !is_called_by_op(*op))
    throw UserError(cat("nothing is called ", name), Source::here());
  return of_op(*op);
}

// ---- derivatives --------------------------------------------------------------------------------

// x with weights that repeat: 1, 1 + step, 1 + 2 step, ...
Tensor weighted(const Tensor& x, int64_t period, double step) {
  const Tensor place = cast(remainder(arange(x.size()), period), x.dtype());
  return sum(x * reshape(place * step + 1, x.shape()));
}

// Value, first and second derivatives, as many orders as asked for.
std::vector<Tensors> derivatives(const Body& body, const Call& call, const Tensors& operands) {
  const int64_t orders = call.whole("orders", 0);
  Tensors floats;
  for (const Tensor& x : operands)
    if (is_float(x.dtype())) floats.push_back(x);
  GradientTape outer, inner;
  for (const Tensor& x : floats) {
    if (orders > 1) outer.watch(x);
    if (orders > 0) inner.watch(x);
  }
  const Tensor value = body(call, operands);
  std::vector<Tensors> results = {{value}};
  if (orders == 0 || floats.empty() || !is_float(value.dtype())) return results;
  results.push_back(inner.gradient(weighted(value, 3, 0.25), floats));
  if (orders == 1) return results;
  Tensor along = zeros({}, floats[0].dtype());
  for (const Tensor& gradient : results[1]) along = along + weighted(gradient, 4, -0.125);
  results.push_back(outer.gradient(along, floats));
  return results;
}

std::string answer(const Call& call) {
  const Body body = body_of(call.name);
  const std::vector<Tensors> eager = derivatives(body, call, call.operands);
  // A mask chooses how many elements there are, which no function can.
  const bool is_eager = call.whole("eager", 0) != 0;
  const auto compiled = function([&](const Tensors& x) { return derivatives(body, call, x); });
  const std::vector<Tensors> traced = is_eager ? eager : compiled(call.operands);
  constexpr const char* kLabels[] = {"value", "first", "second"};
  std::string text;
  for (size_t order = 0; order < eager.size(); ++order) {
    for (size_t i = 0; i < eager[order].size(); ++i) {
      const std::string mine = written(kLabels[order], eager[order][i]);
      const std::string other = written(kLabels[order], traced[order][i]);
      if (mine != other) return cat("differs in a function: ", mine, " | ", other);
      text += cat(text.empty() ? "" : " | ", mine);
    }
  }
  return text;
}

void run_lines() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(read_call(line)) << '\n';
    } catch (const std::exception& error) {
      const std::string text = error.what();
      std::cout << "error " << text.substr(0, text.find('\n')) << '\n';
    }
  }
}

void list_calls() {
  for (const OpDef& op : catalogue())
    if (is_called_by_op(op)) std::cout << op.name << '\n';
  for (const auto* table : {&composites(), &linear_algebra()})
    for (const auto& [name, body] : *table) std::cout << name << '\n';
  for (const char* name : kActivations) std::cout << "activation::" << name << '\n';
}

}  // namespace
}  // namespace tidemark::edges

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "--ops") {
    for (const tidemark::OpDef& op : tidemark::catalogue()) std::cout << op.name << '\n';
  } else if (what == "--calls") {
    tidemark::edges::list_calls();
  } else {
    tidemark::edges::run_lines();
  }
}

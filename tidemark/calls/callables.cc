#include "tidemark/calls/callables.h"

#include "tidemark/base/made_once.h"
#include "tidemark/base/text.h"

namespace tidemark {
namespace {

// A function; without a sentence it has that of the op of the same name.
struct Function {
  std::string_view name, arguments, results, brief = {};
};

constexpr std::string_view kTensor = "tensor";
constexpr std::string_view kReduction = "x: tensor, axes: axes = none, keep: bool = false";
constexpr std::string_view kPool =
    "x: tensor, size: ints = [2, 2], strides: ints = none, padding: valid|same = valid, "
    "layout: nhwc|nchw = nhwc";

constexpr std::string_view kStructure = "structure";
constexpr std::string_view kMap =
    "f: function, elems: structure, parallel_iterations: int = none, chunk: int = none";

// The order is that of the headers (tests/checks/callables.py compares them).
constexpr Function kFunctions[] = {
    // calls/ops.h
    {"cast", "x: tensor, dtype: dtype", kTensor},
    {"reshape", "x: tensor, shape: shape", kTensor},
    {"transpose", "x: tensor, order: ints = none", kTensor,
     "The axes in another order; without one, reversed."},
    {"stop_gradient", "x: tensor", kTensor},
    {"expand_dims", "x: tensor, axis: int", kTensor, "One more axis, of size 1, in this place."},
    {"squeeze", "x: tensor, axes: axes = none", kTensor,
     "Without the axes of size 1 that are named, or without all of them."},
    {"broadcast_to", "x: tensor, shape: shape", kTensor},
    {"concat", "list: tensors, axis: int = 0", kTensor},
    {"stack", "list: tensors, axis: int = 0", kTensor, "Tensors one after another on a new axis."},
    {"split", "x: tensor, parts: int, axis: int = 0", "tensors", "Equal parts along an axis."},
    {"split", "x: tensor, sizes: ints, axis: int = 0", "tensors",
     "Parts of these sizes along an axis."},
    {"unstack", "x: tensor, axis: int = 0", "tensors", "The slices of an axis, one by one."},
    {"pad", "x: tensor, widths: pairs, value: tensor = 0", kTensor,
     "A value put before and after the elements of each axis, as often as its pair says."},
    {"tile", "x: tensor, counts: ints", kTensor, "The whole repeated along each axis."},
    {"repeat", "x: tensor, count: size, axis: int = none", kTensor,
     "Each element several times, one after another; without an axis, of the flattened tensor."},
    {"flip", "x: tensor, axes: axes = none", kTensor,
     "The elements of these axes, or of all, from the last to the first."},
    {"tril", "x: tensor, diagonal: int = 0", kTensor,
     "The lower triangle of the last two axes, zeros elsewhere."},
    {"triu", "x: tensor, diagonal: int = 0", kTensor,
     "The upper triangle of the last two axes, zeros elsewhere."},
    {"gather", "x: tensor, indices: tensor, axis: int = 0", kTensor},
    {"take_along_axis", "x: tensor, indices: tensor, axis: int", kTensor},
    {"scatter_add", "x: tensor, indices: tensor, updates: tensor, axis: int = 0", kTensor},
    {"put", "array: tensor, index: tensor, element: tensor", kTensor},
    {"one_hot", "indices: tensor, depth: int, dtype: dtype = f32", kTensor,
     "1 at each index, 0 elsewhere, along a new last axis; an index out of range gives zeros."},
    {"first_equal", "x: tensor", kTensor},
    {"cumsum", "x: tensor, axis: int = 0", kTensor},
    {"sort", "x: tensor, axis: int = -1, descending: bool = false", kTensor,
     "The elements along an axis in order; equal ones keep theirs, NaNs are the largest."},
    {"argsort", "x: tensor, axis: int = -1, descending: bool = false", kTensor,
     "Where the elements of sort(x) stand in x along the axis."},
    {"top_k", "x: tensor, k: size, axis: int = -1", "values: tensor, indices: tensor"},
    {"matmul", "a: tensor, b: tensor, transpose_a: bool = false, transpose_b: bool = false",
     kTensor},
    {"tensordot", "a: tensor, b: tensor, axes: int = 2", kTensor,
     "The last axes of the first summed against the first axes of the second."},
    {"einsum", "subscripts: text, x: tensor", kTensor,
     "Elements summed over the letters that the result leaves out."},
    {"einsum", "subscripts: text, a: tensor, b: tensor", kTensor,
     "Products summed over the letters that the result leaves out."},
    {"outer", "a: tensor, b: tensor", kTensor,
     "Every element of one times every one of the other."},
    {"conv2d",
     "x: tensor, w: tensor, strides: ints = [1, 1], padding: valid|same = valid, "
     "dilations: ints = [1, 1], groups: int = 1, layout: nhwc|nchw = nhwc",
     kTensor},
    {"max_pool", kPool, kTensor, "The largest element of each window of an image."},
    {"avg_pool", kPool, kTensor, "The mean of each window of an image; padding does not count."},
    {"mean", kReduction, kTensor, "The mean of elements."},
    {"var", kReduction, kTensor, "The mean of squared differences from the mean."},
    {"std", kReduction, kTensor, "The square root of the variance; its slope at 0 is 0."},
    {"logsumexp", kReduction, kTensor, "The logarithm of the sum of exponentials."},
    {"norm", kReduction, kTensor, "The square root of the sum of squares; its slope at 0 is 0."},
    {"leaky_relu", "x: tensor, slope: float = 0.01", kTensor,
     "x where it is above 0, else x times the slope."},
    {"layer_norm", "x: tensor, scale: tensor = none, bias: tensor = none, epsilon: float = 1e-5",
     kTensor, "Mean 0 and variance 1 over the last axis, then scaled and moved."},
    {"rms_norm", "x: tensor, scale: tensor = none, bias: tensor = none, epsilon: float = 1e-5",
     kTensor, "Mean square 1 over the last axis, then scaled and moved."},
    {"embedding", "table: tensor, ids: tensor", kTensor, "Rows of the table, one for each id."},
    {"attention",
     "q: tensor, k: tensor, v: tensor, causal: bool = false, scale: float = none, "
     "mask: tensor = none",
     kTensor, "softmax(q k' scale) v over the last two axes."},
    {"mse", "y_true: tensor, y_pred: tensor", kTensor, "The mean of squared differences."},
    {"sparse_softmax_cross_entropy", "labels: tensor, logits: tensor", kTensor,
     "The mean of -log softmax(logits)[label] over the last axis."},
    // calls/create.h
    {"constant", "values: numbers, dtype: dtype = none", kTensor,
     "Numbers in nested lists; floats give f32, integers i32, bools bool unless a dtype is named."},
    {"from_callback", "shape: shape, dtype: dtype, write: callback", kTensor,
     "A tensor whose bytes the callback writes before anybody sees it."},
    {"zeros", "shape: shape, dtype: dtype = f32", kTensor, "Zeros."},
    {"ones", "shape: shape, dtype: dtype = f32", kTensor, "Ones."},
    {"full", "shape: shape, value: tensor, dtype: dtype = none", kTensor,
     "One value everywhere; the dtype is the value's own unless named."},
    {"zeros_like", "x: tensor", kTensor, "Zeros of the same type."},
    {"ones_like", "x: tensor", kTensor, "Ones of the same type."},
    {"full_like", "x: tensor, value: tensor", kTensor, "One value everywhere, of the same type."},
    {"arange", "stop: tensor", kTensor, "The numbers from 0 up to stop, which is left out."},
    {"arange", "start: tensor, stop: tensor, step: tensor = 1, dtype: dtype = none", kTensor},
    {"linspace", "start: float, stop: float, count: int, dtype: dtype = f32", kTensor,
     "Numbers from start to stop, both included, at equal distances."},
    {"eye", "rows: int, dtype: dtype = f32", kTensor, "Ones on the diagonal, zeros elsewhere."},
    {"eye", "rows: int, columns: int, dtype: dtype = f32", kTensor,
     "Ones on the diagonal, zeros elsewhere."},
    // calls/random.h
    {"random::seed", "seed: int", {}, "Sets where draws without a key come from."},
    {"random::state", {}, kTensor, "Where the generator of draws without a key stands."},
    {"random::set_state", "state: tensor", {}, "Puts the generator back to where it stood."},
    {"random::normal",
     "shape: shape, mean: float = 0, stddev: float = 1, dtype: dtype = f32, key: key = none",
     kTensor, "Draws from the normal distribution."},
    {"random::uniform",
     "shape: shape, low: float = 0, high: float = 1, dtype: dtype = f32, key: key = none", kTensor,
     "Draws spread evenly over [low, high)."},
    {"random::integers",
     "shape: shape, low: int = 0, high: int = 2, dtype: dtype = i32, key: key = none", kTensor,
     "Whole numbers drawn evenly from [low, high)."},
    {"random::bernoulli", "shape: shape, p: float = 0.5, key: key = none", kTensor,
     "True with probability p."},
    {"random::bernoulli", "p: tensor, shape: shape", kTensor,
     "True with a probability of its own for each element."},
    {"random::permutation", "n: int, key: key = none", kTensor,
     "The numbers from 0 to n - 1 in a drawn order."},
    {"dropout", "x: tensor, rate: float = 0.5, key: key = none", kTensor,
     "Each element zero with probability `rate`, the others scaled so that the mean stays."},
    // calls/effect.h
    {"print", "first: text, parts: parts", {}, "One line: the texts, numbers and tensors."},
    {"check_numerics", "x: tensor, message: text", kTensor,
     "x itself, or an error where an element is infinite or NaN."},
    {"assert_that",
     "condition: tensor, message: text, values: tensors = none",
     {},
     "An error that shows the values unless the condition is true throughout."},
    // trace/control_flow.h
    {"cond", "condition: tensor, if_true: function, if_false: function", kStructure,
     "What one of two functions gives, chosen by a bool."},
    {"switch_case", "index: tensor, first: function, rest: functions", kStructure,
     "What the function of this number gives; the last one where there is no such."},
    {"while_loop",
     "condition: function, body: function, loop_vars: structure, max_iterations: int = none, "
     "shape_invariants: shapes = none, save: save = automatic",
     kStructure, "The body again and again while the condition holds."},
    {"fori_loop",
     "lower: tensor, upper: tensor, body: function, init: structure, save: save = automatic",
     kStructure, "The body once for each whole number from lower up to upper, which is left out."},
    {"scan",
     "body: function, init: structure, xs: structure, reverse: bool = false, "
     "save: save = automatic",
     "state: structure, stacked: structure",
     "The body once for each slice, on what it carries; what it gives beside is stacked."},
    {"map_fn", kMap, kStructure,
     "The function on every slice by itself; what it gives is stacked."},
    {"vectorized_map", kMap, kStructure,
     "The function on all slices at once where every op takes one more axis, else on each."},
};

// What an op object takes; nothing where the op has a function of its own.
std::string_view arguments_of(const OpDef& op) {
  if (op.family == Family::reduce) return kReduction;
  if (op.family == Family::row) return "x: tensor, axis: int = -1";
  if (op.value == nullptr) return {};
  constexpr std::string_view by_arity[] = {"x: tensor", "a: tensor, b: tensor",
                                           "a: tensor, b: tensor, c: tensor"};
  return by_arity[op.arity - 1];
}

// The op of this name, unless only programs have it: cond is a function and a kind of node.
const OpDef* op_of_tensors(std::string_view name) {
  const OpDef* op = find_op(name);
  const bool is_listed = op >= catalogue().data() && op < catalogue().data() + catalogue().size();
  return is_listed ? op : nullptr;
}

std::vector<Callable> build() {
  std::vector<Callable> list;
  for (const OpDef& op : catalogue()) {
    const std::string_view arguments = arguments_of(op);
    if (!arguments.empty()) list.push_back({op.name, arguments, kTensor, op.brief, &op});
  }
  for (const Function& function : kFunctions) {
    const OpDef* op = op_of_tensors(function.name);
    const std::string_view brief = function.brief.empty() ? op->brief : function.brief;
    list.push_back({function.name, function.arguments, function.results, brief, op});
  }
  return list;
}

// From the beginning of a text up to a mark, which is taken off with it; all where there is none.
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
    // A list, as in "[1, 1]", has commas of its own.
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

#include "tests/programs/evaluate.h"

#include <cmath>
#include <cstring>
#include <map>

#include "tests/sweep/cases.h"
#include "tests/sweep/compare.h"
#include "tidemark/base/error.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/reference.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::testing {
namespace {

std::byte* data(const Tensor& tensor) { return detail::array_of(tensor, Source::none()).data; }

template <class T>
T item(const Tensor& tensor) {
  T value{};
  std::memcpy(&value, data(tensor), sizeof(value));
  return value;
}

Tensor made(const TensorType& type) {
  return detail::make_tensor(type.dtype, type.shape, Source::none());
}

size_t bytes_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.size() * size_of(tensor.dtype()));
}

// One slice of the first axis, in bytes of its own.
Tensor slice_of(const Tensor& array, int64_t index) {
  Shape shape = array.shape();
  shape.erase(0);
  Tensor slice = made({array.dtype(), shape});
  const size_t bytes = bytes_of(slice);
  if (bytes > 0) std::memcpy(data(slice), data(array) + static_cast<size_t>(index) * bytes, bytes);
  return slice;
}

void put_slice(const Tensor& array, int64_t index, const Tensor& slice) {
  const size_t bytes = bytes_of(slice);
  if (bytes > 0) std::memcpy(data(array) + static_cast<size_t>(index) * bytes, data(slice), bytes);
}

using Tensors = std::vector<Tensor>;

// Whether no partial result can overflow or lose its last places to underflow: the reference adds
// up in wider arithmetic and another order, where neither happens.
bool are_moderate(const Node& node, const Tensors& inputs) {
  // One rounding has no partial results.
  if (node.op->family == Family::pointwise && node.op->ulps == 0) return true;
  const long double most = node.op->ulps > 0 ? 80 : 1e15L;
  long double powers = 0;
  for (const Tensor& input : inputs) {
    if (!is_float(input.dtype())) continue;
    const Tensor dense = sweep::dense_copy(input);
    const ArrayRef& array = detail::array_of(dense, Source::none());
    for (int64_t i = 0; i < array.size(); ++i) {
      const long double element = reference::read_float(array, i);
      const long double size = std::fabs(element);
      // Of zeros of both signs the least or largest may be either.
      if (node.op->family == Family::reduce && size == 0 && std::signbit(element)) return false;
      if (!std::isfinite(size) || size == 0) continue;
      if (size > most || size < 1e-15L) return false;
      powers += std::fabs(std::log2(size));
    }
  }
  return node.op->self != &prod || powers < 100;
}

class Evaluator {
 public:
  explicit Evaluator(const Graph& graph) : graph_(graph) {}

  Tensors region(RegionId id, const Tensors& arguments) {
    const Region& region = graph_.regions[static_cast<size_t>(id)];
    std::map<std::pair<int32_t, int16_t>, Tensor> values;
    for (size_t i = 0; i < arguments.size(); ++i)
      values[{region.parameters[i].node, region.parameters[i].result}] = arguments[i];
    for (const int32_t number : region.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      Tensors inputs;
      for (const Value input : node.inputs) inputs.push_back(values.at({input.node, input.result}));
      const Tensors results = run(node, inputs);
      for (size_t r = 0; r < results.size(); ++r) {
        TIDEMARK_CHECK(results[r].dtype() == node.results[r].dtype &&
                           results[r].shape() == node.results[r].shape,
                       node.op->name, " gives another type than its node has");
        values[{number, static_cast<int16_t>(r)}] = results[r];
      }
    }
    Tensors results;
    for (const Value result : region.results)
      results.push_back(values.at({result.node, result.result}));
    return results;
  }

 private:
  Tensors run(const Node& node, const Tensors& inputs) {
    if (node.op->self == &ops::constant) return {constant(node)};
    if (node.op->self == &ops::cond) return cond(node, inputs);
    if (node.op->self == &ops::loop) return loop(node, inputs);
    if (node.op->self == &ops::map) return map(node, inputs);
    if (node.op->self == &ops::reverse_loop) return reverse_loop(node, inputs);
    Tensors results;
    for (int r = 0; r < node.op->results; ++r) results.push_back(op(node, inputs, r));
    return results;
  }

  static Tensor constant(const Node& node) {
    Attrs::Reader read = node.attrs.read();
    const DType dtype = read.dtype();
    const double real = read.number();
    Tensor number = made({dtype, {}});
    compile::run_fill(number_bits(real, read.integer(), is_float(dtype), dtype),
                      detail::array_of(number, Source::none()));
    return number;
  }

  static Tensor op(const Node& node, const Tensors& inputs, int result) {
    const Tensor got = sweep::run_kernel(*node.op, inputs, node.attrs, result);
    if (!are_moderate(node, inputs)) return got;
    const sweep::Case one{node.op, inputs, node.attrs, "", result};
    const Tensor want = sweep::expected(*node.op, inputs, node.attrs, result);
    const std::string apart = want.has_value() ? sweep::difference(one, got, want) : "";
    TIDEMARK_CHECK(apart.empty(), node.op->name, " is not what the reference gives: ", apart);
    return got;
  }

  Tensors cond(const Node& node, const Tensors& inputs) {
    return dense(
        region(node.regions[item<bool>(inputs[0]) ? 0 : 1], {inputs.begin() + 1, inputs.end()}));
  }

  Tensors loop(const Node& node, const Tensors& inputs) {
    const LoopAttrs attrs(node);
    int64_t trips = attrs.trips.known_or(-1);
    auto next = inputs.begin();
    if (attrs.counted) {
      const int64_t count = item<int64_t>(*next++);
      if (count < 0 || (trips >= 0 && count > trips))
        throw UserError(cat("a loop of ", count, " trips"), Source::none(), "the most is known");
      trips = count;
    }
    Tensors carried = dense({next, next + attrs.carries});
    const Tensors walked = dense({next + attrs.carries, next + attrs.carries + attrs.slices});
    const Tensors captures(next + attrs.carries + attrs.slices, inputs.end());
    Tensors given;
    for (const TensorType& type : node.results) given.push_back(made(type));
    int64_t trip = 0;
    for (; trips < 0 || trip < trips; ++trip) {
      Tensors arguments = {number(trip)};
      append(arguments, carried);
      if (node.regions.size() > 1) {
        Tensors test = arguments;
        append(test, captures);
        if (!item<bool>(region(node.regions[1], test)[0])) break;
      }
      const int64_t at = attrs.reverse ? trips - 1 - trip : trip;
      for (const Tensor& array : walked) arguments.push_back(slice_of(array, at));
      append(arguments, captures);
      const Tensors results = dense(region(node.regions[0], arguments));
      carried.assign(results.begin(), results.begin() + attrs.carries);
      for (int64_t k = 0; k < attrs.stacked; ++k)
        put_slice(given[attrs.stacked_result(static_cast<size_t>(k))], at,
                  results[static_cast<size_t>(attrs.carries + k)]);
    }
    std::copy(carried.begin(), carried.end(), given.begin());
    // Of what is kept only the number of trips counts: a reversal starts again from the start.
    if (attrs.marks != 0)
      std::memcpy(data(given[static_cast<size_t>(attrs.marks)]), &trip, sizeof(trip));
    return given;
  }

  static Tensor number(int64_t value) {
    Tensor made_number = made({DType::i64, {}});
    std::memcpy(data(made_number), &value, sizeof(value));
    return made_number;
  }

  // All states first, then back over the trips.
  Tensors reverse_loop(const Node& node, const Tensors& inputs) {
    const ReverseAttrs attrs(node);
    int64_t trips = 0;
    const Tensor marks = sweep::dense_copy(inputs[0]);
    std::memcpy(&trips, data(marks), sizeof(trips));
    auto next = inputs.begin() + 1 + attrs.carries;
    std::vector<Tensors> states = {dense({next, next + attrs.carries})};
    next += attrs.carries;
    Tensors backs = dense({next, next + attrs.backs});
    next += attrs.backs;
    const Tensors walked = dense({next, next + attrs.slices});
    const Tensors captures(next + attrs.slices, inputs.end());
    const auto append_rest = [&](Tensors& arguments, int64_t at) {
      for (const Tensor& array : walked) arguments.push_back(slice_of(array, at));
      append(arguments, captures);
    };
    const auto slice = [&](int64_t trip) { return attrs.reverse ? trips - 1 - trip : trip; };
    for (int64_t trip = 0; trip + 1 < trips; ++trip) {
      Tensors arguments = {number(trip)};
      append(arguments, states.back());
      append_rest(arguments, slice(trip));
      states.push_back(dense(region(node.regions[0], arguments)));
    }
    Tensors stacks;
    for (int64_t k = 0; k < attrs.stacked; ++k)
      stacks.push_back(made(node.results[static_cast<size_t>(attrs.backs + k)]));
    for (int64_t trip = trips; trip-- > 0;) {
      Tensors arguments = {number(trip)};
      append(arguments, states[static_cast<size_t>(trip)]);
      append(arguments, backs);
      append_rest(arguments, slice(trip));
      const Tensors results = dense(region(node.regions[1], arguments));
      backs.assign(results.begin(), results.begin() + attrs.backs);
      for (int64_t k = 0; k < attrs.stacked; ++k)
        put_slice(stacks[static_cast<size_t>(k)], slice(trip),
                  results[static_cast<size_t>(attrs.backs + k)]);
    }
    append(backs, stacks);
    return backs;
  }

  Tensors map(const Node& node, const Tensors& inputs) {
    Attrs::Reader read = node.attrs.read();
    const int64_t slices = read.integer(), trips = read.size();
    const Tensors walked = dense({inputs.begin(), inputs.begin() + slices});
    Tensors stacks;
    for (const TensorType& type : node.results) stacks.push_back(made(type));
    for (int64_t trip = 0; trip < trips; ++trip) {
      Tensors arguments;
      for (const Tensor& array : walked) arguments.push_back(slice_of(array, trip));
      arguments.insert(arguments.end(), inputs.begin() + slices, inputs.end());
      const Tensors results = dense(region(node.regions[0], arguments));
      for (size_t k = 0; k < results.size(); ++k) put_slice(stacks[k], trip, results[k]);
    }
    return stacks;
  }

  // What control flow carries, walks and gives has bytes of its own.
  static Tensors dense(Tensors list) {
    for (Tensor& each : list) each = sweep::dense_copy(each);
    return list;
  }
  static void append(Tensors& to, const Tensors& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const Graph& graph_;
};

}  // namespace

std::vector<Tensor> evaluate(const Graph& graph, const std::vector<Tensor>& arguments) {
  std::vector<Tensor> results = Evaluator(graph).region(Graph::kBody, arguments);
  for (Tensor& result : results) result = sweep::dense_copy(result);
  return results;
}

}  // namespace tidemark::testing

#include "tests/unit/compile/graphs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "tests/unit/emit/naive.h"
#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/compile/cpu/backend.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/group.h"
#include "tidemark/ops/lower.h"

namespace tidemark::testing {
namespace {

constexpr size_t kEdge = 64;
constexpr std::byte kPaint{0xa5};

const OpDef& op_named(std::string_view name) {
  const OpDef* op = find_op(name);
  TIDEMARK_CHECK(op != nullptr, "no op ", name);
  return *op;
}

}  // namespace

// ---- making -------------------------------------------------------------------------------------

Value GraphMaker::parameter(DType dtype, const Shape& shape) {
  return graph.add_parameter(Graph::kBody, {dtype, shape}, Source::none());
}

Value GraphMaker::constant(double number, DType dtype) {
  const Attrs attrs = Attrs().add(dtype).add(number).add(static_cast<int64_t>(number));
  return graph.add(Graph::kBody, op_named("constant"), {}, attrs, {dtype, {}}, Source::none());
}

Value GraphMaker::range(int64_t count, DType dtype, double start, double step) {
  const Attrs attrs = Attrs()
                          .add(DimList{count})
                          .add(dtype)
                          .add(start)
                          .add(step)
                          .add(!is_float(dtype))
                          .add(static_cast<int64_t>(start))
                          .add(static_cast<int64_t>(step));
  return graph.add(Graph::kBody, op_named("arange"), {}, attrs, {dtype, {count}}, Source::none());
}

Value GraphMaker::add(std::string_view name, std::span<const Value> operands, const Attrs& attrs) {
  const OpDef& op = op_named(name);
  std::vector<TensorType> types;
  for (const Value operand : operands) types.push_back(type(operand));
  const TensorType result = op.infer(InferContext{op, types, attrs, Source::none()});
  return graph.add(Graph::kBody, op, operands, attrs, result, Source::none());
}

Value GraphMaker::apply(std::string_view name, std::initializer_list<Value> operands) {
  const OpDef& op = op_named(name);
  std::vector<OperandType> types;
  TensorType result;
  for (const Value operand : operands) {
    types.push_back({.dtype = type(operand).dtype});
    broadcast_into(result.shape, type(operand).shape, name, Source::none());
  }
  result.dtype = infer_pointwise(op, types, Source::none()).result;
  return graph.add(Graph::kBody, op, std::span(operands.begin(), operands.size()), {}, result,
                   Source::none());
}

Value GraphMaker::cast(Value x, DType dtype) { return add("cast", {&x, 1}, Attrs().add(dtype)); }

Value GraphMaker::reduce(std::string_view op, Value x, const AxisList& axes, bool keep) {
  return add(op, {&x, 1}, Attrs().add(axes).add(keep));
}

Value GraphMaker::row(std::string_view op, Value x, int64_t axis) {
  return add(op, {&x, 1}, Attrs().add(axis));
}

Value GraphMaker::reshape(Value x, const Shape& shape) {
  return add("reshape", {&x, 1}, Attrs().add(shape));
}

Value GraphMaker::transpose(Value x, const AxisList& order) {
  return add("transpose", {&x, 1}, Attrs().add(order));
}

Value GraphMaker::slice(Value x, const DimList& begin, const DimList& size, const AxisList& step) {
  return add("slice", {&x, 1}, Attrs().add(begin).add(size).add(step));
}

Value GraphMaker::broadcast_to(Value x, const Shape& shape) {
  return add("broadcast_to", {&x, 1}, Attrs().add(shape));
}

// ---- memory -------------------------------------------------------------------------------------

Memory::Memory(const TensorType& type)
    : size_(static_cast<size_t>(type.shape.size() * size_of(type.dtype))) {
  held_ = std::make_unique<std::byte[]>(size_ + 3 * kEdge);
  std::fill_n(held_.get(), size_ + 3 * kEdge, kPaint);
  // Rows that start where vectors end, as plans place them.
  const auto address = reinterpret_cast<uintptr_t>(held_.get()) + kEdge;
  ref_.data = held_.get() + kEdge + (kEdge - address % kEdge) % kEdge;
  ref_.dtype = type.dtype;
  ref_.shape = type.shape;
  ref_.strides = contiguous_strides(type.shape);
}

bool Memory::edges_are_whole() const {
  const auto begin = ref_.data - held_.get();
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(size_ + 3 * kEdge); ++i) {
    const bool inside = i >= begin && i < begin + static_cast<std::ptrdiff_t>(size_);
    if (!inside && held_[static_cast<size_t>(i)] != kPaint) return false;
  }
  return true;
}

std::span<const std::byte> Memory::bytes() const { return {ref_.data, size_}; }

compile::TaskPlan plan_group(passes::Scheduler& scheduler, const Node& group,
                             std::span<const ArrayRef> inputs, std::span<const ArrayRef> results) {
  compile::GroupWork work = compile::group_work(scheduler, group, inputs, results);
  work.threads = num_threads();
  return compile::cpu_backend().group(std::move(work));
}

std::vector<Memory> random_arguments(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Memory> arguments;
  for (const Value parameter : graph.body().parameters) {
    const TensorType& type = graph.type(parameter);
    arguments.emplace_back(type);
    const ArrayRef ref = arguments.back().ref();
    for (int64_t i = 0; i < ref.size(); ++i)
      write_element(type.dtype, ref.data + i * size_of(type.dtype),
                    random_value(type.dtype, random));
  }
  return arguments;
}

// ---- running ------------------------------------------------------------------------------------

namespace {

class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Memory>& arguments) : graph_(graph) {
    for (size_t i = 0; i < arguments.size(); ++i)
      seen_[key(graph.body().parameters[i])] = arguments[i].ref();
  }

  std::vector<Memory> run() {
    for (const int32_t number : graph_.body().nodes) run_node(number);
    std::vector<Memory> results;
    for (const Value result : graph_.body().results) {
      results.emplace_back(graph_.type(result));
      compile::run_copy(array(result), results.back().ref());
    }
    for (const Memory& memory : held_)
      TIDEMARK_CHECK(memory.edges_are_whole(), "somebody wrote beside its array");
    return results;
  }

 private:
  static std::pair<int32_t, int16_t> key(Value value) { return {value.node, value.result}; }
  const ArrayRef& array(Value value) { return seen_.at(key(value)); }

  ArrayRef& made(Value value) {
    held_.emplace_back(graph_.type(value));
    return seen_[key(value)] = held_.back().ref();
  }

  void run_node(int32_t number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    const Value result{number, 0};
    if (node.op->name == "constant") {
      compile::run_fill(constant_bits(node), made(result));
    } else if (node.op->name == "arange") {
      run_range(node, made(result));
    } else if (node.op->name == "group") {
      run_group(node, number);
    } else if (node.op->view != nullptr) {
      run_view(node, result);
    } else if (node.op->family == Family::pointwise) {
      run_pointwise(node, made(result));
    } else if (node.op->family == Family::reduce) {
      compile::run_reduce(*node.op, array(node.inputs[0]), node.attrs.read().integers(),
                          made(result));
    } else if (node.op->family == Family::row) {
      compile::run_row(*node.op, array(node.inputs[0]), node.attrs.read().integer(), made(result));
    } else {
      TIDEMARK_CHECK(false, "no way to run ", node.op->name);
    }
  }

  static uint64_t constant_bits(const Node& node) {
    Attrs::Reader read = node.attrs.read();
    const DType dtype = read.dtype();
    const double real = read.number();
    return number_bits(real, read.integer(), is_float(dtype), dtype);
  }

  static void run_range(const Node& node, const ArrayRef& to) {
    Attrs::Reader read = node.attrs.read();
    read.sizes();
    read.dtype();
    const double start = read.number(), step = read.number();
    const bool whole = read.boolean();
    const int64_t whole_start = read.integer(), whole_step = read.integer();
    whole ? compile::run_range(whole_start, whole_step, to) : compile::run_range(start, step, to);
  }

  void run_view(const Node& node, Value result) {
    ArrayRef seen{nullptr, graph_.type(result).dtype, graph_.type(result).shape, {}};
    if (node.op->view(array(node.inputs[0]), node.attrs, seen)) {
      seen_[key(result)] = seen;
      return;
    }
    Memory copy({seen.dtype, graph_.type(node.inputs[0]).shape});
    compile::run_copy(array(node.inputs[0]), copy.ref());
    std::memcpy(made(result).data, copy.ref().data, copy.bytes().size());
  }

  void run_pointwise(const Node& node, const ArrayRef& to) {
    std::vector<ArrayRef> stretched(node.inputs.size());
    std::vector<compile::Input> inputs;
    std::vector<OperandType> types;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      types.push_back({.dtype = graph_.type(node.inputs[i]).dtype});
      stretched[i] = {nullptr, types[i].dtype, to.shape, {}};
      const bool fits = op_named("broadcast_to").view(array(node.inputs[i]), {}, stretched[i]);
      TIDEMARK_CHECK(fits, "every array can be stretched");
      inputs.push_back({.array = &stretched[i]});
    }
    PointwiseType type;
    if (node.op->value != nullptr)
      type = infer_pointwise(*node.op, types, Source::none());
    else
      type = {.compute = {types[0].dtype}, .result = to.dtype};
    compile::run_pointwise(*node.op, inputs, type, to);
  }

  void run_group(const Node& node, int32_t number) {
    std::vector<ArrayRef> inputs, results;
    std::vector<std::byte*> operands;
    for (const Value input : node.inputs) inputs.push_back(array(input));
    for (size_t r = 0; r < node.results.size(); ++r)
      results.push_back(made({number, static_cast<int16_t>(r)}));
    for (const ArrayRef& input : inputs) operands.push_back(input.data);
    for (const ArrayRef& result : results) operands.push_back(result.data);
    compile::KernelBatch batch;
    passes::Scheduler scheduler(graph_);
    const compile::TaskPlan plan = plan_group(scheduler, node, inputs, results);
    const std::unique_ptr<run::Task> task = plan.make(batch);
    batch.compile();
    held_.emplace_back(TensorType{DType::u8, {plan.workspace_bytes}});
    std::byte* const workspace = held_.back().ref().data;
    task->run(operands.data(), workspace);
    for (size_t k = 0; k < inputs.size(); ++k) {
      for (size_t r = 0; r < results.size(); ++r) {
        const auto input = static_cast<int32_t>(k), result = static_cast<int32_t>(r);
        if (inputs[k].is_contiguous() && compile::may_overwrite(scheduler, node, input, result))
          run_in_place(*task, operands, k, inputs[k], inputs.size() + r, results, workspace);
      }
    }
  }

  // Once more, with one result in the bytes of a copy of one input: all must come out as before.
  void run_in_place(const run::Task& task, std::vector<std::byte*> operands, size_t input,
                    const ArrayRef& given, size_t result, const std::vector<ArrayRef>& results,
                    std::byte* workspace) {
    const size_t first = operands.size() - results.size();
    std::vector<Memory> fresh;
    for (const ArrayRef& each : results) fresh.emplace_back(TensorType{each.dtype, each.shape});
    for (size_t r = 0; r < results.size(); ++r) operands[first + r] = fresh[r].ref().data;
    const Memory& both = fresh[result - first];
    std::memcpy(both.ref().data, given.data, both.bytes().size());
    operands[input] = both.ref().data;
    task.run(operands.data(), workspace);
    for (size_t r = 0; r < results.size(); ++r) {
      const size_t bytes = fresh[r].bytes().size();
      TIDEMARK_CHECK(std::memcmp(fresh[r].ref().data, results[r].data, bytes) == 0, "result ", r,
                     " changes when result ", result - first, " is computed in place of input ",
                     input);
    }
  }

  const Graph& graph_;
  std::vector<Memory> held_;
  std::map<std::pair<int32_t, int16_t>, ArrayRef> seen_;
};

}  // namespace

std::vector<Memory> run_graph(const Graph& graph, const std::vector<Memory>& arguments) {
  return Runner(graph, arguments).run();
}

std::string difference(const std::vector<Memory>& a, const std::vector<Memory>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const ArrayRef x = a[i].ref(), y = b[i].ref();
    for (int64_t k = 0; k < x.size(); ++k) {
      const uint64_t p = read_element(x.dtype, x.data + k * size_of(x.dtype));
      const uint64_t q = read_element(y.dtype, y.data + k * size_of(y.dtype));
      if (!same(x.dtype, p, q))
        return cat("result ", i, " of ", TensorType{x.dtype, x.shape}, " at ", k, ": ", p, " and ",
                   q);
    }
  }
  return "";
}

std::string outline(const Graph& graph) {
  std::string text;
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (!text.empty()) text += " ";
    text += node.op->name;
    if (node.regions.empty()) continue;
    text += "[";
    for (const RegionId region : node.regions) {
      bool first = true;
      for (const int32_t inner : graph.regions[static_cast<size_t>(region)].nodes) {
        const Node& member = graph.nodes[static_cast<size_t>(inner)];
        if (member.op->family == Family::source) continue;
        text += first ? "" : " ";
        text += member.op->name;
        first = false;
      }
    }
    text += "]";
  }
  return text;
}

}  // namespace tidemark::testing

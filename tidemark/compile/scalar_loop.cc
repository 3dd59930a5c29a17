#include "tidemark/compile/scalar_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "tidemark/base/heap.h"
#include "tidemark/base/work.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"

namespace tidemark::compile {
namespace {

// There are few registers, and every element has its own instructions.
constexpr int64_t kMostElements = 16;
constexpr size_t kMostExprs = 400;

// Thrown if the loop is not of this kind: it becomes steps.
struct NotScalar {};

void need(bool holds) {
  if (!holds) throw NotScalar();
}

bool is_exact(DType dtype) { return !is_low_precision(dtype); }

// For each element of a view, in row-major order, the number of the operand's element that it
// shows.
std::vector<int64_t> shown_elements(const ArrayRef& view) {
  std::vector<int64_t> elements;
  const int64_t first = (view.data - kNowhere) / size_of(view.dtype);
  const int64_t count = view.shape.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, element = first;
    for (int64_t axis = view.rank(); axis-- > 0;) {
      element += rest % view.shape[axis] * view.strides[static_cast<size_t>(axis)];
      rest /= view.shape[axis];
    }
    elements.push_back(element);
  }
  return elements;
}

ArrayRef dense(const TensorType& type) {
  return {kNowhere, type.dtype, type.shape, contiguous_strides(type.shape)};
}

class Scalariser {
 public:
  Scalariser(const Graph& graph, const Node& node, std::span<const OperandLayout> captures)
      : graph_(graph), node_(node), outer_(captures) {}

  ScalarLoop run() {
    const LoopAttrs attrs(node_);
    const auto carries = static_cast<size_t>(attrs.carries);
    const auto slices = static_cast<size_t>(attrs.slices);
    const auto stacked = static_cast<size_t>(attrs.stacked);
    trips_ = attrs.counted ? -1 : attrs.trips.known_or(-1);
    const Region& body = region(node_.regions[0]);
    need(body.nodes.size() <= kMostExprs);
    loop_.buffers = static_cast<int32_t>(carries + slices);
    trip_ = add({.op = ExprOp::index, .dtype = DType::i64});
    slice_ = trip_;
    if (attrs.reverse) {
      const int32_t most = add({.op = ExprOp::scalar, .dtype = DType::i64});
      const int32_t one = add({.op = ExprOp::constant, .dtype = DType::i64, .bits = 1});
      const int32_t last =
          add({.op = ExprOp::subtract, .dtype = DType::i64, .in = {most, one, -1}});
      slice_ = add({.op = ExprOp::subtract, .dtype = DType::i64, .in = {last, trip_, -1}});
    }
    take_captures(body, carries, slices);
    for (size_t k = 0; k < carries; ++k) take_carry(body, k);
    for (size_t k = 0; k < slices; ++k) take_slice(body.parameters[1 + carries + k], carries + k);
    values_[key(body.parameters[0])] = {{trip_}};
    if (node_.regions.size() > 1) write_condition(carries);
    write_region(body);
    for (size_t k = 0; k < carries; ++k) finish_carry(body, k);
    for (size_t k = 0; k < stacked; ++k) write_element(body.results[carries + k]);
    loop_.exprs = recipe_.exprs;
    need(loop_.exprs.size() <= kMostExprs && loop_.buffers < run::kMostOperands);
    return {std::move(loop_), std::move(sites_)};
  }

 private:
  // Elements in registers, or an array in memory: its buffer, and the number of writes so far.
  struct LoopValue {
    std::vector<int32_t> elements;
    int32_t buffer = -1;
    int32_t state = 0;
  };

  static std::pair<int32_t, int32_t> key(Value value) { return {value.node, value.result}; }
  const Region& region(RegionId id) const { return graph_.regions[static_cast<size_t>(id)]; }
  const LoopValue& value_of(Value value) const { return values_.at(key(value)); }
  const std::vector<int32_t>& elements(Value value) const {
    need(value_of(value).buffer < 0);
    return value_of(value).elements;
  }
  int32_t add(const Expr& expr) { return append(recipe_, expr); }

  int32_t add_access(const Recurrence::Access& access, const ScalarLoop::Site& site = {}) {
    loop_.accesses.push_back(access);
    sites_.push_back(site);
    return static_cast<int32_t>(loop_.accesses.size() - 1);
  }
  int32_t add_load(const Recurrence::Access& access, std::vector<Recurrence::Move>& moves,
                   const ScalarLoop::Site& site = {}) {
    const int32_t number = add_access(access, site);
    const int32_t expr = add({.op = ExprOp::load, .dtype = access.dtype, .ref = number});
    moves.push_back({number, expr});
    return expr;
  }

  // Whether a region reads or writes slices of this parameter, which then stays in memory.
  bool is_array(const Region& where, Value parameter) const {
    return std::any_of(where.nodes.begin(), where.nodes.end(), [&](int32_t number) {
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      return node.op->family == Family::index && node.inputs[0] == parameter;
    });
  }
  void need_small(const TensorType& type) const {
    need(is_exact(type.dtype) && type.shape.size() <= kMostElements);
  }

  void take_captures(const Region& body, size_t carries, size_t slices) {
    for (size_t i = 0; i < outer_.size(); ++i) {
      const Value parameter = body.parameters[1 + carries + slices + i];
      const TensorType& type = graph_.type(parameter);
      LoopValue taken;
      if (outer_[i].is_number) {
        need_small(type);
        const int32_t number =
            add({.op = ExprOp::constant, .dtype = type.dtype, .bits = outer_[i].number});
        taken.elements.assign(static_cast<size_t>(type.shape.size()), number);
      } else {
        const int32_t buffer = loop_.buffers++;
        if (is_array(body, parameter)) {
          need(outer_[i].layout.is_contiguous() && is_exact(type.dtype));
          taken.buffer = buffer;
        } else {
          need_small(type);
          // The address that is passed is that of the first element of the view.
          ArrayRef layout = outer_[i].layout;
          layout.data = kNowhere;
          for (const int64_t element : shown_elements(layout))
            taken.elements.push_back(
                add_load({.buffer = buffer, .dtype = type.dtype, .first = element}, loop_.before));
        }
      }
      captured_.push_back(taken);
      values_[key(parameter)] = std::move(taken);
    }
  }

  void take_carry(const Region& body, size_t k) {
    const Value parameter = body.parameters[1 + k];
    const TensorType& type = graph_.type(parameter);
    LoopValue taken;
    if (is_array(body, parameter)) {
      need(is_exact(type.dtype));
      taken.buffer = static_cast<int32_t>(k);
    } else {
      need_small(type);
      for (int64_t e = 0; e < type.shape.size(); ++e) {
        const int32_t start = add_load(
            {.buffer = static_cast<int32_t>(k), .dtype = type.dtype, .first = e}, loop_.before);
        taken.elements.push_back(add({.op = ExprOp::cell,
                                      .dtype = type.dtype,
                                      .ref = static_cast<int32_t>(loop_.registers.size())}));
        loop_.registers.push_back({.start = start, .next = -1});
      }
    }
    carried_.push_back(taken);
    values_[key(parameter)] = std::move(taken);
  }

  void take_slice(Value parameter, size_t buffer) {
    const TensorType& type = graph_.type(parameter);
    need_small(type);
    LoopValue taken;
    for (int64_t e = 0; e < type.shape.size(); ++e) {
      taken.elements.push_back(add_load({.buffer = static_cast<int32_t>(buffer),
                                         .dtype = type.dtype,
                                         .first = e,
                                         .scale = type.shape.size(),
                                         .index = slice_},
                                        loop_.moves));
    }
    values_[key(parameter)] = std::move(taken);
  }

  void write_condition(size_t carries) {
    const Region& condition = region(node_.regions[1]);
    values_[key(condition.parameters[0])] = {{trip_}};
    for (size_t k = 0; k < carries; ++k) values_[key(condition.parameters[1 + k])] = carried_[k];
    for (size_t i = 0; i < captured_.size(); ++i)
      values_[key(condition.parameters[1 + carries + i])] = captured_[i];
    const size_t moves = loop_.moves.size();
    write_region(condition);
    need(loop_.moves.size() == moves);
    loop_.condition = elements(condition.results[0])[0];
  }

  void write_region(const Region& where) {
    for (const int32_t number : where.nodes) write_in_turn(where, number);
  }

  // Writes a node after the nodes that it reads, and a write of an array after all reads of its old
  // state.
  void write_in_turn(const Region& where, int32_t number) {
    if (written_.contains(number)) return;
    need(begun_.insert(number).second);  // Otherwise two nodes depend on each other.
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    for (const Value input : node.inputs) {
      if (graph_.node(input).op != nullptr) write_in_turn(where, input.node);
    }
    if (node.op->routine == Routine::put) {
      for (const int32_t other : where.nodes) {
        const auto& inputs = graph_.nodes[static_cast<size_t>(other)].inputs;
        if (other != number &&
            std::find(inputs.begin(), inputs.end(), node.inputs[0]) != inputs.end())
          write_in_turn(where, other);
      }
    }
    write_node(number);
    need(recipe_.exprs.size() <= kMostExprs);
    written_.insert(number);
  }

  void write_node(int32_t number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    if (node.op->literal == Literal::number) {
      write_constant(node, number);
    } else if (node.op->flow == Flow::group) {
      write_group(node, number);
    } else if (node.op->view != nullptr) {
      write_view(node, number);
    } else if (node.op->family == Family::pointwise) {
      write_pointwise(node, number);
    } else if (node.op->routine == Routine::concat) {
      write_concat(node, number);
    } else if (node.op->routine == Routine::put) {
      write_put(node, number);
    } else {
      need(node.op->routine == Routine::gather);
      write_gather(node, number);
    }
  }

  void write_constant(const Node& node, int32_t number) {
    Attrs::Reader read = node.attrs.read();
    const DType dtype = read.dtype();
    need(is_exact(dtype));
    const double real = read.number();
    const uint64_t bits = number_bits(real, read.integer(), is_float(dtype), dtype);
    values_[{number, 0}] = {{add({.op = ExprOp::constant, .dtype = dtype, .bits = bits})}};
  }

  void write_group(const Node& node, int32_t number) {
    const Region& inner = region(node.regions[0]);
    for (size_t i = 0; i < inner.parameters.size(); ++i)
      values_[key(inner.parameters[i])] = value_of(node.inputs[i]);
    write_region(inner);
    for (size_t r = 0; r < inner.results.size(); ++r)
      values_[{number, static_cast<int32_t>(r)}] = value_of(inner.results[r]);
  }

  void write_view(const Node& node, int32_t number) {
    const TensorType& type = node.results[0];
    need_small(type);
    ArrayRef view = dense(type);
    need(node.op->view(dense(graph_.type(node.inputs[0])), node.attrs, view));
    const std::vector<int32_t>& from = elements(node.inputs[0]);
    LoopValue shown;
    for (const int64_t element : shown_elements(view))
      shown.elements.push_back(from[static_cast<size_t>(element)]);
    values_[{number, 0}] = std::move(shown);
  }

  // The elements of an operand, broadcast to the shape of a pointwise result.
  std::vector<int32_t> spread(Value operand, const Shape& shape) const {
    const TensorType& type = graph_.type(operand);
    ArrayRef view = dense(type);
    view.shape = shape;
    view.strides.clear();
    const int64_t shift = shape.rank() - type.shape.rank();
    const Strides strides = contiguous_strides(type.shape);
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      const bool repeats = axis < shift || type.shape[axis - shift] != shape[axis];
      view.strides.push_back(repeats ? 0 : strides[static_cast<size_t>(axis - shift)]);
    }
    std::vector<int32_t> met;
    for (const int64_t element : shown_elements(view))
      met.push_back(elements(operand)[static_cast<size_t>(element)]);
    return met;
  }

  void write_pointwise(const Node& node, int32_t number) {
    const TensorType& type = node.results[0];
    need_small(type);
    std::vector<OperandType> types;
    std::vector<std::vector<int32_t>> operands;
    for (const Value input : node.inputs) {
      types.push_back({.dtype = graph_.type(input).dtype});
      operands.push_back(spread(input, type.shape));
    }
    // The type of a cast.
    PointwiseType inferred{.compute = {types[0].dtype}, .result = type.dtype};
    if (node.op->value != nullptr) inferred = infer_pointwise(*node.op, types, node.source);
    const std::span<const DType> computes(inferred.compute.data(), types.size());
    need(std::all_of(computes.begin(), computes.end(), is_exact));
    LoopValue made;
    for (size_t e = 0; e < static_cast<size_t>(type.shape.size()); ++e) {
      std::vector<Scalar> scalars;
      for (size_t i = 0; i < operands.size(); ++i)
        scalars.push_back(converted(Scalar(recipe_, operands[i][e]), computes[i]));
      made.elements.push_back(applied(recipe_, *node.op, scalars, type.dtype).id());
    }
    values_[{number, 0}] = std::move(made);
  }

  void write_concat(const Node& node, int32_t number) {
    const TensorType& type = node.results[0];
    need_small(type);
    int64_t outer = 1;
    for (int64_t axis = 0; axis < node.attrs.read().integer(); ++axis) outer *= type.shape[axis];
    LoopValue made;
    for (int64_t o = 0; o < outer; ++o) {
      for (const Value input : node.inputs) {
        const auto run = graph_.type(input).shape.size() / outer;
        const auto first = elements(input).begin() + o * run;
        made.elements.insert(made.elements.end(), first, first + run);
      }
    }
    values_[{number, 0}] = std::move(made);
  }

  // The index of a slice, as an i64.
  int32_t index_of(Value value) {
    const TensorType& type = graph_.type(value);
    need(type.shape.rank() == 0 && is_exact(type.dtype));
    need(type.dtype != DType::u64);  // A number beyond i64 would count from the end.
    const int32_t index = elements(value)[0];
    if (type.dtype == DType::i64) return index;
    return add({.op = ExprOp::cast, .dtype = DType::i64, .in = {index, -1, -1}});
  }
  // The address of slice number `index` in the current state of an array.
  Recurrence::Access slice_at(const Node& node, int32_t index) {
    const LoopValue& array = value_of(node.inputs[0]);
    need(array.buffer >= 0 && array.state == state_of(array.buffer));
    const TensorType& type = graph_.type(node.inputs[0]);
    const int64_t bound = type.shape[0];
    need(bound > 0);
    const std::optional<Range> range = range_of(index);
    const bool is_right = range && range->least >= 0 && range->most < bound;
    return {.buffer = array.buffer,
            .dtype = type.dtype,
            .scale = type.shape.size() / bound,
            .index = index,
            .bound = is_right ? -1 : bound};
  }

  // The range of an integer expression, if it is known to be well inside its dtype.
  struct Range {
    int64_t least = 0, most = 0;
  };
  std::optional<Range> range_of(int32_t number) {
    Work::add(1);
    const auto [found, fresh] = ranges_.try_emplace(number);
    if (fresh) found->second = find_range(number);
    return found->second;
  }
  std::optional<Range> find_range(int32_t number) {
    constexpr int64_t kFar = int64_t{1} << 30;
    const Expr& expr = recipe_.exprs[static_cast<size_t>(number)];
    if (expr.dtype != DType::i32 && expr.dtype != DType::i64) return {};
    std::optional<Range> range;
    if (expr.op == ExprOp::index) {
      if (trips_ >= 1) range = {0, trips_ - 1};
    } else if (expr.op == ExprOp::constant) {
      const int64_t value = expr.dtype == DType::i32 ? static_cast<int32_t>(expr.bits)
                                                     : static_cast<int64_t>(expr.bits);
      range = {value, value};
    } else if (expr.op == ExprOp::cast) {
      range = range_of(expr.in[0]);
    } else if (expr.op == ExprOp::add || expr.op == ExprOp::subtract) {
      const std::optional<Range> a = range_of(expr.in[0]), b = range_of(expr.in[1]);
      if (!a || !b) return {};
      range = expr.op == ExprOp::add ? Range{a->least + b->least, a->most + b->most}
                                     : Range{a->least - b->most, a->most - b->least};
    }
    return range && range->least > -kFar && range->most < kFar ? range : std::nullopt;
  }
  int32_t state_of(int32_t buffer) const {
    const auto found = states_.find(buffer);
    return found == states_.end() ? 0 : found->second;
  }

  void write_put(const Node& node, int32_t number) {
    Recurrence::Access access = slice_at(node, index_of(node.inputs[1]));
    need(access.scale <= kMostElements);
    const std::vector<int32_t> element = elements(node.inputs[2]);
    for (const int32_t expr : element) {
      const ScalarLoop::Site site{node.op->name, graph_.type(node.inputs[0]), node.source};
      loop_.moves.push_back({add_access(access, site), expr});
      ++access.first;
    }
    const int32_t state = ++states_[access.buffer];
    values_[{number, 0}] = {{}, access.buffer, state};
  }

  void write_gather(const Node& node, int32_t number) {
    need(node.attrs.read().integer() == 0);
    Recurrence::Access access = slice_at(node, index_of(node.inputs[1]));
    need_small(node.results[0]);
    LoopValue made;
    for (int64_t e = 0; e < access.scale; ++e) {
      const ScalarLoop::Site site{node.op->name, graph_.type(node.inputs[0]), node.source};
      made.elements.push_back(add_load(access, loop_.moves, site));
      ++access.first;
    }
    values_[{number, 0}] = std::move(made);
  }

  void finish_carry(const Region& body, size_t k) {
    const LoopValue& before = carried_[k];
    const LoopValue& after = value_of(body.results[k]);
    if (before.buffer >= 0) {
      need(after.buffer == before.buffer && after.state == state_of(before.buffer));
      return;
    }
    need(after.buffer < 0);
    const DType dtype = graph_.type(body.results[k]).dtype;
    for (size_t e = 0; e < before.elements.size(); ++e) {
      const int32_t cell = before.elements[e];
      const auto number = static_cast<size_t>(recipe_.exprs[static_cast<size_t>(cell)].ref);
      loop_.registers[number].next = after.elements[e];
      loop_.after.push_back({add_access({.buffer = static_cast<int32_t>(k),
                                         .dtype = dtype,
                                         .first = static_cast<int64_t>(e)}),
                             cell});
    }
  }

  void write_element(Value result) {
    const TensorType& type = graph_.type(result);
    need_small(type);
    const std::vector<int32_t>& made = elements(result);
    for (size_t e = 0; e < made.size(); ++e) {
      loop_.moves.push_back({add_access({.buffer = loop_.buffers,
                                         .dtype = type.dtype,
                                         .first = static_cast<int64_t>(e),
                                         .scale = type.shape.size(),
                                         .index = slice_}),
                             made[e]});
    }
    ++loop_.buffers;
  }

  const Graph& graph_;
  const Node& node_;
  std::span<const OperandLayout> outer_;
  Recipe recipe_;
  Recurrence loop_;
  std::vector<ScalarLoop::Site> sites_;
  std::map<std::pair<int32_t, int32_t>, LoopValue> values_;
  std::vector<LoopValue> carried_, captured_;
  std::set<int32_t> begun_, written_;
  std::map<int32_t, int32_t> states_;  // By buffer: the number of writes so far.
  int32_t trip_ = 0, slice_ = 0;
  int64_t trips_ = -1;                              // The most trips, if known.
  std::map<int32_t, std::optional<Range>> ranges_;  // By expression.
};

}  // namespace

std::optional<ScalarLoop> scalar_loop(const Graph& graph, const Node& node,
                                      std::span<const OperandLayout> captures) {
  try {
    return Scalariser(graph, node, captures).run();
  } catch (const NotScalar&) {
    return {};
  }
}

}  // namespace tidemark::compile

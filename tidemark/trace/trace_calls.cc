// How a trace interprets calls: each becomes a node of the current scope.
#include <algorithm>

#include "tidemark/device/threads.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/stand_ins.h"
#include "tidemark/tensor/variable_state.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {
namespace {

// A whole number that is passed to the function is used in a dtype that cannot hold all whole
// numbers: each call checks it.
void note_number_use(const Tensor& number, DType dtype, std::string_view op, Source at) {
  if (!is_integer(dtype) || dtype == DType::i32 || dtype == DType::i64) return;
  const TensorState& state = state_of(number, at);
  std::vector<Trace::NumberUse>& known = current_scope()->trace->number_uses();
  const auto same = [&](const Trace::NumberUse& other) {
    return other.number == state.value() && other.dtype == dtype;
  };
  if (std::none_of(known.begin(), known.end(), same))
    known.push_back({state.value(), dtype, std::string(op), at.resolve()});
}

// A tensor converted to another dtype, as a value of the current scope.
Value value_as(const Tensor& tensor, DType dtype, Source at) {
  const Value value = value_of(tensor, at);
  const TensorType type = current_scope()->trace->graph().type(value);
  if (type.dtype == dtype) return value;
  return value_of(
      record(def_of(&ops::cast), {{value}}, Attrs().add(dtype), {dtype, type.shape}, at), at);
}

bool is_traced(const Operand& operand, Source at) {
  return operand.tensor() != nullptr &&
         state_of(*operand.tensor(), at).kind == TensorState::Kind::traced;
}

// An operand in the dtype that an op computes in, as a value of the trace. A plain number is a
// literal.
Value operand_as(const Operand& operand, const PlainNumber& number, DType dtype,
                 std::string_view op, Source at) {
  const bool is_literal = number.weak != Weak::no && !is_traced(operand, at);
  if (!is_literal) {
    if (number.weak == Weak::integer) note_number_use(*operand.tensor(), dtype, op, at);
    return value_as(*operand.tensor(), dtype, at);
  }
  const bool real = number.weak == Weak::floating;
  fitted(number, dtype, op, at);  // Throws if the number does not fit.
  current_scope()->trace->numbers().push_back(
      {at.resolve(), real ? number.real : static_cast<double>(number.whole)});
  // A whole number is rounded to a float dtype once.
  const double value = real ? number.real
                       : dtype == DType::f64
                           ? static_cast<double>(number.whole)
                           : static_cast<double>(static_cast<float>(number.whole));
  return record_constant(dtype, value, number.whole, at);
}

Tensor record_pointwise(const OpCall& call) {
  const device::FloatEnvironment ieee;  // Numbers are rounded to their dtype here.
  const PointwiseTypes types(call);
  SmallVec<Value, 3> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i)
    inputs.push_back(operand_as(*call.operands[i], types.numbers[i], types.type.compute[i],
                                call.op.name, call.at));
  return record(call.op, inputs, {}, types.result(), call.at);
}

SmallVec<Value, 3> values_of(const OpCall& call) {
  SmallVec<Value, 3> values;
  for (const Operand* const operand : call.operands)
    values.push_back(value_of(*operand->tensor(), call.at));
  return values;
}

void record_effect(const OpCall& call) {
  Node node;
  node.op = &call.op;
  node.attrs = call.attrs;
  node.inputs = values_of(call);
  node.source = call.at.resolve();
  current_scope()->trace->graph().add_node(current_scope()->region, std::move(node));
}

}  // namespace

Tensor TraceScope::bind(const OpCall& call) {
  const SourceScope scope(call.at);
  if (is_pointwise(call.op)) return record_pointwise(call);
  if (call.op.family == Family::effect) {
    record_effect(call);
    return {};
  }
  const TensorType wanted = result_type(call);
  return record(call.op, values_of(call), call.attrs, wanted, call.at);
}

Tensors TraceScope::bind_results(const OpCall& call, uint32_t) {
  const SourceScope scope(call.at);
  std::vector<TensorType> types = result_types(call);
  return record_results(call.op, values_of(call), call.attrs, std::move(types), call.at);
}

Tensor TraceScope::as_one_op(const Composition&, Tensors operands,
                             const std::function<Tensor(const Tensors&)>& f, Source at) {
  operands[0] = apart(operands[0], at);
  return f(operands);
}

Tensor TraceScope::constant(DType dtype, double real, int64_t whole, Source at) {
  return traced_tensor(record_constant(dtype, real, whole, at), at.resolve());
}

Tensor TraceScope::number(const Operand& operand, const PlainNumber& number, DType dtype,
                          Source at) {
  if (number.weak != Weak::floating || is_float(dtype))
    return traced_tensor(operand_as(operand, number, dtype, "constant", at), at.resolve());
  if (!is_traced(operand, at)) return {};
  return traced_tensor(value_as(*operand.tensor(), dtype, at), at.resolve());
}

Tensor TraceScope::size_number(Dim size, Source at) {
  const Attrs attrs = Attrs().add(size).add(DType::i64);
  const Source line = at.resolve();
  const Value value =
      trace->graph().add(region, def_of(&ops::size_value), {}, attrs, {DType::i64, {}}, line);
  return traced_tensor(value, line, true);
}

std::optional<Dim> TraceScope::open_size(const TensorState& state) const {
  const Node& node = trace->graph().node(state.value());
  if (node.op == nullptr || node.op->literal != Literal::size) return {};
  return node.attrs.read().size();
}

Tensor TraceScope::read(const VariableState& variable, Source at) {
  if (const Tensor* const given = StandIns::find(variable)) return *given;
  Tensor value = trace->read(variable, at);
  tell_tapes(variable, value);
  return value;
}

void TraceScope::write(VariableState& variable, Tensor value) {
  if (!StandIns::write(variable, value)) trace->write(variable, std::move(value));
}

// A second trace would make a second Variable, and the function would then use another one.
void TraceScope::check_declaration(const std::string& title, Source at) const {
  const std::string& reason = trace->retraced();
  if (reason.empty()) return;
  throw UserError(
      cat(title, " was made in a function that is traced again (", reason,
          "): each trace would make another"),
      at,
      "make it outside and capture it, or keep it in a captured std::optional that only "
      "the first trace fills");
}

std::function<Tensor()> TraceScope::initial_value(const Tensor& value, const std::string& title,
                                                  Source at) {
  if (this != trace->body() || trace->freeze == nullptr)
    throw UserError(cat(title, " was made inside ", what), at,
                    "make it before the loop or the branch");
  return trace->freeze(value, title, at);
}

}  // namespace tidemark::detail

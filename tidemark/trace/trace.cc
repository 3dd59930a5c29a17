#include "tidemark/trace/trace.h"

#include <algorithm>

#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

TraceScope::~TraceScope() {
  if (parent != nullptr) release(parent);
}

Trace::Trace(std::string what, Source at) : body_(new TraceScope) {
  body_->trace = this;
  body_->graph = &graph_;
  body_->what = std::move(what);
  body_->at = at;
}

namespace {

// Tensors hold the scope they were made in, so the scope must release the tensors that it holds.
void end(TraceScope* scope) {
  scope->ended = true;
  scope->trace = nullptr;
  scope->written.clear();
  scope->written_at.clear();
  scope->parameter_of.clear();
  release(scope);
}

}  // namespace

Trace::~Trace() { end(body_); }

Value Trace::add_parameter(const TensorType& type, uint64_t repeats, Source at) {
  const TensorType once{type.dtype, shown_once(type.shape, repeats)};
  const Value parameter = graph_.add_parameter(Graph::kBody, once, at);
  if (repeats == 0) return parameter;
  return graph_.add(Graph::kBody, def_of(&ops::broadcast_to), {{parameter}},
                    Attrs().add(type.shape), type, at);
}

Tensor Trace::argument(const TensorType& type, bool weak, Source at, uint64_t repeats) {
  const EnterScope entered(body_);
  const Value value = add_parameter(type, repeats, at);
  parameters_.push_back({.value = value, .weak = weak});
  return traced_tensor(value, at, weak);
}

Value Trace::capture(const Tensor& tensor, Source at) {
  const TensorState& state = state_of(tensor, at);
  const auto [begin, end] = captures_.equal_range(state.array.data);
  for (auto known = begin; known != end; ++known) {
    const Parameter& parameter = parameters_[known->second];
    const TensorState& other = state_of(parameter.capture, at);
    if (other.storage == state.storage && other.array.dtype == state.array.dtype &&
        other.array.shape == state.array.shape && other.array.strides == state.array.strides)
      return parameter.value;
  }
  const TensorType type{state.array.dtype, state.array.shape};
  const Value value = add_parameter(type, repeated_axes(state.array), state.at);
  captures_.emplace(state.array.data, parameters_.size());
  parameters_.push_back({.capture = tensor, .value = value});
  return value;
}

Node without_history(Graph& graph, Value assigned, Value variable, Source at) {
  const TensorType type = graph.type(variable);
  const RegionId forward = graph.add_region(), back = graph.add_region();
  const Value inside = graph.add_parameter(forward, type, at);
  graph.add_parameter(forward, type, at);
  graph.regions[static_cast<size_t>(forward)].results = {
      graph.add(forward, def_of(&ops::stop_gradient), {{inside}}, {}, type, at)};
  graph.regions[static_cast<size_t>(back)].results = {graph.add_parameter(back, type, at)};
  const int64_t by[] = {1};
  Node node;
  node.op = &def_of(&ops::call);
  node.inputs = {assigned, variable};
  node.regions = {forward, back};
  node.attrs =
      Attrs().add(int64_t{1}).add(std::span<const int64_t>()).add(std::span<const int64_t>(by));
  node.results = {type};
  node.source = at.resolve();
  return node;
}

Tensor Trace::read_assigned(const VariableState& variable, const Tensor& assigned, Source at) {
  const EnterScope entered(body_);
  const Value value = value_of(assigned, at);
  const int32_t parameter = parameter_of(variable);
  const auto [known, fresh] =
      read_back_at_.try_emplace({parameter, value.node, value.result}, read_back_.size());
  if (!fresh) return traced_tensor(read_back_[known->second].value, at);
  const TensorType type = graph_.type(value);
  const Tensor view = record(def_of(&ops::reshape), {{value}}, Attrs().add(type.shape), type, at);
  read_back_.push_back({parameter, value, value_of(view, at)});
  return view;
}

Tensor Trace::read_inside(const VariableState& variable, const Tensor& assigned, Source at) {
  if (!is_differentiable(variable.dtype)) return assigned;
  const Value value = value_of(assigned, at);
  const TensorType type = graph_.type(value);
  if (!variable.trainable) return record(def_of(&ops::stop_gradient), {{value}}, {}, type, at);
  const Value start = value_of(at_start(variable, at), at);
  Node node = without_history(graph_, value, start, at);
  return traced_tensor({graph_.add_node(current_scope()->region, std::move(node)), 0}, at);
}

std::pair<const TraceScope*, const Tensor*> Trace::assigned_to(
    const VariableState& variable) const {
  for (const TraceScope* scope = current_scope(); scope != nullptr; scope = scope->parent)
    if (const Tensor* const value = scope->written_to(variable)) return {scope, value};
  return {};
}

Tensor Trace::read(const VariableState& variable, Source at) {
  const auto [scope, assigned] = assigned_to(variable);
  if (assigned == nullptr) return at_start(variable, at);
  return scope == body_ ? read_assigned(variable, *assigned, at)
                        : read_inside(variable, *assigned, at);
}

Tensor Trace::handed_on(const VariableState& variable, Source at) {
  const auto [scope, assigned] = assigned_to(variable);
  return assigned != nullptr && scope != body_ ? *assigned : read(variable, at);
}

Tensor Trace::at_start(const VariableState& variable, Source at) {
  const EnterScope entered(body_);
  if (const int32_t known = parameter_of(variable); known >= 0)
    return traced_tensor(graph_.body().parameters[static_cast<size_t>(known)], at);
  const Value parameter =
      graph_.add_parameter(Graph::kBody, {variable.dtype, variable.shape}, variable.at);
  variables_[&variable] = static_cast<int32_t>(parameters_.size());
  parameters_.push_back(
      {.variable = std::const_pointer_cast<VariableState>(variable.shared_from_this()),
       .value = parameter});
  return traced_tensor(parameter, at);
}

void Trace::write(VariableState& variable, Tensor value) {
  at_start(variable, variable.at);  // Makes it a parameter, so that its address is known.
  current_scope()->note_written(variable.shared_from_this(), std::move(value));
}

int32_t Trace::parameter_of(const VariableState& variable) const {
  const auto found = variables_.find(&variable);
  return found == variables_.end() ? -1 : found->second;
}

void TraceScope::note_written(std::shared_ptr<VariableState> variable, Tensor value) {
  const auto [known, fresh] = written_at.try_emplace(variable.get(), written.size());
  if (fresh)
    written.emplace_back(std::move(variable), std::move(value));
  else
    written[known->second].second = std::move(value);
}

const Tensor* TraceScope::written_to(const VariableState& variable) const {
  const auto found = written_at.find(&variable);
  return found == written_at.end() ? nullptr : &written[found->second].second;
}

namespace {

TraceScope* make_inner(std::string what, RegionId region, Source at) {
  auto* const scope = new TraceScope;
  retain(current_scope());
  scope->parent = current_scope();
  scope->outer = current_scope();
  scope->graph = &current_scope()->trace->graph();
  scope->trace = current_scope()->trace;
  scope->region = region;
  scope->what = std::move(what);
  scope->at = at;
  return scope;
}

}  // namespace

InnerScope::InnerScope(std::string what, Source at)
    : InnerScope(std::move(what), current_scope()->trace->graph().add_region(), at) {}

InnerScope::InnerScope(std::string what, RegionId region, Source at)
    : scope_(make_inner(std::move(what), region, at)), entered_(scope_) {}

InnerScope::~InnerScope() { end(scope_); }

Tensor InnerScope::parameter(const TensorType& type, Source at) {
  return traced_tensor(scope_->trace->graph().add_parameter(scope_->region, type, at), at);
}

Value value_of(const Tensor& tensor, Source at) {
  const TensorState& state = state_of(tensor, at);
  TIDEMARK_CHECK(tracing(), "a value was wanted outside of a trace");
  if (state.kind == TensorState::Kind::traced) {
    const auto* const owner = static_cast<const TraceScope*>(state.scope);
    if (owner->ended || !is_inside(current_scope(), owner)) leaked(state, at);
    return handed_in(state.value(), owner, current_scope(), views_now());
  }
  Trace* const trace = current_scope()->trace;
  if (state.weak) {
    trace->numbers().push_back({at.resolve(), state.array.dtype == DType::f32
                                                  ? state.number
                                                  : static_cast<double>(tensor.item<int64_t>())});
    return record_constant(state.array.dtype, state.number,
                           state.array.dtype == DType::f32 ? 0 : tensor.item<int64_t>(), at);
  }
  const Value parameter = trace->capture(tensor, at);
  return handed_in(parameter, trace->body(), current_scope(), views_now());
}

Tensor traced_tensor(Value value, Source at, bool weak) {
  TensorType type = current_scope()->trace->graph().type(value);
  // A plain number is exact in the program, and has its default dtype for the user.
  if (weak && type.dtype == DType::f64) type.dtype = DType::f32;
  if (weak && type.dtype == DType::i64) type.dtype = DType::i32;
  return make_traced(type, value, current_scope(), weak, at);
}

std::vector<Tensor> record_results(const OpDef& op, std::span<const Value> inputs,
                                   const Attrs& attrs, std::vector<TensorType> types, Source at) {
  const size_t count = types.size();
  Node node;
  node.op = &op;
  node.attrs = attrs;
  node.inputs = SmallVec<Value, 3>(inputs);
  node.results = std::move(types);
  node.source = at.resolve();
  const Source line = node.source;
  const int32_t number =
      current_scope()->trace->graph().add_node(current_scope()->region, std::move(node));
  std::vector<Tensor> results;
  for (size_t r = 0; r < count; ++r)
    results.push_back(traced_tensor({number, static_cast<int16_t>(r)}, line));
  return results;
}

Tensor record(const OpDef& op, std::span<const Value> inputs, const Attrs& attrs,
              const TensorType& type, Source at) {
  return record_results(op, inputs, attrs, {type}, at)[0];
}

Value record_constant(DType dtype, double real, int64_t whole, Source at) {
  // A whole number in a float dtype is rounded once, from the integer.
  const Attrs attrs = Attrs().add(dtype).add(real).add(is_float(dtype) ? int64_t{0} : whole);
  return current_scope()->trace->graph().add(current_scope()->region, def_of(&ops::constant), {},
                                             attrs, {dtype, {}}, at.resolve());
}

uint64_t repeated_axes(const ArrayRef& array) {
  uint64_t repeats = 0;
  const auto axes = std::min<int64_t>(array.rank(), 64);
  for (int64_t axis = 0; axis < axes; ++axis) {
    if (array.strides[static_cast<size_t>(axis)] == 0 && array.shape[axis] > 1)
      repeats |= uint64_t{1} << axis;
  }
  return repeats;
}

Shape shown_once(const Shape& shape, uint64_t repeats) {
  Shape once = shape;
  for (int64_t axis = 0; axis < once.rank() && axis < 64; ++axis)
    if ((repeats >> axis & 1) != 0) once.set(axis, 1);
  return once;
}

}  // namespace tidemark::detail

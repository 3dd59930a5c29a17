#include "tidemark/grad/custom_gradient.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/program.h"
#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {
namespace {

Tensors strong(const Tensors& tensors, Source at) {
  Tensors list;
  for (const Tensor& tensor : tensors) list.push_back(tensor_of(tensor, at));
  return list;
}

Tensors own_handles(const Tensors& tensors, Source at) {
  Tensors list;
  for (const Tensor& tensor : tensors) list.push_back(own_handle(tensor, at));
  return list;
}

// A tape that runs in front of the others, or instead of them, and notes which values that they
// know a function reads.
class Listener : public Tape {
 public:
  explicit Listener(Tape* tapes) : tapes_(tapes) { start(); }

  void watch(const Tensor&, Source) override {}
  void saw(const VariableState& variable, const Tensor& value) override {
    for (Tape* tape = tapes_; tape != nullptr; tape = tape->outer()) tape->saw(variable, value);
    if (!is_known(tape_id_of(value))) return;
    if (read_.insert(tape_id_of(value)).second)
      variables_.emplace_back(
          VariableState::adopt(std::const_pointer_cast<VariableState>(variable.shared_from_this())),
          tape_id_of(value));
  }
  bool knows(TapeId id) const override { return made_.contains(id) || is_known(id); }
  void record(const RecordedOp& recorded) override {
    for (const TapeId id : recorded.inputs)
      if (!made_.contains(id) && is_known(id) && read_.insert(id).second)
        lines_.emplace(id, recorded.at);
    made_.insert(recorded.results.begin(), recorded.results.end());
  }
  std::vector<PartialGradient> gradient(const Tensors&, const Tensors&, const Tensors&,
                                        const std::vector<Variable>&, Source) override {
    return {};
  }
  std::vector<Variable> watched_variables() const override { return {}; }
  int64_t saved_bytes() const override { return 0; }
  void release() override {}

  // Gives the results their own identity, even if they are tensors that others hold (arguments,
  // captures), so that they get the custom gradient. Values that the function computed from them
  // before keep their history.
  Tensors apart_from_known(const Tensors& results, Source at) const {
    Tensors fresh;
    for (const Tensor& result : results) {
      const TapeId id = tape_id_of(result);
      const bool made = made_.contains(id);
      if (made && is_known(id)) renumber(result);
      fresh.push_back(made || !is_differentiable(result.dtype()) ? result : apart(result, at));
    }
    return fresh;
  }

  // The numbers of the values that were read and that outer tapes know.
  std::vector<TapeId> read() const { return {read_.begin(), read_.end()}; }
  // The line that first read it.
  Source line_of(TapeId id) const {
    const auto found = lines_.find(id);
    return found == lines_.end() ? Source::none() : found->second;
  }
  // The Variables among the values that were read.
  const std::vector<std::pair<Variable, TapeId>>& variables() const { return variables_; }

 private:
  bool is_known(TapeId id) const {
    if (id == 0) return false;
    for (const Tape* tape = tapes_; tape != nullptr; tape = tape->outer())
      if (tape->knows(id)) return true;
    return false;
  }

  Tape* tapes_;
  std::set<TapeId> read_, made_;
  std::map<TapeId, Source> lines_;
  std::vector<std::pair<Variable, TapeId>> variables_;
};

// ---- in a trace ---------------------------------------------------------------------------------

// The body of a `call` node: parameters for the inputs, and the results of f.
class CallTrace {
 public:
  CallTrace(const char* what, const Tensors& inputs, Source at)
      : inputs_(inputs), at_(at), outer_(current_scope()), body_(what, at) {
    for (const Tensor& input : inputs)
      parameters_.push_back(body_.parameter(type_of(input, at), at));
  }

  const Tensors& parameters() const { return parameters_; }
  TraceScope* scope() { return body_.scope(); }
  Graph& graph() { return body_.scope()->trace->graph(); }
  Region& region() { return graph().regions[static_cast<size_t>(body_.region())]; }

  // New values of Variables that f assigns are additional results, after those of f.
  void set_results(const Tensors& results) {
    for (const Tensor& result : results)
      region().results.push_back(value_of(tensor_of(result, at_), at_));
    outputs_ = results.size();
    for (const auto& [variable, value] : body_.scope()->written)
      region().results.push_back(value_of(value, at_));
  }

  // The index of a value of the body among all inputs and then results. If it is neither, it
  // becomes an additional result.
  int64_t place_of(Value value) {
    const std::vector<Value>& parameters = region().parameters;
    std::vector<Value>& results = region().results;
    const auto input = std::find(parameters.begin(), parameters.end(), value);
    if (input != parameters.end()) return input - parameters.begin();
    auto result = std::find(results.begin(), results.end(), value);
    if (result == results.end()) result = results.insert(results.end(), value);
    return result - results.begin() - kFirstResult;
  }

  Tensors finish(std::vector<int64_t> saved, const std::vector<int64_t>& by,
                 std::initializer_list<RegionId> more) {
    const EnterScope entered(outer_);
    Node node;
    node.op = &def_of(&ops::call);
    node.source = at_.resolve();
    for (const Tensor& input : inputs_) node.inputs.push_back(value_of(input, at_));
    for (const Value value : body_.scope()->captured) node.inputs.push_back(value);
    node.regions = {body_.region()};
    for (const RegionId each : more) node.regions.push_back(each);
    for (const Value result : region().results) node.results.push_back(graph().type(result));
    for (int64_t& each : saved)
      if (each < 0) each += kFirstResult + static_cast<int64_t>(node.inputs.size());
    node.attrs = Attrs()
                     .add(static_cast<int64_t>(outputs_))
                     .add(std::span<const int64_t>(saved))
                     .add(std::span<const int64_t>(by));
    const int32_t number = graph().add_node(outer_->region, std::move(node));
    Tensors results;
    const auto result = [&](size_t r) {
      return traced_tensor({number, static_cast<int16_t>(r)}, at_.resolve());
    };
    for (size_t r = 0; r < outputs_; ++r) results.push_back(result(r));
    for (size_t i = 0; i < body_.scope()->written.size(); ++i)
      outer_->trace->write(*body_.scope()->written[i].first, result(outputs_ + i));
    return results;
  }

 private:
  // Added to the index of a result until the number of inputs is known.
  static constexpr int64_t kFirstResult = int64_t{1} << 40;

  const Tensors& inputs_;
  Source at_;
  TraceScope* outer_;
  InnerScope body_;
  Tensors parameters_;
  size_t outputs_ = 0;
};

Tensors trace_recomputed(const Tensors& inputs, const TensorFunction& f, Source at) {
  CallTrace call("a function of recompute", inputs, at);
  call.set_results(f(call.parameters()));
  return call.finish({}, {}, {});
}

[[noreturn]] void left_out(const std::string& name, Source at) {
  throw UserError(
      cat("custom_gradient: the function reads trainable Variable \"", name,
          "\", and its gradient function returns no gradient for it"),
      at,
      "return std::pair{dx, td::VariableGradients}; td::vjp's pullback(dy, variables) gives both");
}

void check_count(size_t given, size_t wanted, Source at) {
  if (given == wanted) return;
  throw UserError(cat("custom_gradient: the gradient function returned ", given,
                      " gradients, the arguments have ", wanted, " tensors"),
                  at, "return one for each tensor, in order; a std::tuple if there are several");
}

void check_type(const Tensor& gradient, const TensorType& wanted, Source at) {
  const TensorType type = type_of(gradient, at);
  if (type == wanted || state_of(gradient, at).weak) return;
  throw UserError(
      cat("custom_gradient: the gradient of an argument of type ", wanted, " is ", type), at,
      "return a gradient of the same dtype and shape as the argument");
}

const Gradient& by_variable(const VariableGradients& given, const Variable& variable, Source at) {
  for (const auto& [each, gradient] : given)
    if (each.same_as(variable)) return gradient;
  left_out(variable.name(), at);
}

Tensors trace_custom(const Tensors& inputs,
                     const std::function<OwnResults(const Tensors& inputs)>& f, Source at) {
  CallTrace call("a function of custom_gradient", inputs, at);
  OwnResults own;
  std::vector<std::pair<Variable, Value>> variables;  // With the parameter that holds their value.
  {
    own = f(call.parameters());
    call.set_results(own.results);
    const std::vector<Trace::Parameter>& all = call.scope()->trace->parameters();
    const Region& outermost = call.graph().body();
    for (const auto& [outer, inside] : call.scope()->parameter_of) {
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_it =
            all[i].variable != nullptr && all[i].variable->trainable &&
            is_differentiable(all[i].variable->dtype) &&
            outermost.parameters[i] == Value{outer.first, static_cast<int16_t>(outer.second)};
        if (is_it) variables.emplace_back(VariableState::adopt(all[i].variable), inside);
      }
    }
  }
  InnerScope back("a gradient function of custom_gradient", at);
  Tensors gradients;
  for (const Tensor& result : own.results)
    gradients.push_back(back.parameter(type_of(tensor_of(result, at), at), at));
  std::vector<Value> last;
  for (const Tensor& gradient : gradients) last.push_back(TensorState::of(gradient)->value());
  const OwnGradients given = own.pullback(gradients);
  check_count(given.by_inputs.size(), inputs.size(), at);
  std::vector<int64_t> by, saved;
  std::vector<Value> results, parameters;
  const auto add = [&](const Tensor& gradient, const TensorType& type, int64_t input) {
    check_type(gradient, type, at);
    results.push_back(value_of(tensor_of(gradient, at, type.dtype), at));
    by.push_back(input);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType type = type_of(inputs[i], at);
    if (!is_differentiable(type.dtype)) continue;
    const Tensor& gradient = given.by_inputs[i];
    add(gradient.has_value() ? gradient : repeated_number(0, type, at), type,
        static_cast<int64_t>(i));
  }
  for (const auto& [variable, inside] : variables) {
    add(by_variable(given.by_variables, variable, at).dense(at),
        {variable.dtype(), variable.shape()}, call.place_of(inside));
  }
  for (const Value value : back.scope()->captured) {
    parameters.push_back(back.scope()->parameter_of.at({value.node, value.result}));
    saved.push_back(call.place_of(value));
  }
  parameters.insert(parameters.end(), last.begin(), last.end());
  Region& region = call.graph().regions[static_cast<size_t>(back.region())];
  region.parameters = std::move(parameters);
  region.results = std::move(results);
  return call.finish(std::move(saved), by, {back.region()});
}

// Throws if f reads a watched value that is neither an argument nor a Variable.
void check_captures(const Listener& listener, const Tensors& inputs, Source at) {
  std::set<TapeId> may_read;
  for (const Tensor& input : inputs) may_read.insert(tape_id_of(input));
  for (const auto& [variable, id] : listener.variables()) may_read.insert(id);
  for (const TapeId id : listener.read()) {
    if (may_read.contains(id)) continue;
    const Source line = listener.line_of(id);
    passes::refuse_capture(line.known() ? line : at);
  }
}

}  // namespace

// ---- eager and traced ---------------------------------------------------------------------------

Tensors run_recomputed(const Tensors& given, const TensorFunction& f, Source at) {
  const SourceScope scope(at);
  Tensors inputs = strong(given, at);
  if (tracing()) return trace_recomputed(inputs, f, at);
  inputs = own_handles(inputs, at);
  if (!taping()) return f(inputs);
  (void)generator_as_variable();  // So that draws are repeated.
  const auto before = std::make_shared<VariableShadow>();
  Tensors results;
  std::vector<TapeId> read, variables;
  {
    Tape* const tapes = current_tape();
    const NoTape unseen;
    Listener listener(tapes);
    const KeepVariables keep(*before);
    results = listener.apart_from_known(strong(f(inputs), at), at);
    read = listener.read();
    for (const auto& [variable, id] : listener.variables()) variables.push_back(id);
  }
  Pullback pullback = [inputs, f, read, variables, before,
                       now = Mode::now()](const Tensors& gradients) {
    const ReplayVariables replay(*before);
    const ModeScope mode(now);
    return gradients_of_run(read, variables, [&] { return f(inputs); }, gradients);
  };
  current_tape()->record_pullback(read, results, std::move(pullback), inputs, at);
  return results;
}

Tensors run_custom(const Tensors& given, const std::function<OwnResults(const Tensors& inputs)>& f,
                   Source at) {
  const SourceScope scope(at);
  Tensors inputs = strong(given, at);
  if (tracing()) return trace_custom(inputs, f, at);
  inputs = own_handles(inputs, at);
  if (!taping()) return f(inputs).results;
  OwnResults own;
  std::vector<std::pair<Variable, TapeId>> variables;
  Tensors results;
  {
    Tape* const tapes = current_tape();
    // If a second tape runs, it records the gradient function too, which may read values computed
    // in f, so f is recorded. For a single tape that would only hold memory.
    std::optional<NoTape> unseen;
    if (tapes->outer() == nullptr) unseen.emplace();
    Listener listener(tapes);
    own = f(inputs);
    check_captures(listener, inputs, at);
    results = listener.apart_from_known(strong(own.results, at), at);
    variables = listener.variables();
  }
  std::vector<TapeId> ids;
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) {
    ids.push_back(tape_id_of(input));
    types.push_back(type_of(input, at));
  }
  for (const auto& [variable, id] : variables) ids.push_back(id);
  std::vector<TensorType> result_types;
  for (const Tensor& result : results) result_types.push_back(type_of(result, at));
  Pullback pullback = [gradient = own.pullback, types, result_types, variables,
                       at](Tensors gradients) {
    for (size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].has_value())
        gradients[i] = zeros(result_types[i].shape, result_types[i].dtype, at);
    OwnGradients given = gradient(std::move(gradients));
    check_count(given.by_inputs.size(), types.size(), at);
    Tensors all = std::move(given.by_inputs);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].has_value()) continue;
      check_type(all[i], types[i], at);
      all[i] = tensor_of(all[i], at, types[i].dtype);
    }
    for (const auto& [variable, id] : variables)
      all.push_back(by_variable(given.by_variables, variable, at).dense(at));
    return all_dense(all);
  };
  current_tape()->record_pullback(ids, results, std::move(pullback), own.saved, at);
  return results;
}

}  // namespace tidemark::detail

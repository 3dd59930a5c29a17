#include "tidemark/function/recorded_call.h"

#include <algorithm>
#include <set>

#include "tidemark/calls/create.h"
#include "tidemark/function/function.h"
#include "tidemark/function/function_trace.h"
#include "tidemark/grad/gradients.h"
#include "tidemark/grad/residuals.h"
#include "tidemark/grad/save_choice.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

using TensorsFunction = Function<Tensors(Tensors)>;

struct GradientPair {
  // From all parameters to results, then further residuals.
  std::optional<TensorsFunction> forward;
  std::optional<TensorsFunction> backward;  // From parameters, residuals and gradients of results.
  std::optional<TensorsFunction> whole;  // From parameters and gradients of all that forward gives.
  int64_t saved_bytes = 0;               // Of the residuals.
  size_t results = 0;                    // Of the user's function, and new values of Variables.
  std::vector<size_t> saved;             // The results of forward that backward takes.
  std::vector<size_t> read;              // The parameters that backward takes.
  std::vector<size_t> seeded;            // The results whose gradients backward takes.
  // The results of backward for each requested parameter: a dense gradient or none, and this many
  // row-sparse ones, each as indices and values.
  struct GradientForm {
    bool dense = false;
    size_t rows = 0;
  };
  std::vector<GradientForm> given;
};

namespace {

bool leave_none(const Node&) { return false; }

// Inlines a graph into the current trace.
Tensors replayed(const Graph& graph, const Tensors& inputs, Source at) {
  std::vector<Value> values;
  for (const Tensor& input : inputs) values.push_back(value_of(input, at));
  Tensors results;
  for (const Value value : append_copy(graph, Graph::kBody, current_scope()->trace->graph(),
                                       current_scope()->region, values, leave_none))
    results.push_back(traced_tensor(value, at));
  return results;
}

// A value that was assigned to a Variable and is read again has no history, as in eager code: it
// becomes a call whose gradient is that by the Variable.
void cut_history(Graph& graph, const std::vector<Trace::ReadBack>& read_back) {
  for (const Trace::ReadBack& each : read_back) {
    const Value variable = graph.body().parameters[static_cast<size_t>(each.parameter)];
    const Source at = graph.node(each.value).source;
    Node made = without_history(graph, each.assigned, variable, at);
    graph.nodes[static_cast<size_t>(each.value.node)] = std::move(made);
  }
}

// The user's function as a graph of tensors, with known sizes and broadcast arguments made dense.
Graph graph_of(const UserFunction& function, const FunctionTrace& trace,
               std::span<const int64_t> sizes, Source at) {
  const TracedGraph* traced = &trace.traced;
  std::shared_ptr<FunctionTrace> again;
  Graph graph;
  if (trace.traced.as_traced != nullptr) {
    graph = *trace.traced.as_traced;
  } else if (!trace.input.open.empty()) {
    graph = trace.traced.graph;
  } else {
    again = trace_again(function, trace, at, {}, false);
    traced = &again->traced;
    graph = traced->graph;
  }
  if (!sizes.empty())
    graph = compile::at_sizes(graph, trace.traced.sizes, trace.traced.sizes.evaluate(sizes));
  std::vector<std::pair<Value, Value>> whole;
  for (size_t i = 0; i < traced->parameters.size(); ++i) {
    const Value parameter = graph.body().parameters[i], seen = traced->parameters[i].value;
    if (seen.node < 0 || seen == parameter) continue;
    graph.nodes[static_cast<size_t>(parameter.node)].results[0] = TensorType(graph.type(seen));
    whole.emplace_back(seen, parameter);
  }
  const auto replace = [&](Value& value) {
    for (const auto& [seen, parameter] : whole)
      if (value == seen) value = parameter;
  };
  std::set<int32_t> gone;
  for (const auto& [seen, parameter] : whole) gone.insert(seen.node);
  std::erase_if(graph.body().nodes, [&](int32_t node) { return gone.contains(node); });
  for (const int32_t number : graph.body().nodes)
    for (Value& input : graph.nodes[static_cast<size_t>(number)].inputs) replace(input);
  for (Value& result : graph.body().results) replace(result);
  std::vector<Trace::ReadBack> read_back = traced->read_back;
  for (Trace::ReadBack& each : read_back) replace(each.assigned);
  cut_history(graph, read_back);
  return graph;
}

TensorsFunction function_of(Graph graph, FunctionOptions options) {
  const auto shared = std::make_shared<const Graph>(std::move(graph));
  return TensorsFunction(
      [shared](const Tensors& inputs) { return replayed(*shared, inputs, Source::none()); },
      std::move(options), Source::none());
}

// Which of the results that the user gets is this value; their number where none is. A Variable's
// new value does not count: held by a tape, it could not be updated in place.
size_t users_result(const TracedGraph& traced, std::span<const Value> results, Value value) {
  size_t r = 0;
  while (r < results.size() && (results[r] != value || traced.interface.results[r].updates >= 0))
    ++r;
  return r;
}

std::shared_ptr<const GradientPair> make_pair_of(const UserFunction& function,
                                                 const FunctionTrace& trace,
                                                 std::span<const int64_t> sizes,
                                                 const std::vector<bool>& wanted, Source at) {
  auto pair = std::make_shared<GradientPair>();
  const Graph user = graph_of(function, trace, sizes, at);
  Graph graph;
  RegionScope body{.graph = &graph};
  std::vector<Value> inputs, outputs;
  for (const Value parameter : user.body().parameters)
    inputs.push_back(graph.add_parameter(Graph::kBody, user.type(parameter), at));
  outputs = append_copy(user, Graph::kBody, graph, Graph::kBody, inputs, leave_none);
  pair->results = outputs.size();
  const auto forward_end = static_cast<int32_t>(graph.nodes.size());

  SizeTable known;
  const passes::GradientSettings settings{.choose_within = choice_by_plans(known, true)};
  passes::Differentiation asked{.scope = &body, .into = &body, .settings = &settings};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) asked.watched.push_back(inputs[i]);
    if (trace.traced.parameters[i].variable != nullptr) asked.leaves.push_back(inputs[i]);
  }
  asked.sources = asked.watched;
  std::vector<Value> seeds;
  for (size_t r = 0; r < outputs.size(); ++r) {
    const TensorType type = graph.type(outputs[r]);
    const bool is_users = trace.traced.interface.results[r].updates < 0;
    if (!is_users || !is_differentiable(type.dtype)) continue;
    seeds.push_back(graph.add_parameter(Graph::kBody, type, at));
    pair->seeded.push_back(r);
    asked.seeds.emplace_back(outputs[r], passes::ScopedValue{seeds.back(), &body});
  }
  std::vector<Value> gradients;
  for (const passes::ValueGradient& each : passes::differentiate(asked, at)) {
    pair->given.push_back({bool{each.dense}, each.rows.size()});
    if (each.dense) gradients.push_back(each.dense.value);
    for (const passes::ValueGradient::Rows& rows : each.rows) {
      gradients.push_back(rows.indices.value);
      gradients.push_back(rows.rows.value);
    }
  }

  Graph backward = graph;
  backward.body().results = gradients;
  passes::remove_dead(backward);
  const passes::Residuals saved = residuals_of(backward, forward_end);

  for (const Value value : saved.list()) {
    const TensorType& type = graph.type(value);
    pair->saved_bytes += granted_bytes(type.shape.size() * size_of(type.dtype));
  }

  Graph forward = graph;
  forward.body().parameters.resize(inputs.size());
  std::vector<Value>& given = forward.body().results = outputs;
  for (const Value value : saved.list()) {
    const size_t result = users_result(trace.traced, outputs, value);
    pair->saved.push_back(result < outputs.size() ? result : given.size());
    if (result == outputs.size()) given.push_back(value);
  }
  passes::remove_dead(forward);

  // Residuals are parameters, between those of the function and the gradients.
  std::vector<std::pair<Value, Value>> stand_ins;
  for (const Value value : saved.list())
    stand_ins.emplace_back(value,
                           backward.add_parameter(Graph::kBody, TensorType(graph.type(value)),
                                                  graph.node(value).source));
  const auto replace = [&](Value& value) {
    for (const auto& [old, parameter] : stand_ins)
      if (value == old) value = parameter;
  };
  for (const int32_t number : backward.body().nodes)
    for (Value& input : backward.nodes[static_cast<size_t>(number)].inputs) replace(input);
  for (Value& result : backward.body().results) replace(result);
  passes::remove_dead(backward);
  const std::vector<int32_t> uses = count_uses(backward);
  std::vector<Value> parameters;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value parameter = graph.body().parameters[i];
    if (uses[static_cast<size_t>(parameter.node)] == 0) continue;
    pair->read.push_back(i);
    parameters.push_back(parameter);
  }
  for (const auto& [old, parameter] : stand_ins) parameters.push_back(parameter);
  parameters.insert(parameters.end(), seeds.begin(), seeds.end());
  backward.body().parameters = std::move(parameters);

  const std::string name =
      function.options.name.empty() ? std::string("the function") : function.options.name;
  const std::optional<Budget> budget = function.options.budget;
  const std::optional<WaitFor> when_full = function.options.when_full;
  const FunctionOptions backward_options{
      .name = cat("the gradient of ", name), .budget = budget, .when_full = when_full};
  const Graph alone = compact(forward);
  pair->whole.emplace(
      [graph = alone, wanted, count = inputs.size()](const Tensors& all) {
        const Tensors given(all.begin(), all.begin() + static_cast<int64_t>(count));
        GradientTape tape({.watch_variables = false}, Source::none());
        Tensors watched;
        for (size_t i = 0; i < count; ++i)
          if (wanted[i]) watched.push_back(given[i]);
        tape.watch(watched);
        const Tensors results = replayed(graph, given, Source::none());
        Tensors targets, seeds;
        for (size_t r = 0; r < results.size(); ++r) {
          if (!is_differentiable(results[r].dtype())) continue;
          targets.push_back(results[r]);
          seeds.push_back(all[count + r]);
        }
        return tape.gradient(targets, watched, {.output_gradients = seeds});
      },
      backward_options, Source::none());
  pair->forward.emplace(function_of(
      alone, {.name = cat(name, ", for its gradient"), .budget = budget, .when_full = when_full}));
  pair->backward.emplace(function_of(compact(backward), backward_options));
  return pair;
}

// The tensor of each parameter of the graph in this call.
Tensors parameters_of(const TracedGraph& traced, const Graph& graph, const Arguments& arguments,
                      Source at) {
  Tensors all;
  size_t argument = 0;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    const Trace::Parameter& parameter = traced.parameters[i];
    if (parameter.variable != nullptr) {
      all.push_back(read_variable(*parameter.variable, at));
    } else if (!parameter.is_argument()) {
      all.push_back(parameter.capture);
    } else {
      const auto leaf = static_cast<size_t>(traced.argument_leaves[argument++]);
      const Tensor& given = arguments.leaves[leaf].tensor;
      array_of(given, at);  // Refuses specs.
      const bool weak = state_of(given, at).weak;
      all.push_back(weak ? tensor_of(given, at, graph.type(graph.body().parameters[i]).dtype)
                         : given);
    }
  }
  return all;
}

// The results of the backward program, by parameter.
std::vector<PartialGradient> found_of(const std::vector<GradientPair::GradientForm>& given,
                                      Tensors results) {
  std::vector<PartialGradient> found;
  auto next = results.begin();
  for (const GradientPair::GradientForm& each : given) {
    PartialGradient& one = found.emplace_back(each.dense ? std::move(*next++) : Tensor());
    for (size_t i = 0; i < each.rows; ++i, next += 2)
      one.rows.push_back({std::move(next[0]), std::move(next[1])});
  }
  return found;
}

// The gradients by the requested parameters.
Pullback pullback_of(const std::shared_ptr<const GradientPair>& pair, const Tensors& inputs,
                     Tensors saved, std::vector<TensorType> types, Source at) {
  return [pair, inputs, saved = std::move(saved), types = std::move(types), at](Tensors gradients) {
    const bool by_saved =
        std::any_of(gradients.begin() + static_cast<int64_t>(pair->results), gradients.end(),
                    [](const Tensor& gradient) { return gradient.has_value(); });
    for (size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].has_value()) gradients[i] = zeros(types[i].shape, types[i].dtype, at);
    Tensors all;
    if (by_saved) {
      all = inputs;
      all.insert(all.end(), gradients.begin(), gradients.end());
      return all_dense((*pair->whole)(std::move(all), at));
    }
    for (const size_t i : pair->read) all.push_back(inputs[i]);
    all.insert(all.end(), saved.begin(), saved.end());
    for (const size_t r : pair->seeded) all.push_back(gradients[r]);
    return found_of(pair->given, (*pair->backward)(std::move(all), at));
  };
}

std::shared_ptr<const GradientPair> find_or_make_pair(const UserFunction& function,
                                                      FunctionTrace& trace,
                                                      std::vector<int64_t> sizes,
                                                      const std::vector<bool>& wanted, Source at) {
  GradientPairs& pairs = trace.pairs;
  const GradientPairs::Key key{std::move(sizes), wanted};
  {
    const std::lock_guard guard(pairs.lock);
    if (const auto found = pairs.table.find(key); found != pairs.table.end()) return found->second;
  }
  std::shared_ptr<const GradientPair> made;
  {
    const NoTape unseen;
    made = make_pair_of(function, trace, key.first, wanted, at);
  }
  const std::lock_guard guard(pairs.lock);
  constexpr size_t most = 64;
  if (pairs.table.size() >= most) pairs.table.clear();
  return pairs.table.emplace(key, std::move(made)).first->second;
}

}  // namespace

bool is_recorded(const FunctionTrace& trace, const Arguments& arguments, Source at) {
  if (!taping() || tracing()) return false;  // A trace hides the tapes around it.
  const Tensors inputs = parameters_of(trace.traced, trace.traced.graph, arguments, at);
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor& input) {
    return is_differentiable(input.dtype()) && is_watched({&input});
  });
}

std::optional<CallResult> recorded_call(const UserFunction& function,
                                        const std::shared_ptr<FunctionTrace>& trace,
                                        std::span<const int64_t> sizes, const Arguments& arguments,
                                        ResultMaker make, Source at) {
  const TracedGraph& traced = trace->traced;
  const Tensors inputs = parameters_of(traced, traced.graph, arguments, at);
  std::vector<bool> wanted;
  for (const Tensor& input : inputs)
    wanted.push_back(is_differentiable(input.dtype()) && is_watched({&input}));
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return {};
  const std::shared_ptr<const GradientPair> pair = find_or_make_pair(
      function, *trace, std::vector<int64_t>(sizes.begin(), sizes.end()), wanted, at);
  Tensors all;
  {
    const NoTape unseen;
    all = (*pair->forward)(inputs, at);
    // A result that aliases an argument, a captured tensor or another result still needs its own
    // gradient.
    for (size_t i = 0; i < all.size(); ++i) {
      const auto is_it = [&](const Tensor& other) {
        return TensorState::of(other) == TensorState::of(all[i]);
      };
      const auto earlier_end = all.begin() + static_cast<int64_t>(i);
      if (std::any_of(all.begin(), earlier_end, is_it) ||
          std::any_of(inputs.begin(), inputs.end(), is_it) || tape_id_of(all[i]) != 0)
        all[i] = apart(all[i], at);
    }
  }
  make(trace->result_structure);
  CallResult leaves(trace->result_leaves.size());
  Tensors given;
  given.reserve(pair->results);
  std::vector<TapeId> ids;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted[i]) ids.push_back(tape_id_of(inputs[i]));
  Tensors saved;
  for (const size_t index : pair->saved) saved.push_back(all[index]);
  Tensors held = saved;
  for (const size_t i : pair->read) held.push_back(inputs[i]);
  std::vector<TensorType> types;
  for (const Tensor& each : all) types.push_back(type_of(each, at));
  std::vector<VariableWrite> writes;
  for (size_t r = 0; r < pair->results; ++r) {
    const int32_t updates = traced.interface.results[r].updates;
    if (updates < 0)
      given.push_back(all[r]);
    else
      writes.emplace_back(*traced.parameters[static_cast<size_t>(updates)].variable, all[r], at);
  }
  current_tape()->record_pullback(std::move(ids), all,
                                  pullback_of(pair, inputs, std::move(saved), types, at), held, at);
  // Nothing can fail from here on.
  for (VariableWrite& write : writes) write.commit();
  trace->give(given, leaves);
  return leaves;
}

Bytes saved_for_gradient(const UserFunction& function, const std::shared_ptr<FunctionTrace>& trace,
                         std::span<const int64_t> sizes, Source at) {
  const TracedGraph& traced = trace->traced;
  std::vector<bool> wanted;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    const Trace::Parameter& parameter = traced.parameters[i];
    const bool may_be =
        parameter.is_argument() || (parameter.variable != nullptr && parameter.variable->trainable);
    wanted.push_back(may_be &&
                     is_differentiable(traced.graph.type(traced.graph.body().parameters[i]).dtype));
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return 0;
  return find_or_make_pair(function, *trace, std::vector<int64_t>(sizes.begin(), sizes.end()),
                           wanted, at)
      ->saved_bytes;
}

}  // namespace tidemark::detail

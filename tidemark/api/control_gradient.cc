// Gradients of control flow, made of control flow.
//
// A branch and a map's body are run once more in their gradients, so that nothing of them is kept.
// Loops are in loop_gradient.cc.
#include <algorithm>

#include "tidemark/api/loop_gradient.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/pullback.h"
#include "tidemark/ops/program.h"

namespace tidemark::detail {
namespace {

Tensors tensors_in(TraceScope* scope, std::span<const Value> values, Source at) {
  Tensors tensors;
  for (const Value value : values) tensors.push_back(tensor_in(scope, value, at));
  return tensors;
}

// Runs a region once more in the current scope and goes back over it: the gradients by the wanted
// parameters, zeros where there is none. `gradients` are those of the results.
Tensors gradients_of_region(RegionId region, const Tensors& parameters, const Tensors& gradients,
                            const std::vector<bool>& wanted, Source at) {
  Graph& graph = current_scope->trace->graph();
  std::vector<Value> values;
  for (const Tensor& parameter : parameters)
    values.push_back(distinct_value(parameter, values, at));
  const auto first = static_cast<int32_t>(graph.nodes.size());
  const std::vector<Value> results =
      append_copy(graph, region, graph, current_scope->region, values, is_effect);
  Differentiation asked;
  asked.scope = current_scope;
  asked.is_recorded = [first](int32_t node) { return node >= first; };
  for (size_t i = 0; i < values.size(); ++i)
    if (wanted[i]) asked.watched.push_back(values[i]);
  asked.sources = asked.watched;
  for (size_t r = 0; r < results.size(); ++r)
    if (gradients[r].has_value()) asked.seeds.emplace_back(results[r], gradients[r]);
  Tensors given;
  const std::vector<Found> found = differentiate(asked, at);
  for (size_t i = 0; i < found.size(); ++i)
    given.push_back(found[i].dense.has_value() ? found[i].dense
                                               : zeros_of(graph.type(asked.sources[i]), at));
  return given;
}

// Results for the wanted ones, in their places among all.
Tensors spread(const Tensors& given, const std::vector<bool>& wanted) {
  Tensors all(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = given[next++];
  return all;
}

const PathOf kNoPath = [](size_t number) { return cat("gradient[", number, "]"); };

// ---- cond ---------------------------------------------------------------------------------------

Tensors cond_gradient(TraceScope* scope, const Node& node, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  const Tensors captures(inputs.begin() + 1, inputs.end());
  const std::vector<bool> by(wanted.begin() + 1, wanted.end());
  const auto branch = [&](size_t which) {
    return gradients_of_region(node.regions[which], captures, gradients, by, at);
  };
  const Tensors given =
      trace_cond(inputs[0], [&] { return branch(0); }, [&] { return branch(1); }, kNoPath, at);
  return spread(given, wanted);
}

// ---- map ----------------------------------------------------------------------------------------

// A map again where only slices have gradients. Those of captured values are sums over all trips,
// which a loop carries.
Tensors map_gradient(TraceScope* scope, const Node& node, const Tensors& gradients,
                     const std::vector<bool>& wanted, Source at) {
  Attrs::Reader read = node.attrs.read();
  const auto slices = static_cast<size_t>(read.integer());
  const int64_t trips = read.integer(), alive = read.integer();
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  Tensors walked(inputs.begin(), inputs.begin() + static_cast<int64_t>(slices));
  for (const Tensor& gradient : gradients)
    if (gradient.has_value()) walked.push_back(gradient);
  // The gradients of one trip by slices, then by captures.
  const auto body = [&](const Tensors& each) {
    Tensors parameters = inputs;
    std::copy_n(each.begin(), slices, parameters.begin());
    Tensors of_results(gradients.size());
    size_t next = slices;
    for (size_t r = 0; r < gradients.size(); ++r)
      if (gradients[r].has_value()) of_results[r] = each[next++];
    return gradients_of_region(node.regions[0], parameters, of_results, wanted, at);
  };
  const auto of_slices = static_cast<size_t>(
      std::count(wanted.begin(), wanted.begin() + static_cast<int64_t>(slices), true));
  const auto all = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  if (of_slices == all) {
    MapParts parts{.name = "the gradient of map_fn", .walked = walked, .element_path = kNoPath};
    parts.body = [&](Tensors each) { return body(each); };
    parts.trips = trips;
    parts.alive = alive;
    return spread(run_map(parts, at), wanted);
  }
  LoopParts parts{.name = "the gradient of map_fn"};
  for (size_t i = slices; i < wanted.size(); ++i)
    if (wanted[i]) parts.carries.push_back(zeros_of(type_of(inputs[i], at), at));
  parts.carry_path = parts.element_path = kNoPath;
  parts.walked = walked;
  parts.trips = trips;
  parts.body = [&](const Tensor&, Tensors carries, Tensors each) {
    const Tensors given = body(each);
    for (size_t i = 0; i < carries.size(); ++i)
      carries[i] = add(carries[i], given[of_slices + i], at);
    carries.insert(carries.end(), given.begin(), given.begin() + static_cast<int64_t>(of_slices));
    return carries;
  };
  Tensors given = run_loop(std::move(parts), at);
  std::rotate(given.begin(), given.begin() + static_cast<int64_t>(all - of_slices), given.end());
  return spread(given, wanted);
}

// ---- call ---------------------------------------------------------------------------------------

// A map of one trip: what stands in its region is not taken for what ran before.
Tensors recomputed_gradient(const Node& node, const Tensors& inputs, const Tensors& gradients,
                            const std::vector<bool>& wanted, Source at) {
  MapParts parts{.name = "the gradient of recompute", .element_path = kNoPath, .trips = 1};
  parts.body = [&](const Tensors&) {
    return gradients_of_region(node.regions[0], inputs, gradients, wanted, at);
  };
  Tensors given = run_map(parts, at);
  for (Tensor& each : given) each = squeeze(each, 0, at);
  return spread(given, wanted);
}

Tensors call_gradient(TraceScope* scope, int32_t number, const Node& node, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  if (node.regions.size() == 1) return recomputed_gradient(node, inputs, gradients, wanted, at);
  Attrs::Reader read = node.attrs.read();
  const auto outputs = static_cast<size_t>(read.integer());
  const std::span<const int64_t> saved = read.integers(), by = read.integers();
  std::vector<Value> parameters;
  for (const int64_t each : saved) {
    const int64_t result = each - std::ssize(inputs);
    parameters.push_back(
        value_of(result < 0 ? inputs[static_cast<size_t>(each)]
                            : tensor_in(scope, {number, static_cast<int16_t>(result)}, at),
                 at));
  }
  for (size_t r = 0; r < outputs; ++r)
    parameters.push_back(
        value_of(gradients[r].has_value() ? gradients[r] : zeros_of(node.results[r], at), at));
  Graph& graph = scope->trace->graph();
  const std::vector<Value> own =
      append_copy(graph, node.regions[1], graph, current_scope->region, parameters, is_effect);
  Tensors given(wanted.size());
  // What is only kept for the gradient function has the gradient of how it was made.
  Tensors of_kept = gradients;
  std::fill_n(of_kept.begin(), outputs, Tensor());
  if (std::any_of(of_kept.begin(), of_kept.end(), [](const Tensor& g) { return g.has_value(); }))
    given = spread(gradients_of_region(node.regions[0], inputs, of_kept, wanted, at), wanted);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto input = static_cast<size_t>(by[i]);
    if (!wanted[input]) continue;
    const Tensor gradient = traced_tensor(own[i], at);
    given[input] = given[input].has_value() ? add(given[input], gradient, at) : gradient;
  }
  return given;
}

}  // namespace

Tensors control_gradient(TraceScope* scope, int32_t number, const Tensors& gradients,
                         const std::vector<bool>& wanted, Source at) {
  const Node node = scope->trace->graph().nodes[static_cast<size_t>(number)];
  if (node.op->self == &ops::cond) return cond_gradient(scope, node, gradients, wanted, at);
  if (node.op->self == &ops::map) return map_gradient(scope, node, gradients, wanted, at);
  if (node.op->self == &ops::call) return call_gradient(scope, number, node, gradients, wanted, at);
  if (node.op->self == &ops::reverse_loop)
    return reverse_loop_gradient(scope, number, gradients, wanted, at);
  return loop_gradient(scope, number, gradients, wanted, at);
}

}  // namespace tidemark::detail

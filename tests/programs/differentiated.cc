#include "tests/programs/differentiated.h"

#include "tidemark/base/error.h"
#include "tidemark/grad/differentiate.h"
#include "tidemark/passes/passes.h"

namespace tidemark::testing {

std::optional<RandomProgram> differentiated(const RandomProgram& program) {
  const Source at = Source::none();
  const Graph& from = program.graph;
  detail::Trace trace("a random program", at);
  RandomProgram both = program;
  detail::Differentiation asked;
  std::vector<Value> parameters;
  for (const Value parameter : from.body().parameters) {
    const Tensor argument = trace.argument(from.type(parameter), false, at);
    const detail::EnterScope entered(trace.body());
    parameters.push_back(detail::value_of(argument, at));
    if (is_float(from.type(parameter).dtype)) asked.watched.push_back(parameters.back());
  }
  asked.sources = asked.watched;
  asked.scope = trace.body();
  Graph& graph = trace.graph();
  std::vector<Value> results = append_copy(from, Graph::kBody, graph, Graph::kBody, parameters,
                                           [](const Node&) { return false; });
  // Gradients are drawn by numbers that no other parameter has.
  size_t seed = 1000 + program.interface.parameters.size();
  for (const Value result : results) {
    const TensorType type = graph.type(result);
    if (!is_float(type.dtype)) continue;
    asked.seeds.emplace_back(result, trace.argument(type, false, at));
    both.interface.parameters.push_back({.name = std::to_string(seed++)});
  }
  std::vector<detail::PartialGradient> found;
  try {
    const detail::EnterScope entered(trace.body());
    found = detail::differentiate(asked, at);
    for (const detail::PartialGradient& each : found) {
      if (!each.dense.has_value()) continue;
      results.push_back(detail::value_of(each.dense, at));
      both.interface.results.push_back({.updates = -1, .name = "gradient"});
    }
  } catch (const UserError&) {
    return {};
  }
  if (results.size() == from.body().results.size()) return {};
  graph.body().results = results;
  passes::remove_dead(graph);
  both.graph = compact(graph);
  return both;
}

}  // namespace tidemark::testing

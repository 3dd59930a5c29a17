#include "tests/programs/differentiated.h"

#include "tidemark/base/error.h"
#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/passes/passes.h"

namespace tidemark::testing {

std::optional<RandomProgram> differentiated(const RandomProgram& program) {
  const Source at = Source::none();
  const Graph& from = program.graph;
  RandomProgram both = program;
  Graph graph;
  RegionScope body{.graph = &graph};
  const passes::GradientSettings settings;
  passes::Differentiation asked{.scope = &body, .into = &body, .settings = &settings};
  std::vector<Value> parameters;
  for (const Value parameter : from.body().parameters) {
    parameters.push_back(graph.add_parameter(Graph::kBody, from.type(parameter), at));
    if (is_float(from.type(parameter).dtype)) asked.watched.push_back(parameters.back());
  }
  asked.sources = asked.watched;
  std::vector<Value> results = append_copy(from, Graph::kBody, graph, Graph::kBody, parameters,
                                           [](const Node&) { return false; });
  // Gradients are drawn by numbers that no other parameter has.
  size_t seed = 1000 + program.interface.parameters.size();
  for (const Value result : results) {
    const TensorType type = graph.type(result);
    if (!is_float(type.dtype)) continue;
    const Value weights = graph.add_parameter(Graph::kBody, type, at);
    asked.seeds.emplace_back(result, passes::ScopedValue{weights, &body});
    both.interface.parameters.push_back({.name = std::to_string(seed++)});
  }
  try {
    for (const passes::ValueGradient& each : passes::differentiate(asked, at)) {
      if (!each.dense) continue;
      results.push_back(each.dense.value);
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

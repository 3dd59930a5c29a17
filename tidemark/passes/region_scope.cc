#include "tidemark/passes/region_scope.h"

#include <set>

#include "tidemark/base/error.h"
#include "tidemark/ops/op_def.h"

namespace tidemark {

RegionScope inner_scope(RegionScope& outer) {
  return {.graph = outer.graph, .outer = &outer, .region = outer.graph->add_region()};
}

bool is_inside(const RegionScope* scope, const RegionScope* outer) {
  while (scope != nullptr && scope != outer) scope = scope->outer;
  return scope == outer;
}

namespace {

// Whether a view or a literal is repeated in the region that reads it, instead of passed in.
// Results of `apart` are always passed in, and so are arguments that repeat elements: gradients are
// with respect to the argument, not to the element it repeats.
bool is_made_again(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (node.op == nullptr) return false;
  if (node.op->family == Family::source) return true;
  if (node.op->view == nullptr) return false;
  const Value shown = node.inputs[0];
  const bool is_apart =
      node.op->cutting == Cutting::reshape && graph.type(shown) == node.results[0];
  const bool is_argument = node.op->repeats && graph.node(shown).op == nullptr;
  return !is_apart && !is_argument;
}

// A value of the outer region in the scope's own region: a parameter, or a copy of the node.
Value lent(Value outer, RegionScope* scope, Views views) {
  const ValueKey key = key_of(outer);
  if (const auto known = scope->parameter_of.find(key); known != scope->parameter_of.end())
    return known->second;
  Graph& graph = *scope->graph;
  Node node = graph.node(outer);
  Value inner;
  if (views == Views::made_again && is_made_again(graph, outer)) {
    for (Value& input : node.inputs) input = lent(input, scope, views);
    inner = {graph.add_node(scope->region, std::move(node)), outer.result};
  } else {
    inner = graph.add_parameter(scope->region, TensorType(graph.type(outer)), node.source);
    scope->captured.push_back(outer);
  }
  scope->parameter_of.emplace(key, inner);
  return inner;
}

}  // namespace

Value handed_in(Value value, const RegionScope* owner, RegionScope* scope, Views views) {
  if (scope == owner) return value;
  TIDEMARK_CHECK(scope->outer != nullptr, "node ", value.node, " is not of a region around");
  return lent(handed_in(value, owner, scope->outer, views), scope, views);
}

std::vector<Value> unify_captures(std::initializer_list<std::pair<RegionScope*, size_t>> scopes) {
  std::vector<Value> all;
  std::set<ValueKey> known;
  for (const auto& [scope, declared] : scopes) {
    for (const Value value : scope->captured)
      if (known.insert(key_of(value)).second) all.push_back(value);
  }
  for (const auto& [scope, declared] : scopes) {
    Graph& graph = *scope->graph;
    const auto region = static_cast<size_t>(scope->region);
    graph.regions[region].parameters.resize(declared);
    for (const Value value : all) {
      const auto [found, is_new] = scope->parameter_of.try_emplace(key_of(value));
      if (is_new)
        found->second = graph.add_parameter(scope->region, TensorType(graph.type(value)),
                                            graph.node(value).source);
      else
        graph.regions[region].parameters.push_back(found->second);
    }
  }
  return all;
}

int32_t add_control(const RegionScope& scope, Node node, Source at) {
  if (node.results.size() > INT16_MAX)
    throw UserError(
        cat(node.op->name, ": ", node.results.size(),
            " results, those of Variables that it assigns among them, and there may be ",
            INT16_MAX),
        at, "stack tensors of one dtype and shape: td::stack(list) is one result");
  node.source = at.resolve();
  return scope.graph->add_node(scope.region, std::move(node));
}

}  // namespace tidemark

#include "tests/programs/shrink.h"

#include <algorithm>

#include "tidemark/base/text.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"

namespace tidemark::testing {
namespace {

template <class List>
void erase_at(List& list, size_t index) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
}

void replace(Graph& graph, Value from, Value to) {
  for (Node& node : graph.nodes)
    for (Value& input : node.inputs)
      if (input == from) input = to;
  for (Region& region : graph.regions)
    std::replace(region.results.begin(), region.results.end(), from, to);
}

// Without what nobody reads.
void clean(RandomProgram& program) {
  passes::remove_dead(program.graph);
  const std::vector<int32_t> uses = count_uses(program.graph);
  Region& body = program.graph.body();
  for (size_t i = body.parameters.size(); i-- > 0;) {
    auto& results = program.interface.results;
    const auto number = static_cast<int32_t>(i);
    if (uses[static_cast<size_t>(body.parameters[i].node)] > 0 ||
        std::any_of(results.begin(), results.end(),
                    [&](const auto& result) { return result.updates == number; }))
      continue;
    erase_at(body.parameters, i);
    erase_at(program.interface.parameters, i);
    for (auto& result : results) result.updates -= result.updates > number ? 1 : 0;
  }
  program.graph = compact(program.graph);
}

// Where a node is listed: its region, and its place there.
struct Listed {
  RegionId region;
  size_t at;
};
std::vector<Listed> all_nodes(const Graph& graph) {
  std::vector<Listed> list;
  for (size_t r = 0; r < graph.regions.size(); ++r)
    for (size_t i = 0; i < graph.regions[r].nodes.size(); ++i)
      list.push_back({static_cast<RegionId>(r), i});
  std::reverse(list.begin(), list.end());
  return list;
}

enum class Way { operand, parameter, zeros };

bool put_in_place(RandomProgram& program, const Listed& listed, Way way) {
  Graph& graph = program.graph;
  const int32_t number = graph.regions[static_cast<size_t>(listed.region)].nodes[listed.at];
  const Node node = graph.nodes[static_cast<size_t>(number)];
  if (node.op->self == &ops::constant) return false;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value old{number, static_cast<int16_t>(r)};
    const TensorType& type = node.results[r];
    Value made = {};
    if (way == Way::operand) {
      const auto same = std::find_if(node.inputs.begin(), node.inputs.end(),
                                     [&](Value input) { return graph.type(input) == type; });
      if (same == node.inputs.end()) return false;
      made = *same;
    } else if (way == Way::parameter) {
      if (listed.region != Graph::kBody) return false;
      int64_t name = 1000;
      for (const auto& each : program.interface.parameters)
        name = std::max<int64_t>(name, std::stoll(each.name) + 1);
      program.interface.parameters.push_back({.name = cat(name)});
      made = graph.add_parameter(Graph::kBody, type, Source::none());
    } else {
      if (node.op->self == &ops::broadcast_to &&
          graph.node(node.inputs[0]).op == &def_of(&ops::constant))
        return false;
      made = graph.add(listed.region, def_of(&ops::constant), {},
                       Attrs().add(type.dtype).add(0.0).add(int64_t{0}), {type.dtype, {}},
                       Source::none());
      if (type.shape.rank() > 0)
        made = graph.add(listed.region, def_of(&ops::broadcast_to), {&made, 1},
                         Attrs().add(type.shape), type, Source::none());
      // They are added at the end; their readers come before.
      auto& list = graph.regions[static_cast<size_t>(listed.region)].nodes;
      const size_t added = type.shape.rank() > 0 ? 2 : 1;
      std::rotate(list.begin(), list.end() - static_cast<std::ptrdiff_t>(added), list.end());
    }
    replace(graph, old, made);
  }
  clean(program);
  return true;
}

}  // namespace

RandomProgram shrunk(RandomProgram program,
                     const std::function<bool(const RandomProgram&)>& fails) {
  const auto accepted = [&](RandomProgram smaller) {
    if (!fails(smaller)) return false;
    program = std::move(smaller);
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t k = program.graph.body().results.size(); k-- > 0;) {
      if (program.graph.body().results.size() == 1) break;
      RandomProgram smaller = program;
      erase_at(smaller.graph.body().results, k);
      erase_at(smaller.interface.results, k);
      clean(smaller);
      again = accepted(std::move(smaller)) || again;
    }
    for (auto& parameter : program.interface.parameters) {
      if (!parameter.donated) continue;
      parameter.donated = false;
      if (!fails(program)) parameter.donated = true;
    }
    for (const Way way : {Way::parameter, Way::operand, Way::zeros}) {
      // Numbers change with every success: start over.
      for (bool found = true; found;) {
        found = false;
        for (const Listed& listed : all_nodes(program.graph)) {
          RandomProgram smaller = program;
          if (!put_in_place(smaller, listed, way) || !accepted(std::move(smaller))) continue;
          again = found = true;
          break;
        }
      }
    }
  }
  return program;
}

}  // namespace tidemark::testing

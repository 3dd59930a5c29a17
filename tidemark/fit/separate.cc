#include "tidemark/fit/separate.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::fit {
namespace {

constexpr int64_t kMostOperands = 3;

// Operands that a step makes and that are as large as the group's largest result.
int64_t large_operands(const Graph& graph, const Node& group) {
  int64_t largest = 1;
  for (const TensorType& type : group.results)
    largest = std::max(largest, passes::known_bytes(type));
  return std::count_if(group.inputs.begin(), group.inputs.end(), [&](Value input) {
    return graph.node(input).op != nullptr && passes::known_bytes(graph.type(input)) >= largest;
  });
}

// Runs nodes from `first_new` on, which were taken out of groups, as soon as their operands exist.
void run_early(Graph& graph, int32_t first_new) {
  struct Entry {
    size_t position = 0;  // Of the last operand that is no such node; of itself if it is none.
    int32_t node = -1;
  };
  std::vector<Entry> entries;
  std::unordered_map<int32_t, size_t> position;
  for (const int32_t number : graph.body().nodes) {
    std::optional<size_t> last;
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
      if (const auto found = position.find(input.node); found != position.end())
        last = std::max(last.value_or(0), found->second);
    position[number] = number >= first_new && last ? *last : entries.size();
    entries.push_back({position[number], number});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.position < b.position; });
  for (size_t i = 0; i < entries.size(); ++i) graph.body().nodes[i] = entries[i].node;
}

}  // namespace

bool separate_sums(Graph& graph) {
  const auto first_new = static_cast<int32_t>(graph.nodes.size());
  const std::vector<int32_t> nodes = std::move(graph.body().nodes);
  graph.body().nodes.clear();
  std::unordered_map<int32_t, std::vector<Value>> replaced;  // By group: its results.
  const auto now = [&](Value value) {
    const auto found = replaced.find(value.node);
    return found == replaced.end() ? value : found->second[static_cast<size_t>(value.result)];
  };
  for (const int32_t number : nodes) {
    for (Value& input : graph.nodes[static_cast<size_t>(number)].inputs) input = now(input);
    const Node node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->flow != Flow::group || large_operands(graph, node) <= kMostOperands) {
      graph.body().nodes.push_back(number);
      continue;
    }
    replaced[number] =
        append_copy(graph, node.regions[0], graph, Graph::kBody,
                    {node.inputs.begin(), node.inputs.end()}, [](const Node&) { return false; });
  }
  for (Value& result : graph.body().results) result = now(result);
  if (replaced.empty()) return false;
  run_early(graph, first_new);
  graph = compact(std::move(graph));
  return true;
}

}  // namespace tidemark::fit

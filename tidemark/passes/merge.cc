// Common subexpression elimination, by hashing.
#include <bit>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/replaced.h"

namespace tidemark::passes {
namespace {

// These fields determine what a node computes; a draw, too, is a function of its key and shape.
bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.attrs == b.attrs && a.inputs == b.inputs && a.results == b.results;
}

uint64_t hash(const Node& node) {
  uint64_t hash = reinterpret_cast<uintptr_t>(node.op);
  const auto mix = [&](int64_t word) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  };
  for (const int64_t word : node.attrs.words()) mix(word);
  for (const Dim size : node.attrs.sizes()) mix(static_cast<int64_t>(size.word()));
  for (const Value input : node.inputs) mix(input.node * int64_t{65536} + input.result);
  return hash;
}

std::vector<Value> results_of(const Graph& graph, int32_t number) {
  const size_t count = graph.nodes[static_cast<size_t>(number)].results.size();
  std::vector<Value> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = {number, static_cast<int16_t>(i)};
  return values;
}

// A hash table of nodes, each with its region: a value is not visible outside its own region.
class NodeTable {
 public:
  explicit NodeTable(const Graph& graph)
      : graph_(graph),
        slots_(std::bit_ceil(2 * graph.nodes.size() + 1), -1),
        entries_(graph.nodes.size()) {}

  // The first node that is the same, in the same region; the node itself if there is none.
  int32_t find_or_add(RegionId region, int32_t number) {
    const Entry own{hash(node(number)) ^ static_cast<uint64_t>(region), region};
    for (size_t at = own.hash;; ++at) {
      int32_t& slot = slots_[at & (slots_.size() - 1)];
      if (slot < 0) {
        entries_[static_cast<size_t>(number)] = own;
        return slot = number;
      }
      if (entries_[static_cast<size_t>(slot)] == own && same(node(slot), node(number))) return slot;
    }
  }

 private:
  struct Entry {
    uint64_t hash = 0;
    RegionId region = -1;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }

  const Graph& graph_;
  std::vector<int32_t> slots_;  // Nodes, or -1; at most half of them are taken.
  std::vector<Entry> entries_;  // By node.
};

}  // namespace

void merge(Graph& graph) {
  NodeTable seen(graph);
  replace_nodes(graph, [&](RegionId region, int32_t number) -> std::vector<Value> {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (!node.regions.empty() || node.op->effect != Effect::none) return {};
    const int32_t first = seen.find_or_add(region, number);
    return first == number ? std::vector<Value>() : results_of(graph, first);
  });
}

}  // namespace tidemark::passes

// Common subexpression elimination, by hashing.
#include <unordered_set>

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

}  // namespace

void merge(Graph& graph) {
  // A node with its region: a value is not visible outside its own region.
  using Key = std::pair<RegionId, int32_t>;
  const auto node = [&](const Key& key) -> const Node& {
    return graph.nodes[static_cast<size_t>(key.second)];
  };
  const auto key_hash = [&](const Key& key) {
    return hash(node(key)) ^ static_cast<uint64_t>(key.first);
  };
  const auto key_same = [&](const Key& a, const Key& b) {
    return a.first == b.first && same(node(a), node(b));
  };
  std::unordered_set<Key, decltype(key_hash), decltype(key_same)> seen(0, key_hash, key_same);
  replace_nodes(graph, [&](RegionId region, int32_t number) -> std::vector<Value> {
    const Key key{region, number};
    if (!node(key).regions.empty() || node(key).op->effect != Effect::none) return {};
    const auto [first, fresh] = seen.insert(key);
    return fresh ? std::vector<Value>() : results_of(graph, first->second);
  });
}

}  // namespace tidemark::passes

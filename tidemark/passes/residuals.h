// What a gradient keeps of the way to the results it is of.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// By node: whether it is no gradient, nor computed from one.
std::vector<bool> forward_nodes(const Graph& graph, const Region& region);

// Of a region that has both: the values of the way there that the gradient takes. It makes the rest
// again: views, literals and draws always, and what is computed by element from what is there
// anyway. Of a value that was computed by element from one in fewer bytes, as composites in f32
// from 16-bit floats, that one is taken.
class Residuals {
 public:
  // `anywhere`: what is made again may be a step of its own. Else it is part of the kernel that
  // reads it, and reads no more memory there than it is itself.
  enum class Made : uint8_t { anywhere, in_kernels };
  // `is_forward` says which nodes are of the way there.
  Residuals(const Graph& graph, RegionId region, std::vector<bool> is_forward,
            Made made = Made::anywhere);

  const std::vector<Value>& list() const { return list_; }
  bool has(Value value) const { return kept_.contains(key(value)); }

 private:
  using Key = std::pair<int32_t, int16_t>;
  static Key key(Value value) { return {value.node, value.result}; }

  void keep_for_others(const Node& reader);
  void keep(Value value);
  void need(Value value);
  void drop_what_others_give();
  void keep_narrower();
  std::vector<Value> narrower(Value kept) const;
  int64_t bytes(Value value) const;
  bool costs_nothing(Value value) const;
  bool is_made(Value shown, int depth, int draws, std::set<Key>& read) const;
  // What a value is a view of, however many views stand in a row; itself if it is none.
  Value origin(Value value) const;

  const Graph& graph_;
  std::vector<bool> is_forward_;
  Made made_;
  std::unordered_map<int32_t, Value> origin_;  // Of views.
  std::set<Key> firm_;                         // Kept whatever others give.
  std::set<int32_t> parameters_;
  std::vector<Value> list_;
  std::set<Key> kept_;
};

}  // namespace tidemark::passes

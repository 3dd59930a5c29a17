// Residuals: forward values that the backward pass needs.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// By node: whether it belongs to the forward pass, i.e. is not computed from a gradient.
std::vector<bool> forward_nodes(const Graph& graph, const Region& region);

// Whether a value is a parameter of a region (weights, mostly) in another float type. A product in
// the backward pass gets it by a step of its own, since keeping it would keep all weights once
// more.
bool is_converted_parameter(const Graph& graph, const Region& region, Value value);

// In a region with a forward and a backward pass: the forward values that the backward pass stores.
// It rematerializes the others: views, literals, draws and converted parameters always, and values
// that are computed elementwise from stored ones. If a value was computed elementwise from a
// smaller one (composites in f32 from 16-bit floats), the smaller one is stored.
class Residuals {
 public:
  // `anywhere`: a rematerialized value may be a separate step. `in_kernels`: it must be part of the
  // kernel that reads it, and read no more memory there than its own size.
  enum class Rematerialize : uint8_t { anywhere, in_kernels };
  // `is_forward` tells which nodes belong to the forward pass.
  Residuals(const Graph& graph, RegionId region, std::vector<bool> is_forward,
            Rematerialize allowed = Rematerialize::anywhere);

  const std::vector<Value>& list() const { return list_; }
  // For values that the graph had when this was made.
  bool has(Value value) const { return kept_[number(value)]; }

 private:
  using Key = std::pair<int32_t, int16_t>;
  static Key key(Value value) { return {value.node, value.result}; }
  size_t number(Value value) const {
    return first_value_[static_cast<size_t>(value.node)] + static_cast<size_t>(value.result);
  }

  void keep_for_others(const Node& reader);
  void keep(Value value);
  void need(Value value);
  void drop_what_others_give();
  void keep_narrower();
  std::vector<Value> narrower(Value kept) const;
  int64_t bytes(Value value) const;
  bool costs_nothing(Value value) const;
  bool is_made(Value shown, int depth, int draws, std::vector<Value>& read) const;
  // The value behind a chain of views; the value itself if it is not a view.
  Value origin(Value value) const;
  bool is_converted(Value value) const;
  bool is_parameter(Value value) const { return is_parameter_[static_cast<size_t>(value.node)]; }

  const Graph& graph_;
  const RegionId region_;
  std::vector<bool> is_forward_;
  Rematerialize allowed_;
  std::vector<size_t> first_value_;  // By node: the number of its first result.
  std::vector<Value> origin_;        // By node: of views; else none.
  std::vector<bool> firm_;           // By value: stored regardless of other choices.
  std::vector<bool> is_parameter_;   // By node.
  std::vector<Value> list_;
  std::vector<bool> kept_;  // By value.
};

}  // namespace tidemark::passes

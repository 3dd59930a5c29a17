// The form of a kernel: its ops, attributes and types, and which node reads which value. The loops
// of a kernel depend on its form alone, so a network of many equal layers needs those of one.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

// Numbers lists of words in the order of their first appearance: equal lists get the same number.
class FormTable {
 public:
  struct Found {
    size_t number = 0;
    bool is_new = false;
  };
  Found find(std::span<const int64_t> words);

 private:
  using Words = std::span<const int64_t>;
  struct Hash {
    using is_transparent = void;
    size_t operator()(Words words) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Words a, Words b) const;
  };
  std::unordered_map<std::vector<int64_t>, size_t, Hash, Equal> known_;
};

// Writes forms as words. One for a graph: it keeps a table of all nodes.
class FormWriter {
 public:
  explicit FormWriter(const Graph& graph) : graph_(graph) {}

  // The form of `nodes`, which are in order, with the given results; valid until the next call.
  // `outside` are the values that they read from elsewhere, which the form knows by position: the
  // given ones come first, others follow in the order in which they are read.
  std::span<const int64_t> write(std::span<const int32_t> nodes, std::span<const Value> results,
                                 std::vector<Value>& outside);

 private:
  void add(const TensorType& type);
  void add(Value value, std::vector<Value>& outside);
  void add(const Node& node, std::vector<Value>& outside);

  const Graph& graph_;
  std::vector<int32_t> place_;  // By node: its position in `nodes`, or -1; all -1 between calls.
  std::vector<int64_t> words_;
};

}  // namespace tidemark::passes

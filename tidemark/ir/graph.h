// A traced function: nodes in regions.
//
// Handles are indices and nodes are plain data, so that a pass is an ordinary function. A region is
// closed: its nodes read its parameters and each other, never a value of an enclosing region. A
// control-flow node passes its inputs on to the parameters of its regions.
//
// A node is listed in one region only, and a region belongs to one node only. A pass that drops a
// node removes it from its region's list; the entry in `nodes` stays until `compact` removes nodes
// that no region lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/ir/attrs.h"
#include "tidemark/ir/term.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

using RegionId = int32_t;

struct Node {
  const OpDef* op = nullptr;  // Null: a parameter of a region.
  Attrs attrs;
  SmallVec<Value, 3> inputs;
  std::vector<TensorType> results;
  SmallVec<RegionId, 2> regions;
  Source source = Source::none();
  const OpDef* gradient_of = nullptr;  // The op whose gradient this node is part of, if any.
};

struct Region {
  std::vector<Value> parameters;  // Results of nodes without an op; `nodes` does not list them.
  std::vector<int32_t> nodes;     // In topological order; effects in program order.
  std::vector<Value> results;
};

struct Graph {
  std::string name;  // Of the function, for people; may be empty.
  std::vector<Node> nodes;
  std::vector<Region> regions = {Region()};
  static constexpr RegionId kBody = 0;

  const Region& body() const { return regions[kBody]; }
  Region& body() { return regions[kBody]; }
  const Node& node(Value value) const { return nodes[static_cast<size_t>(value.node)]; }
  const TensorType& type(Value value) const {
    return node(value).results[static_cast<size_t>(value.result)];
  }

  // Appends a parameter, or a node of one result or more, to a region.
  Value add_parameter(RegionId region, const TensorType& type, Source at);
  int32_t add_node(RegionId region, Node node);
  Value add(RegionId region, const OpDef& op, std::span<const Value> inputs, const Attrs& attrs,
            const TensorType& type, Source at);
  RegionId add_region();
};

// Drops nodes and regions that are not reachable from the body, and renumbers the rest in the order
// of the lists. Verifies the graph first, in every build, because a copy would hide what is wrong
// with it.
Graph compact(Graph graph);

// Copies the nodes of a region, with nested regions, to the end of a region of the same or another
// graph. The copies read the given values in place of the region's parameters. Returns the copies
// of its results. Nodes for which `leave_out` holds are not copied; their results must be unused.
std::vector<Value> append_copy(const Graph& from, RegionId region, Graph& to, RegionId into,
                               std::span<const Value> parameters,
                               bool (*leave_out)(const Node& node));

// A copy of a region, with its nested regions, in the same graph. Every region belongs to one node,
// so copying a node needs copies of its regions.
RegionId copy_region(Graph& graph, RegionId region, bool (*leave_out)(const Node& node));

// By node: how often its results are read. A region result counts as a read.
std::vector<int32_t> count_uses(const Graph& graph);

// Throws InternalError if a graph breaks the rules above: a value is read before its node or from
// another region, a node is listed twice, two nodes share a region.
void verify(const Graph& graph);

}  // namespace tidemark

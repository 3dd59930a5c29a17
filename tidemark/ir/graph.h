// A traced function: nodes in regions.
//
// Handles are indices and nodes are plain data, so that a pass is an ordinary function. A region is
// closed: what its nodes read are its parameters and each other, never a value of the region around
// it. A node of control flow hands its inputs on to the parameters of its regions.
//
// A node may be listed in one region only, and a region may belong to one node only. Passes that
// drop a node take it off its region's list; its place in `nodes` stays, and `compact` removes what
// no region lists.
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
  const OpDef* gradient_of = nullptr;  // The op whose gradient it is part of, if any.
};

struct Region {
  std::vector<Value> parameters;  // Results of nodes without an op, which `nodes` does not list.
  std::vector<int32_t> nodes;     // In an order in which they can run; effects in program order.
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

// Drops nodes and regions that the body does not reach through lists, and numbers the rest anew in
// the order of the lists. Verifies the graph first, in every build: a copy would hide what is wrong
// with it.
Graph compact(Graph graph);

// Appends the nodes of a region, and those of the regions in it, to a region of the same graph or
// of another, reading these values instead of its parameters; gives what its results are there.
// Nodes for which `leave_out` holds are not copied: nobody may read them.
std::vector<Value> append_copy(const Graph& from, RegionId region, Graph& to, RegionId into,
                               std::span<const Value> parameters,
                               bool (*leave_out)(const Node& node));

// A region of the same graph that computes what this one does, with copies of the regions in it.
// Every region belongs to one node, so a node that is copied gets its regions from here.
RegionId copy_region(Graph& graph, RegionId region, bool (*leave_out)(const Node& node));

// How often each node's results are read, by node; region results count as reads.
std::vector<int32_t> count_uses(const Graph& graph);

// Throws InternalError where a graph breaks the rules above: a value read before it is made or from
// another region, a node listed twice, a region that two nodes share.
void verify(const Graph& graph);

}  // namespace tidemark

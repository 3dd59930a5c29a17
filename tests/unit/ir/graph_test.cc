#include "tidemark/ir/graph.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"

namespace tidemark {
namespace {

// A branch whose two regions take nothing and give nothing.
Node branch(Value condition, RegionId then, RegionId otherwise) {
  Node node;
  node.op = &def_of(&ops::cond);
  node.inputs = {condition};
  node.regions = {then, otherwise};
  return node;
}

Graph two_branches(bool share) {
  Graph graph;
  const Value condition = graph.add_parameter(Graph::kBody, {DType::boolean, {}}, Source::none());
  const RegionId then = graph.add_region(), otherwise = graph.add_region();
  graph.add_node(Graph::kBody, branch(condition, then, otherwise));
  graph.add_node(Graph::kBody,
                 branch(condition, share ? then : graph.add_region(), graph.add_region()));
  return graph;
}

bool leave_none(const Node&) { return false; }

// In every build: two nodes with one region change each other when one of them is changed.
TEST(Graph, RefusesTwoNodesThatShareARegion) {
  EXPECT_NO_THROW(verify(two_branches(false)));
  const auto refused = [](void (*use)(const Graph&)) {
    const std::string text = error_of<InternalError>([&] { use(two_branches(true)); });
    return text.find("two nodes share region 1") != std::string::npos;
  };
  EXPECT_TRUE(refused([](const Graph& graph) { verify(graph); }));
  EXPECT_TRUE(refused([](const Graph& graph) { compact(graph); }));
}

TEST(Graph, RefusesANodeWithOneRegionTwice) {
  Graph graph;
  const Value condition = graph.add_parameter(Graph::kBody, {DType::boolean, {}}, Source::none());
  const RegionId only = graph.add_region();
  graph.add_node(Graph::kBody, branch(condition, only, only));
  EXPECT_THROW(verify(graph), InternalError);
}

TEST(Graph, CopiesARegionWithTheRegionsInIt) {
  Graph graph;
  const Value condition = graph.add_parameter(Graph::kBody, {DType::boolean, {}}, Source::none());
  const auto region_with_branch = [&] {
    const RegionId outer = graph.add_region();
    const Value inner = graph.add_parameter(outer, {DType::boolean, {}}, Source::none());
    const RegionId then = graph.add_region(), otherwise = graph.add_region();
    graph.add_node(outer, branch(inner, then, otherwise));
    return outer;
  };
  const auto take = [&](RegionId then, RegionId otherwise) {
    Node node = branch(condition, then, otherwise);
    node.inputs.push_back(condition);
    graph.add_node(Graph::kBody, std::move(node));
  };
  const RegionId then = region_with_branch(), otherwise = region_with_branch();
  take(then, otherwise);
  const RegionId again = copy_region(graph, then, leave_none);
  take(again, copy_region(graph, otherwise, leave_none));
  EXPECT_NO_THROW(verify(graph));
  EXPECT_EQ(graph.regions[static_cast<size_t>(again)].parameters.size(), 1u);
  EXPECT_EQ(graph.regions[static_cast<size_t>(again)].nodes.size(), 1u);
}

}  // namespace
}  // namespace tidemark

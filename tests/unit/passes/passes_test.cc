// What programs as text cannot say; tests/text has the rest.
#include "tidemark/passes/passes.h"

#include <gtest/gtest.h>

#include "tidemark/ops/op_def.h"

namespace tidemark::passes {
namespace {

TEST(Passes, AreFoundByName) {
  for (const Pass& pass : all_passes()) EXPECT_EQ(find(pass.name), &pass);
  EXPECT_EQ(find("no such pass"), nullptr);
}

TEST(Passes, KeepEveryEffectInOrder) {
  const OpDef note{.name = "note", .brief = "Tells.", .family = Family::effect};
  Graph graph;
  const Value x = graph.add_parameter(Graph::kBody, {DType::f32, {2}}, Source::none());
  for (int i = 0; i < 3; ++i) {
    Node node;
    node.op = &note;
    node.inputs = {x};
    graph.add_node(Graph::kBody, node);
  }
  const std::vector<int32_t> before = graph.body().nodes;
  for (const Pass& pass : all_passes()) {
    pass.run(graph);
    EXPECT_EQ(graph.body().nodes, before) << pass.name;
  }
}

}  // namespace
}  // namespace tidemark::passes

// tests/text tests what passes do.
#include "tidemark/passes/passes.h"

#include <gtest/gtest.h>

#include "tidemark/ops/text.h"

namespace tidemark::passes {
namespace {

TEST(Passes, AreFoundByName) {
  for (const Pass& pass : all_passes()) EXPECT_EQ(find(pass.name), &pass);
  EXPECT_EQ(find("no such pass"), nullptr);
}

// What sort, top_k and argmax give as places is within their axis: who looks there cannot fail.
TEST(Fallible, PlacesAreWithinTheAxisTheyAreOf) {
  const Graph graph = parse_graph(R"(function(%x: f32[8, 6], %y: f32[8, 5]) {
  %v: f32[8, 6], %p: i64[8, 6] = sort(%x) {axis = 1}
  %a: f32[8, 6] = take_along_axis(%x, %p) {axis = 1, from_end = true}
  %b: f32[8, 6] = take_along_axis(%y, %p) {axis = 1, from_end = true}
  %t: f32[8, 2], %k: i64[8, 2] = top_k(%x) {axis = 1, k = 2}
  %c: f32[8, 6] = scatter_add(%x, %k, %t) {axis = 1, along = true}
  %m: i64[6] = argmax(%x) {axes = [0]}
  %d: f32[6, 6] = gather(%x, %m) {axis = 0}
  %e: f32[8, 6] = gather(%y, %m) {axis = 1}
  return %a, %b, %c, %d, %e
})",
                                  "places");
  EXPECT_EQ(fallible_nodes(graph, graph.body()),
            (std::vector<bool>{false, false, true, false, false, false, false, true}));
}

}  // namespace
}  // namespace tidemark::passes

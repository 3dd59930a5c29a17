// tests/text tests what passes do.
#include "tidemark/passes/passes.h"

#include <gtest/gtest.h>

#include "tidemark/ops/text/text.h"

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

// An index that was checked cannot fail again, nor can a part of it, nor its numbers in a wider
// type. A check of a part says nothing about all of it.
TEST(Fallible, AnIndexIsCheckedOnce) {
  const Graph graph = parse_graph(R"(function(%t: f32[8, 6], %i: i32[5], %j: i32[5]) {
  %a: f32[5, 6] = gather(%t, %i) {axis = 0}
  %w: i64[5] = cast(%i) {dtype = i64}
  %b: f32[5, 6] = gather(%t, %w) {axis = 0}
  %n: u8[5] = cast(%i) {dtype = u8}
  %c: f32[5, 6] = gather(%t, %n) {axis = 0}
  %p: i32[2] = slice(%j) {begin = [1], size = [2], step = [1]}
  %d: f32[2, 6] = gather(%t, %p) {axis = 0}
  %e: f32[5, 6] = gather(%t, %j) {axis = 0}
  %f: f32[2, 6] = gather(%t, %p) {axis = 0}
  return %a, %b, %c, %d, %e, %f
})",
                                  "index");
  EXPECT_EQ(fallible_nodes(graph, graph.body()),
            (std::vector<bool>{true, false, false, false, true, false, true, true, false}));
}

}  // namespace
}  // namespace tidemark::passes

#include "tidemark/passes/form.h"

#include <gtest/gtest.h>

#include "tidemark/ops/text/text.h"

namespace tidemark::passes {
namespace {

// The form of the two last nodes of a function of x and y.
std::vector<int64_t> form(const std::string& types, const std::string& nodes) {
  const Graph graph =
      parse_graph("function(" + types + ") {\n" + nodes + "\n  return %b\n}", "form");
  std::vector<Value> outside;
  const std::vector<int32_t>& all = graph.body().nodes;
  FormWriter write(graph);
  const auto words = write.write(std::span(all).last(2), graph.body().results, outside);
  return {words.begin(), words.end()};
}

const char* const kTypes = "%x: f32[8, 6], %y: f32[8, 6]";

TEST(Form, IsThatOfOpsAttributesTypesAndConnections) {
  const auto scaled = [](const char* left, const char* right) {
    return cat("  %a: f32[8, 6] = exp(", left, ")\n  %b: f32[8, 6] = multiply(%a, ", right, ")");
  };
  const std::vector<int64_t> known = form(kTypes, scaled("%x", "%y"));
  EXPECT_EQ(form(kTypes, scaled("%y", "%x")), known);
  EXPECT_EQ(form(kTypes, "  %z: f32[8, 6] = sin(%y)\n" + scaled("%x", "%z")), known);
  EXPECT_NE(form(kTypes, scaled("%x", "%x")), known);
  EXPECT_NE(form(kTypes, scaled("%x", "%a")), known);
  EXPECT_NE(form("%x: f32[8, 6], %y: f32[6]", scaled("%x", "%y")), known);
  EXPECT_NE(form(kTypes, "  %a: f32[8, 6] = sin(%x)\n  %b: f32[8, 6] = multiply(%a, %y)"), known);
}

TEST(Form, DiffersWhereAnAttributeDoes) {
  const auto summed = [](int axis, int size) {
    return cat("  %a: f32[8, 6] = exp(%x)\n  %b: f32[", size, "] = sum(%a) {axes = [", axis, "]}");
  };
  EXPECT_EQ(form(kTypes, summed(0, 6)), form(kTypes, summed(0, 6)));
  EXPECT_NE(form("%x: f32[8, 6]", summed(0, 6)), form("%x: f32[8, 6]", summed(1, 8)));
}

TEST(Form, KnowsGivenValuesByPosition) {
  const Graph graph = parse_graph(
      "function(%x: f32[4], %y: f32[4]) {\n  %a: f32[4] = subtract(%y, %x)\n  return %a\n}",
      "form");
  const Region& body = graph.body();
  FormWriter write(graph);
  std::vector<Value> read, given = body.parameters, reversed = {given[1], given[0]};
  const auto words = [&](std::vector<Value>& outside) {
    const auto found = write.write(body.nodes, body.results, outside);
    return std::vector<int64_t>(found.begin(), found.end());
  };
  EXPECT_NE(words(given), words(reversed));
  (void)words(read);
  EXPECT_EQ(read, reversed);
  EXPECT_EQ(given, body.parameters);
}

TEST(FormTable, NumbersListsInTheOrderOfTheirFirstAppearance) {
  FormTable table;
  const std::vector<int64_t> a = {1, 2, 3}, b = {1, 2}, c = {};
  for (const bool is_new : {true, false}) {
    size_t number = 0;
    for (const std::vector<int64_t>& words : {a, b, c}) {
      const FormTable::Found found = table.find(words);
      EXPECT_EQ(found.number, number++);
      EXPECT_EQ(found.is_new, is_new);
    }
  }
}

}  // namespace
}  // namespace tidemark::passes

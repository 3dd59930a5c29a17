// Gradients as a pass: text in, text out.
#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/passes/gradient/dependence.h"
#include "tidemark/passes/gradient/differentiate_again.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

// The gradients of the first result by all parameters; a last parameter is the gradient of that
// result.
class Differentiated {
 public:
  explicit Differentiated(std::string_view text) : graph_(parse_graph(text, "a test")) {
    const passes::GradientSettings settings;
    passes::Differentiation asked{.scope = &body_, .into = &body_, .settings = &settings};
    asked.watched = asked.sources = graph_.body().parameters;
    const Value target = graph_.body().results[0];
    const Value seed =
        graph_.add_parameter(Graph::kBody, TensorType(graph_.type(target)), Source::none());
    asked.seeds.emplace_back(target, passes::ScopedValue{seed, &body_});
    graph_.body().results.clear();
    for (const passes::ValueGradient& each : passes::differentiate(asked, history_, Source::none()))
      if (each.dense) graph_.body().results.push_back(each.dense.value);
  }

  std::string text() const { return text_of(graph_); }
  std::string again(int64_t most_kept) const {
    return text_of(passes::differentiate_again(graph_, history_, {.most_kept = most_kept}).value());
  }
  // With the function of the first node kept.
  std::string inlined() const {
    const Source line = graph_.nodes[static_cast<size_t>(graph_.body().nodes[0])].source;
    return text_of(passes::differentiate_again(graph_, history_, {}, {.inlined = line}).value());
  }

 private:
  static std::string text_of(Graph graph) {
    passes::remove_dead(graph);
    return to_text(compact(graph));
  }

  Graph graph_;
  RegionScope body_{.graph = &graph_};
  passes::GradientHistory history_;
};

TEST(Differentiate, AppendsTheRulesOfTheOps) {
  EXPECT_EQ(Differentiated(R"(function(%0: f32[2, 3], %1: f32[3]) {
  %2: f32[2, 3] = multiply(%0, %1)
  %3: f32[2, 3] = tanh(%2)
  %4: f32[] = sum(%3) {axes = [0, 1]}
  return %4
})")
                .text(),
            R"(function(%0: f32[2, 3], %1: f32[3], %2: f32[]) {
  %3: f32[2, 3] = multiply(%0, %1)
  %4: f32[2, 3] = tanh(%3)
  %5: f32[1, 1] = reshape(%2) {shape = [1, 1]} gradient of sum
  %6: f32[2, 3] = broadcast_to(%5) {shape = [2, 3]} gradient of sum
  %7: f32[2, 3] = multiply(%4, %4) gradient of tanh
  %8: f32[] = constant 1 gradient of tanh
  %9: f32[2, 3] = broadcast_to(%8) {shape = [2, 3]} gradient of tanh
  %10: f32[2, 3] = subtract(%9, %7) gradient of tanh
  %11: f32[2, 3] = multiply(%6, %10) gradient of tanh
  %12: f32[2, 3] = multiply(%11, %1) gradient of multiply
  %13: f32[2, 3] = multiply(%11, %0) gradient of multiply
  %14: f32[1, 3] = sum(%13) {axes = [0], keepdims = true} gradient of multiply
  %15: f32[3] = reshape(%14) {shape = [3]} gradient of multiply
  return %12, %15
}
)");
}

constexpr std::string_view kLoop = R"(function(%0: f32[3]) {
  %1: f32[3] = loop(%0) {carries = 1, trips = 9}
    (%2: i64[], %3: f32[3]) {
      %4: f32[3] = sin(%3)
      return %4
    }
  return %1
})";

// Everything of the trips is stacked, and read by a loop backwards.
TEST(Differentiate, StacksWhatALoopKeeps) {
  EXPECT_EQ(Differentiated(kLoop).text(), R"(function(%0: f32[3], %1: f32[3]) {
  %2: f32[3], %3: f32[9, 3] = loop(%0) {carries = 1, stacked = 1, trips = 9, save = 1, saved = 1}
    (%4: i64[], %5: f32[3]) {
      %6: f32[3] = sin(%5)
      return %6, %5
    }
  %7: f32[3] = loop(%1, %3) {carries = 1, slices = 1, trips = 9, reverse = true} gradient of loop
    (%8: i64[], %9: f32[3], %10: f32[3]) {
      %11: f32[3] = cos(%10) gradient of sin
      %12: f32[3] = multiply(%9, %11) gradient of sin
      return %12
    }
  return %7
}
)");
}

// The same trace with another choice: three states, and a loop walked backwards from them.
TEST(Differentiate, AgainWithLoopsThatKeepTheLeast) {
  const Differentiated made(kLoop);
  EXPECT_EQ(made.again(passes::kMostKept), made.text());
  EXPECT_EQ(made.again(0), R"(function(%0: f32[3], %1: f32[3]) {
  %2: f32[3], %3: i64[6], %4: f32[3, 3] = loop(%0) {carries = 1, trips = 9, save = 3, amount = 3, marks = 1, kept = 1}
    (%5: i64[], %6: f32[3]) {
      %7: f32[3] = sin(%6)
      return %7
    }
  %8: f32[3] = reverse_loop(%3, %4, %0, %1) {carries = 1, backs = 1, trips = 9, linear = true, save = 3, amount = 3} gradient of loop
    (%9: i64[], %10: f32[3]) {
      %11: f32[3] = sin(%10) gradient of loop
      return %11
    }
    (%12: i64[], %13: f32[3], %14: f32[3]) {
      %15: f32[3] = cos(%13) gradient of sin
      %16: f32[3] = multiply(%14, %15) gradient of sin
      return %16
    }
  return %8
}
)");
}

// A function of td::recompute whose gradient keeps what it reads is what it is made of.
TEST(Differentiate, AgainWithABlockThatIsNotRunAgain) {
  const Differentiated block(R"(function(%0: f32[3], %1: f32[3]) {
  %2: f32[3] = call(%0, %1) {outputs = 1}
    (%3: f32[3], %4: f32[3]) {
      %5: f32[3] = exp(%3)
      %6: f32[3] = multiply(%5, %4)
      return %6
    }
  %7: f32[3] = sin(%2)
  return %7
})");
  const Differentiated plain(R"(function(%0: f32[3], %1: f32[3]) {
  %2: f32[3] = exp(%0)
  %3: f32[3] = multiply(%2, %1)
  %4: f32[3] = sin(%3)
  return %4
})");
  EXPECT_EQ(block.inlined(), plain.text());
  EXPECT_NE(block.text(), plain.text());
}

// The results of a loop walked backwards depend on what its regions read, one trip or many later.
TEST(Differentiate, AReverseLoopDependsOnWhatItsRegionsRead) {
  const auto depends = [](std::string_view back, size_t input) {
    const Graph graph =
        parse_graph(cat(R"(function(%0: i64[4], %1: f32[2, 3], %2: f32[3], %3: f32[], %4: f32[4]) {
  %5: f32[] = reverse_loop(%0, %1, %2, %3, %4) {carries = 1, backs = 1, slices = 1, trips = 4, linear = true, seeds = 1, save = 3, amount = 2}
    (%6: i64[], %7: f32[3], %8: f32[]) {
      %9: f32[3] = sin(%7)
      return %9
    }
    (%10: i64[], %11: f32[3], %12: f32[], %13: f32[]) {
      )",
                        back, R"(
    }
  return %5
})"),
                    "a test");
    std::vector<bool> inputs(5);
    inputs[input] = true;
    return bool{passes::depending_results(
        graph, graph.nodes[static_cast<size_t>(graph.body().nodes[0])], inputs)[0]};
  };
  constexpr std::string_view kSum = "%14: f32[] = add(%12, %13)\n      return %14";
  constexpr std::string_view kState =
      "%14: f32[] = sum(%11) {axes = [0]}\n      %15: f32[] = multiply(%12, %14)\n"
      "      return %15";
  EXPECT_FALSE(depends(kSum, 2)) << "no state is read";
  EXPECT_TRUE(depends(kSum, 3));
  EXPECT_TRUE(depends(kSum, 4));
  EXPECT_TRUE(depends(kState, 2));
  EXPECT_FALSE(depends(kState, 4));
}

}  // namespace
}  // namespace tidemark

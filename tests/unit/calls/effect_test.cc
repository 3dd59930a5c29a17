#include "tidemark/api/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"

namespace tidemark {
namespace {

std::string printed(const std::function<void()>& body) {
  std::string text;
  set_print_sink([&](std::string_view line) { text += line; });
  body();
  set_print_sink({});
  return text;
}

TEST(Print, PutsASpaceBetweenItsParts) {
  const Tensor loss = constant(0.5f);
  const Variable step(3);
  EXPECT_EQ(printed([&] { print("loss", loss, "at", step, 7, true, std::string("end")); }),
            "loss 0.5 at 3 7 True end\n");
  EXPECT_EQ(printed([] { print("alone"); }), "alone\n");
  EXPECT_EQ(printed([] { print(std::string("x ="), constant({{1, 2}, {3, 4}}), Shape{2, 3}); }),
            "x = [[1 2]\n [3 4]] [2, 3]\n");
}

TEST(Print, GoesToStandardOutput) {
  testing::internal::CaptureStdout();
  print("x", constant({1.5f, 2.0f}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "x [1.5 2. ]\n");
}

TEST(Print, ASinkMayPrintItself) {
  std::string text;
  set_print_sink([&](std::string_view line) {
    text += line;
    if (text.size() < 4) print("b");
  });
  print("a");
  set_print_sink({});
  EXPECT_EQ(text, "a\nb\n");
}

TEST(CheckNumerics, GivesItsOperandBack) {
  for (const DType dtype : {f16, bf16, f32, f64, i32, boolean}) {
    const Tensor x = constant({{1, 0}, {1, 1}}, dtype);
    EXPECT_TRUE(identical(check_numerics(x, "x"), x));
  }
  const Tensor edge = constant({std::numeric_limits<float>::max(), 1e-45f, -0.0f});
  EXPECT_TRUE(identical(check_numerics(edge, "edge"), edge));
}

TEST(CheckNumerics, CountsInEveryDTypeAndLayout) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {f16, bf16, f32, f64}) {
    const Tensor x = transpose(constant({{1.0, 2.0, NAN}, {inf, 3.0, -inf}}, dtype));
    try {
      check_numerics(x, "x");
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      const std::string start =
          cat("check_numerics: x: ", dtype, "[3, 2] has 1 NaN and 2 Inf, the first at [0, 1]\n");
      EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
    }
  }
}

TEST(AssertThat, SaysNothingWhereTheConditionHolds) {
  const Tensor x = constant({1.0f, 2.0f});
  assert_that(x > 0, "positive", {x});
  assert_that(true, "a plain bool");
  assert_that(x, "not zero is true");
  assert_that(zeros({0}), "nothing is false");
}

TEST(Warnings, GoToTheCallbackOrToStandardError) {
  std::string text;
  unsigned line = 0;
  on_warning([&](std::string_view warning, Source at) {
    text = warning;
    line = at.line;
  });
  const Source here = Source::here();
  detail::warn("retraced", here);
  on_warning({});
  EXPECT_EQ(text, "retraced");
  EXPECT_EQ(line, here.line);
  testing::internal::CaptureStderr();
  detail::warn("retraced", here);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            cat("tidemark: retraced\n  at effect_test.cc:", here.line, "\n"));
}

}  // namespace
}  // namespace tidemark

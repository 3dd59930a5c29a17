// A call that fails changes no Variable; and what keeps it from doing so costs bytes only where a
// value that is written is also what is checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;

const td::Tensor& bad() {
  static const td::Tensor x = td::constant({1.0, 0.0}) / 0.0;
  return x;
}

TEST(Failure, ChecksComeBeforeWritesWhateverTheProgramSays) {
  const td::MachineCode machine;
  const td::Variable v(td::ones({1000}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x) {
    v.assign_add(1);
    td::check_numerics(x, "x");
    v.assign(v.value() * 2);
  });
  EXPECT_EQ(f.plan(td::spec({2})).of(td::ByteClass::shadow), td::Bytes(0));
  EXPECT_THROW(f(bad()), td::UserError);
  EXPECT_TRUE(td::identical(v.value(), td::ones({1000})));
  const td::Tensor good = td::ones({2});
  const td::Bytes before = td::memory::current();
  td::memory::reset_peak();
  f(good);
  EXPECT_EQ(td::memory::peak(), before) << "written in place";
  EXPECT_TRUE(td::identical(v.value(), td::full({1000}, 4.0)));
}

TEST(Failure, OfWhatWasWrittenNeedsAShadowAndSaysWhy) {
  const td::Variable v(td::ones({1000}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x) {
    v.assign(v.value() / x);
    td::check_numerics(v.value(), "v");
  });
  const td::Plan plan = f.plan(td::spec({}));
  EXPECT_EQ(plan.of(td::ByteClass::shadow).count, 4032);
  EXPECT_NE(plan.explain().find(
                "shadow: v, not in place: check_numerics may fail after it (failure_test.cc:"),
            std::string::npos)
      << plan.explain();
  EXPECT_THROW(f(0.0), td::UserError);
  EXPECT_TRUE(td::identical(v.value(), td::ones({1000})));
  f(0.5);
  EXPECT_TRUE(td::identical(v.value(), td::full({1000}, 2.0)));
}

TEST(Failure, OfOtherVariablesNeedsNoShadow) {
  const td::Variable first(td::ones({1000}), {.name = "first"}),
      second(td::ones({500}), {.name = "second"});
  const auto f = td::function([=](const td::Tensor& x, const td::Tensor& index) {
    first.assign_sub(x * 0.1);
    second.assign(td::gather(second.value(), index, 0));
    td::assert_that(td::all(x < 2), "small");
  });
  EXPECT_EQ(f.plan(1.0, td::spec({500}, td::i32)).of(td::ByteClass::shadow).count, 2048)
      << "second is read where its new value is made";
  EXPECT_THROW(f(3.0, td::arange(500)), td::UserError);
  EXPECT_THROW(f(1.0, td::arange(500) + 1), td::UserError);
  EXPECT_TRUE(td::identical(first.value(), td::ones({1000})));
  EXPECT_TRUE(td::identical(second.value(), td::ones({500})));
}

TEST(Failure, OfAnIndexComesBeforeItsOwnWrite) {
  const td::Variable v(td::zeros({100, 30}), {.name = "v"}), w(td::zeros({50}), {.name = "w"});
  const auto f = td::function([=](const td::Tensor& index, const td::Tensor& rows) {
    w.assign_add(1);
    v.scatter_update(index, rows);
  });
  EXPECT_EQ(f.plan(td::spec({2}, td::i32), td::spec({2, 30})).of(td::ByteClass::shadow),
            td::Bytes(0));
  EXPECT_THROW(f(td::constant({3, 100}), td::ones({2, 30})), td::UserError);
  EXPECT_TRUE(td::identical(v.value(), td::zeros({100, 30})));
  EXPECT_TRUE(td::identical(w.value(), td::zeros({50})));
  f(td::constant({3, 99}), td::ones({2, 30}));
  EXPECT_EQ(td::sum(v.value()).item<float>(), 60);
}

TEST(Failure, OfAnOptimizerStepIsImpossible) {
  std::vector<td::Variable> weights;
  for (int i = 0; i < 5; ++i)
    weights.emplace_back(td::ones({100, 10}), td::VariableOptions{.name = td::cat("w", i)});
  const auto f = td::function([=](const td::Tensor& x) {
    for (const td::Variable& w : weights) w.assign_sub(td::sum(x) * 0.1 * w);
  });
  EXPECT_EQ(f.plan(td::spec({10})).of(td::ByteClass::shadow), td::Bytes(0));
}

// Where lines are printed is the user's code, and may throw.
TEST(Failure, OfAPrintChangesNothing) {
  const td::Variable v(td::zeros({}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x) {
    td::print("before", x);
    v.assign_add(x);
    td::print("after", v.value());
    v.assign_add(x);
  });
  for (int strike = 1; strike <= 2; ++strike) {
    int line = 0;
    td::set_print_sink([&](std::string_view) {
      if (++line == strike) throw std::runtime_error("no paper");
    });
    EXPECT_THROW(f(1.0), std::runtime_error);
    td::set_print_sink({});
    EXPECT_EQ(v.value().item<float>(), 0);
  }
  std::string lines;
  td::set_print_sink([&](std::string_view line) { lines += line; });
  f(1.0);
  td::set_print_sink({});
  EXPECT_EQ(lines, "before 1.0\nafter 1.0\n");
  EXPECT_EQ(v.value().item<float>(), 2);
}

// What is read before an array changes is read before, so that it changes where it lies.
TEST(InPlace, IsKeptByTheOrderOfALoop) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& array, const td::Tensor& weights) {
    return td::fori_loop(
        0, 5,
        [&](const td::Tensor& i, const td::Tensor& a, const td::Tensor& total) {
          const td::Tensor read = td::sum(td::exp(a) * weights, 1);
          const td::Tensor large = td::matmul(td::expand_dims(read, 1), td::expand_dims(read, 0));
          const td::Tensor next = td::put(a, td::expand_dims(i, 0), td::ones({1, 1000}));
          return std::tuple{next, total + td::sum(large)};
        },
        std::tuple{array, td::zeros({})});
  });
  const td::Plan plan = f.plan(td::spec({50, 1000}), td::spec({1000}));
  int copies = 0;
  for (const td::PlanStep& step : plan.timeline()) copies += step.name == "copy" ? 1 : 0;
  EXPECT_LE(copies, 1) << "into the first carry, and none a trip\n" << plan.to_text();
}

}  // namespace

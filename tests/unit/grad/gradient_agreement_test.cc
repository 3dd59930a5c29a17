// A gradient is the same in eager code, inside a function, and of a call of a function that a tape
// records; and where there is none, an error says so.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using Values = std::vector<double>;
using td::error_of;

struct ByBoth {
  td::Tensor x, v;
};

// The gradients of f by x and by a Variable that f assigns, found in three ways.
class Assigning {
 public:
  explicit Assigning(std::function<td::Tensor(const td::Tensor&)> f) : f_(std::move(f)) {}

  ByBoth eager(const td::Tensor& x, const td::Variable& v) const { return of(f_, x, v); }
  ByBoth inside(const td::Tensor& x, const td::Variable& v) const {
    return td::function([&](const td::Tensor& each) { return of(f_, each, v); })(x);
  }
  ByBoth around(const td::Tensor& x, const td::Variable& v) const {
    return of(td::function([&](const td::Tensor& each) { return f_(each); }), x, v);
  }

 private:
  template <class F>
  static ByBoth of(const F& f, const td::Tensor& x, const td::Variable& v) {
    td::GradientTape tape;
    tape.watch(x);
    const td::Tensor y = f(x);
    auto [by_x, by_v] = tape.gradient(y, std::tuple{x, v});
    return {by_x, by_v.dense()};
  }
  std::function<td::Tensor(const td::Tensor&)> f_;
};

void expect_agreement(const std::function<td::Tensor(const td::Tensor&, const td::Variable&)>& f,
                      const Values& by_x, const Values& by_v, bool trainable = true) {
  const td::Tensor x = td::constant({1.0, 2.0, 3.0});
  const td::Variable v(td::constant({5.0, 5.0, 5.0}), {.trainable = trainable});
  const Assigning ways([&](const td::Tensor& each) { return f(each, v); });
  for (const auto way : {&Assigning::eager, &Assigning::inside, &Assigning::around}) {
    v.assign(td::constant({5.0, 5.0, 5.0}));
    const ByBoth found = (ways.*way)(x, v);
    EXPECT_EQ(td::cast(found.x, td::f64).to_vector<double>(), by_x);
    EXPECT_EQ(td::cast(found.v, td::f64).to_vector<double>(), by_v);
  }
}

TEST(Agreement, WhatAVariableWasAssignedHasNoHistory) {
  expect_agreement(
      [](const td::Tensor& x, const td::Variable& v) {
        v.assign(2.0 * x);
        return td::sum(td::square(v) * x);
      },
      {4, 16, 36}, {4, 16, 36});
}

TEST(Agreement, WhatIsAssignedAndUsedToo) {
  expect_agreement(
      [](const td::Tensor& x, const td::Variable& v) {
        const td::Tensor twice = 2.0 * x;
        v.assign(twice);
        return td::sum(td::square(v)) + td::sum(3.0 * twice);
      },
      {6, 6, 6}, {4, 8, 12});
}

TEST(Agreement, ReadsBeforeAndAfterAnAssignmentAddUp) {
  expect_agreement(
      [](const td::Tensor& x, const td::Variable& v) {
        const td::Tensor before = td::sum(v * x);
        v.assign_add(x);
        v.assign_add(x);
        return before + td::sum(td::square(v));
      },
      {5, 5, 5}, {1 + 14, 2 + 18, 3 + 22});
}

TEST(Agreement, OfAVariableThatIsNotTrained) {
  expect_agreement(
      [](const td::Tensor& x, const td::Variable& v) {
        v.assign(2.0 * x);
        return td::sum(td::square(v) * x);
      },
      {4, 16, 36}, {0, 0, 0}, false);
}

// Each trip reads what it assigned as a new value of the Variable.
TEST(Agreement, OfAVariableThatALoopAssignsAndReads) {
  for (const td::Save save : {td::Save::all(), td::Save::slots(1)}) {
    expect_agreement(
        [&](const td::Tensor& x, const td::Variable& v) {
          return td::sum(td::fori_loop(0, 2,
                                       [&](const td::Tensor&, const td::Tensor& c) {
                                         v.assign(2.0 * c);
                                         return c * v;
                                       },
                                       x, {.save = save}));
        },
        {8, 64, 216}, {6, 40, 126});
  }
}

// The next trip reads what the one before it assigned, the first one what the Variable was.
TEST(Agreement, OfAVariableThatALoopReadsAndAssigns) {
  for (const bool is_bounded : {true, false}) {
    expect_agreement(
        [&](const td::Tensor& x, const td::Variable& v) {
          td::LoopOptions options;
          if (is_bounded) options.max_iterations = 4;
          const auto [last, n] =
              td::while_loop([](const td::Tensor&, const td::Tensor& n) { return n < 2; },
                             [&](const td::Tensor& c, const td::Tensor& n) {
                               const td::Tensor next = c * v;
                               v.assign(next);
                               return std::tuple{next, n + 1};
                             },
                             std::tuple{x, td::constant(0)}, options);
          return td::sum(last);
        },
        {25, 50, 75}, {10, 30, 60});
  }
}

TEST(Agreement, OfAVariableThatABranchAssignsAndReads) {
  for (const bool trainable : {true, false}) {
    expect_agreement(
        [](const td::Tensor& x, const td::Variable& v) {
          const td::Tensor square = td::cond(
              td::sum(x) > 0.0,
              [&] {
                v.assign(2.0 * x);
                return v * v;
              },
              [&] { return x * x; });
          return td::sum(square * x);
        },
        {4, 16, 36}, trainable ? Values{4, 16, 36} : Values{0, 0, 0}, trainable);
  }
}

// The kernel of the gradient of softmax reads its result twice, once by way of two transposes, and
// keeps a row where it puts the gradient.
TEST(Agreement, OfWhatIsReadAsItIsAndTransposed) {
  const td::Variable w(td::random::normal({4, 4}, {.key = td::random::Key(2)}));
  const auto gradients = [&](const td::Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    const td::Tensor share = td::softmax(x, -1);
    const td::Tensor turned = td::transpose(share);
    const td::Tensor squares = td::transpose(turned * turned);
    const td::Tensor out = td::tanh(td::matmul(share, w));
    const td::Tensor loss = td::mean(out * out) + td::mean(squares * squares);
    const auto [by_x, by_w] = tape.gradient(loss, std::tuple{x, w});
    return std::tuple{loss, by_x, by_w.dense()};
  };
  const td::Tensor x = td::random::normal({8, 4}, {.key = td::random::Key(1)});
  const auto [loss, by_x, by_w] = gradients(x);
  const auto [same_loss, same_by_x, same_by_w] =
      td::function([&](const td::Tensor& each) { return gradients(each); })(x);
  EXPECT_TRUE(td::identical(same_loss, loss));
  EXPECT_TRUE(td::identical(same_by_x, by_x));
  EXPECT_TRUE(td::identical(same_by_w, by_w));
}

// Its kernels pass truth values on, in rows shorter than a register: of the last row nothing may be
// written behind the array, where another one begins.
TEST(Agreement, OfTruthsInShortRows) {
  const auto f = [](const td::Tensor& x) {
    const td::Tensor apart = x - td::mean(x, -1, td::keepdims);
    const td::Tensor norm = apart * td::rsqrt(td::var(x, -1, td::keepdims) + 1e-3);
    const td::Tensor y = td::sigmoid(td::maximum(td::maximum(x, x * 0.5), norm * 0.5)) * x;
    return td::mean(y * y);
  };
  for (int64_t n = 12; n <= 17; ++n) {
    const td::Tensor x =
        td::random::normal({n, 4}, {.dtype = td::f64, .key = td::random::Key(2089)});
    const auto gradient = [&](const auto& of) {
      td::GradientTape tape;
      tape.watch(x);
      return tape.gradient(of(x), x);
    };
    EXPECT_TRUE(td::identical(gradient(td::function(f)), gradient(f))) << n;
  }
}

TEST(Agreement, OfSecondOrderThroughAnAssignment) {
  const td::Tensor x = td::constant({1.0, 2.0, 3.0});
  const td::Variable v(td::constant({5.0, 5.0, 5.0}));
  const auto f = [&](const td::Tensor& each) {
    v.assign(2.0 * each);
    return td::sum(td::square(v) * each * each);
  };
  const auto second = [&](const auto& of) {
    v.assign(td::constant({5.0, 5.0, 5.0}));
    td::GradientTape outer;
    outer.watch(x);
    td::GradientTape inner;
    inner.watch(x);
    const td::Tensor by_x = inner.gradient(of(x), x);
    return outer.gradient(by_x, x).to_vector<float>();
  };
  const std::vector<float> want = {8, 32, 72};  // 2 v², where v is 2 x and has no history.
  EXPECT_EQ(second(f), want);
  EXPECT_EQ(second(td::function([&](const td::Tensor& each) { return f(each); })), want);
}

TEST(Agreement, MeasuredRunsAndRunsInAnArenaAreNotRecorded) {
  const td::Variable v(td::constant({1.0, 2.0}));
  auto f = td::function([&](const td::Tensor& x) { return td::sum(x * v); }, {.name = "f"});
  const td::Tensor x = td::constant({3.0, 4.0});
  const td::Plan plan = f.plan(x);
  const std::unique_ptr<std::byte, decltype(&std::free)> arena(
      static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(plan.arena().count))),
      &std::free);
  const std::span<std::byte> bytes(arena.get(), static_cast<size_t>(plan.arena().count));
  td::GradientTape tape;
  const std::string profiled = error_of([&] { f.profile(x); });
  EXPECT_EQ(profiled.substr(0, profiled.find('\n')),
            "profile: a tape watches values that this call reads, but cannot record the call");
  EXPECT_NE(profiled.find("call the function for its gradient, or pause the tape: const auto pause "
                          "= tape.stop_recording()"),
            std::string::npos)
      << profiled;
  const std::string in_arena = error_of([&] { f.run_in(plan, bytes, x); });
  EXPECT_EQ(in_arena.substr(0, in_arena.find('\n')),
            "run_in: a tape watches values that this call reads, but cannot record the call");
  {
    const auto pause = tape.stop_recording();
    EXPECT_EQ(f.profile(x).first.item<float>(), 11);
    EXPECT_EQ(f.run_in(plan, bytes, x).item<float>(), 11);
  }
  td::GradientTape other({.watch_variables = false});
  const auto pause = tape.stop_recording();
  EXPECT_EQ(f.profile(x).first.item<float>(), 11);
}

TEST(Agreement, APadHasAGradientByWhatItIsFilledWith) {
  const auto f = [](const td::Tensor& fill) {
    const td::Tensor padded = td::pad(td::constant({1.0, 2.0}), {{1, 2}}, fill);
    return std::pair{td::sum(padded * td::constant({10.0, 20.0, 30.0, 40.0, 50.0})), padded};
  };
  const td::Tensor fill = td::constant(7.0F);
  const auto check = [](const std::pair<std::pair<td::Tensor, td::Tensor>, td::Tensor>& all) {
    EXPECT_EQ(all.first.second.to_vector<float>(), (std::vector<float>{7, 1, 2, 7, 7}));
    EXPECT_EQ(all.second.item<float>(), 100);
  };
  check(td::value_and_grad(f)(fill));
  check(td::function([&](const td::Tensor& x) { return td::value_and_grad(f)(x); })(fill));
  const auto by_x = [](const td::Tensor& x) {
    return td::sum(td::square(td::pad(x, {{1, 0}}, td::sum(x))));
  };
  // (x0 + x1)² + x0² + x1²
  const std::vector<float> want = {2 * 3 + 2, 2 * 3 + 4};
  EXPECT_EQ(td::grad(by_x)(td::constant({1.0, 2.0})).to_vector<float>(), want);
}

TEST(Agreement, ARangeHasNoGradientByItsNumbers) {
  const td::Tensor x = td::constant(2.0F);
  td::GradientTape tape;
  tape.watch(x);
  const std::string error = error_of([&] { td::arange(x, 10.0F); });
  EXPECT_EQ(error.substr(0, error.find('\n')),
            "arange: a tape watches its start or step, and arange is not differentiable");
  EXPECT_EQ(td::arange(td::stop_gradient(x), 4.0F).to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST(Agreement, ATapeInALoopKnowsWhatTheLoopCarriesByItself) {
  const td::Tensor x = td::constant({1.0, 2.0});
  const auto f = [](const td::Tensor& x) {
    return td::fori_loop(
        0, 2,
        [&](const td::Tensor&, const td::Tensor& carry) {
          td::GradientTape tape;
          tape.watch(carry);
          return tape.gradient(td::sum(x * carry * carry), carry);  // 2 x carry
        },
        x);
  };
  const std::vector<float> want = {4, 32};
  EXPECT_EQ(f(x).to_vector<float>(), want);
  EXPECT_EQ(td::function([&](const td::Tensor& each) { return f(each); })(x).to_vector<float>(),
            want);
}

TEST(Agreement, ATapeInRecomputeKnowsArgumentsByThemselves) {
  const td::Tensor x = td::constant({1.0, 2.0});
  const auto f = [](const td::Tensor& x) {
    return td::recompute([&](const td::Tensor& own) {
      td::GradientTape tape;
      tape.watch(own);
      return tape.gradient(td::sum(x * own * own), own);  // 2 x own
    })(x);
  };
  const std::vector<float> want = {2, 8};
  EXPECT_EQ(f(x).to_vector<float>(), want);
  EXPECT_EQ(td::function([&](const td::Tensor& each) { return f(each); })(x).to_vector<float>(),
            want);
}

TEST(Agreement, ACustomGradientDoesNotLoseWhatItsFunctionCaptures) {
  const td::Tensor x = td::constant({1.0, 2.0}), scale = td::constant({3.0, 4.0});
  const auto loss = [](const td::Tensor& x, const td::Tensor& scale, bool as_constant) {
    const auto f = td::custom_gradient([=](const td::Tensor& x) {
      const td::Tensor y = x * (as_constant ? td::stop_gradient(scale) : scale);
      return std::pair{y, [scale](const td::Tensor& dy) { return dy * scale; }};
    });
    return td::sum(f(x)) + td::sum(scale);
  };
  const auto gradients = [&](const td::Tensor& x, const td::Tensor& scale, bool as_constant) {
    return td::grad<0, 1>([&](const td::Tensor& a, const td::Tensor& b) {
      return loss(a, b, as_constant);
    })(x, scale);
  };
  const std::string want =
      "custom_gradient: the function reads a watched tensor that is not an argument, so no "
      "gradient "
      "would flow to it";
  EXPECT_EQ(error_of([&] { gradients(x, scale, false); }).find(want), 0u);
  EXPECT_EQ(error_of([&] {
              td::function([&](const td::Tensor& a, const td::Tensor& b) {
                return gradients(a, b, false);
              })(x, scale);
            }).find(want),
            0u);
  const auto [by_x, by_scale] = gradients(x, scale, true);
  EXPECT_EQ(by_x.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(by_scale.to_vector<float>(), (std::vector<float>{1, 1}));
  const auto [in_x, in_scale] = td::function(
      [&](const td::Tensor& a, const td::Tensor& b) { return gradients(a, b, true); })(x, scale);
  EXPECT_EQ(in_x.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(in_scale.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Agreement, APersistentTapeRefusesTheGradientOfItsOwnGradient) {
  const td::Tensor x = td::constant({1.0, 2.0});
  const auto f = [](const td::Tensor& x, bool as_constant) {
    td::GradientTape tape({.persistent = true});
    tape.watch(x);
    const td::Tensor y = td::sum(x * x * x);
    td::Tensor g = tape.gradient(y, x);  // 3 x²
    if (as_constant) g = td::stop_gradient(g);
    return tape.gradient(td::sum(g * g * x), x);
  };
  const std::string want =
      "gradient: the target depends on a gradient of this tape, and a tape does not record its own";
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(error_of([&] { f(x, false); })), want);
  EXPECT_EQ(first_line(error_of(
                [&] { td::function([&](const td::Tensor& each) { return f(each, false); })(x); })),
            want);
  EXPECT_EQ(f(x, true).to_vector<float>(), (std::vector<float>{9, 144}));
  EXPECT_EQ(
      td::function([&](const td::Tensor& each) { return f(each, true); })(x).to_vector<float>(),
      (std::vector<float>{9, 144}));
}

TEST(Agreement, APersistentTapeHoldsNothingOfWhatIsDoneWithItsGradients) {
  const td::Tensor x = td::ones({1000});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::sum(td::exp(x));
  const td::Tensor g = tape.gradient(y, x);
  const td::Bytes before = tape.saved_bytes();
  const td::Tensor updated = td::exp(g) * g + td::square(g);
  EXPECT_EQ(tape.saved_bytes().count, before.count);
}

TEST(Agreement, JvpSaysWhatHasNoTangent) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  const td::Tensor x = td::constant({1.0, 2.0});
  EXPECT_EQ(first_line(error_of([&] {
              td::jvp([](const td::Tensor& n) { return td::cast(n, td::f32); },
                      td::constant({1, 2}), td::constant({1, 2}));
            })),
            "jvp: the arguments of f must be floats, got i32[2]");
  EXPECT_EQ(first_line(error_of([&] {
              td::jvp([](const td::Tensor& x) { return std::tuple{x * x, td::cast(x, td::i32)}; },
                      x, x);
            })),
            "jvp: the results of f must be floats, got i32[2]");
}

}  // namespace

// Functions with gradients of their own, and functions that gradients run again.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using Values = std::vector<double>;

td::Tensor drawn(const td::Shape& shape, int64_t key) {
  return td::random::normal(shape, {.dtype = td::f64, .key = td::random::Key(key)});
}

void expect_near(const td::Tensor& got, const td::Tensor& want, double tolerance = 1e-12) {
  const Values a = got.to_vector<double>(), b = want.to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << i;
}

// The same function eagerly and compiled.
template <class F, class Check>
void both(const F& f, const td::Tensor& x, const Check& check) {
  check(f(x));
  check(td::function([&f](const td::Tensor& each) { return f(each); })(x));
}

// Counts three times what it should, so that one sees whose gradient it is.
const auto tripled = td::custom_gradient([](const td::Tensor& x) {
  const td::Tensor y = td::exp(x);
  return std::pair{y, [y](const td::Tensor& dy) { return dy * y * 3.0; }};
});

TEST(CustomGradient, IsTheOneThatIsUsed) {
  const td::Tensor x = drawn({3}, 1);
  const auto f = [](const td::Tensor& x) {
    return td::grad([](const td::Tensor& x) { return td::sum(tripled(x) * 2.0); })(x);
  };
  both(f, x, [&](const td::Tensor& g) { expect_near(g, 6.0 * td::exp(x)); });
  EXPECT_TRUE(td::identical(tripled(x), td::exp(x)));
}

// A rule that fails the first time it is asked.
auto failing_once() {
  return td::custom_gradient([asked = std::make_shared<int>(0)](const td::Tensor& x) {
    return std::pair{td::exp(x), [x, asked](const td::Tensor& dy) {
                       if ((*asked)++ == 0) throw std::runtime_error("no gradient today");
                       return dy * td::exp(x);
                     }};
  });
}

TEST(CustomGradient, ThatFailsLeavesAPersistentTapeRecording) {
  const td::Tensor x = drawn({3}, 1);
  const auto f = failing_once();
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = f(x * 2.0);
  EXPECT_THROW(tape.gradient(y, x), std::runtime_error);
  const td::Tensor z = y * 5.0;
  expect_near(tape.gradient(z, x), 10.0 * td::exp(x * 2.0));
}

TEST(CustomGradient, ThatFailsLeavesNoTapeThatGivesZeros) {
  const td::Tensor x = drawn({3}, 1);
  const auto f = failing_once();
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor y = f(x) * 2.0;
  EXPECT_THROW(tape.gradient(y, x), std::runtime_error);
  EXPECT_TRUE(td::error_of([&] { tape.gradient(y, x); })
                  .starts_with("gradient: this tape was already used, and its saved values "
                               "are released\n"));
}

TEST(CustomGradient, MayReturnItsArgument) {
  const auto reversed = td::custom_gradient(
      [](const td::Tensor& x) { return std::pair{x, [](const td::Tensor& dy) { return -dy; }}; });
  const td::Tensor x = drawn({3}, 1);
  const auto f = [&](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) { return td::sum(reversed(x) * x); })(x);
  };
  both(f, x, [&](const td::Tensor& g) { expect_near(g, td::zeros({3}, td::f64)); });
}

TEST(CustomGradient, OfSeveralArgumentsInTwoParts) {
  const auto product = td::custom_gradient(
      [](const td::Tensor& a, const td::Tensor& b) { return std::pair{a * b, std::tuple{a, b}}; },
      [](const std::tuple<td::Tensor, td::Tensor>& saved, const td::Tensor& dy) {
        return std::tuple{dy * std::get<1>(saved) * 10.0, dy * std::get<0>(saved)};
      });
  const td::Tensor x = drawn({3}, 1);
  const auto f = [&](const td::Tensor& x) {
    const auto [da, db] = td::grad<0, 1>([&](const td::Tensor& a, const td::Tensor& b) {
      return td::sum(product(a, b));
    })(x, td::sin(x));
    return std::tuple{da, db};
  };
  both(f, x, [&](const auto& g) {
    expect_near(std::get<0>(g), 10.0 * td::sin(x));
    expect_near(std::get<1>(g), x);
  });
}

TEST(CustomGradient, WorksInLoops) {
  const td::Tensor x = drawn({2}, 1) * 0.1;
  const auto f = [&](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) {
      return td::sum(td::fori_loop(
          0, 3, [](const td::Tensor&, const td::Tensor& c) { return tripled(c) * 0.1; }, x));
    })(x);
  };
  td::Tensor c = x, product = td::ones({2}, td::f64);
  for (int i = 0; i < 3; ++i) {
    product = product * td::exp(c) * 0.3;
    c = td::exp(c) * 0.1;
  }
  both(f, x, [&](const td::Tensor& g) { expect_near(g, product); });
}

TEST(CustomGradient, HasAGradientItself) {
  const td::Tensor x = drawn({3}, 1);
  const auto f = [](const td::Tensor& x) {
    const auto first = td::grad([](const td::Tensor& x) { return td::sum(tripled(x)); });
    return td::grad([&](const td::Tensor& x) { return td::sum(first(x)); })(x);
  };
  // first = 3 e^x, where e^x is the function's own result, which has the gradient 3 e^x.
  both(f, x, [&](const td::Tensor& g) { expect_near(g, 9.0 * td::exp(x)); });
}

// What the gradient function holds was computed from the arguments, and is differentiated so.
TEST(CustomGradient, HasAGradientByWhatItSaved) {
  const auto swish = td::custom_gradient([](const td::Tensor& x) {
    const td::Tensor t = td::tanh(x);
    return std::pair{x * t, [x, t](const td::Tensor& dy) { return dy * (t + x * (1.0 - t * t)); }};
  });
  const auto second = [](const auto& f, const td::Tensor& x) {
    td::GradientTape outer;
    outer.watch(x);
    td::GradientTape inner;
    inner.watch(x);
    const td::Tensor y = f(x);
    const td::Tensor first = inner.gradient(td::sum(y * y), x);
    const auto [by_x, by_y] = outer.gradient(td::sum(first * first), std::tuple{x, y});
    return std::pair{by_x, by_y};
  };
  const td::Tensor x = drawn({5}, 1);
  const auto plain = [](const td::Tensor& each) { return each * td::tanh(each); };
  const auto [want_by_x, want_by_y] = second(plain, x);
  const auto [by_x, by_y] = second(swish, x);
  expect_near(by_x, want_by_x);
  expect_near(by_y, want_by_y);
  const auto compiled =
      td::function([&](const td::Tensor& each) { return second(swish, each).first; });
  expect_near(compiled(x), want_by_x);
}

TEST(CustomGradient, OfAVariableHasAGradientByWhatItSaved) {
  const td::Variable w(drawn({3}, 2));
  const auto scaled = td::custom_gradient([w](const td::Tensor& x) {
    const td::Tensor cube = w * w * w;
    return std::pair{x * cube, [x, w, cube](const td::Tensor& dy) {
                       const td::Tensor by_w = dy * x * w * w * 3.0;
                       return std::pair{dy * cube, td::VariableGradients{{w, by_w}}};
                     }};
  });
  const td::Tensor x = drawn({3}, 1);
  const auto second = [&](const td::Tensor& each) {
    td::GradientTape outer;
    td::GradientTape inner;
    inner.watch(each);
    const auto [by_x, by_w] = inner.gradient(td::sum(scaled(each)), std::tuple{each, w});
    return outer.gradient(td::sum(by_x) + td::sum(by_w.dense()), w).dense();
  };
  const td::Tensor v = w.value();
  both(second, x, [&](const td::Tensor& g) { expect_near(g, 3.0 * v * v + 6.0 * x * v); });
}

// A tape alone keeps what the gradient function holds, and nothing else.
TEST(CustomGradient, KeepsNothingOfTheFunctionForATapeAlone) {
  const auto f = td::custom_gradient([](const td::Tensor& x) {
    return std::pair{td::exp(td::tanh(x)), [](const td::Tensor& dy) { return dy; }};
  });
  const td::Tensor x = td::ones({1000});
  td::GradientTape tape;
  tape.watch(x);
  const td::Bytes before = td::memory::current();
  const td::Tensor y = f(x);
  EXPECT_EQ(td::memory::current() - before, td::Bytes(4032));  // y.
  EXPECT_EQ(tape.saved_bytes(), td::Bytes(0));
}

TEST(CustomGradient, OfVariablesIsNotLeftOut) {
  const td::Variable w(drawn({3}, 2), {.name = "w"});
  const auto silent = td::custom_gradient([&](const td::Tensor& x) {
    return std::pair{x * w, [](const td::Tensor& dy) { return dy; }};
  });
  const auto told = td::custom_gradient([&](const td::Tensor& x) {
    return std::pair{x * w, [x, w](const td::Tensor& dy) {
                       return std::pair{dy * w, td::VariableGradients{{w, dy * x * 2.0}}};
                     }};
  });
  const td::Tensor x = drawn({3}, 1);
  const auto with = [&](const auto& layer) {
    return [&](const td::Tensor& x) {
      td::GradientTape tape;
      const td::Tensor y = td::sum(layer(x));
      return tape.gradient(y, w).dense();
    };
  };
  both(with(told), x, [&](const td::Tensor& g) { expect_near(g, 2.0 * x); });
  const std::string text =
      "custom_gradient: the function reads trainable Variable \"w\", and its gradient function "
      "returns no gradient for it";
  for (const bool traced : {false, true}) {
    try {
      if (traced)
        td::function(with(silent))(x);
      else
        with(silent)(x);
      FAIL() << "no error";
    } catch (const td::UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(text)) << error.what();
    }
  }
}

// ---- recompute ----------------------------------------------------------------------------------

TEST(Recompute, GivesTheSameBits) {
  const td::Variable w(drawn({4, 4}, 2), {.name = "w"});
  const td::Tensor outside = drawn({4}, 3);
  const auto block = [&](const td::Tensor& h) {
    return td::tanh(td::matmul(td::exp(h), w)) * outside;
  };
  const td::Tensor x = drawn({2, 4}, 1) * 0.1;
  const auto gradients = [&](const auto& f) {
    return [&](const td::Tensor& x) {
      td::GradientTape tape;
      tape.watch(x);
      tape.watch(outside);
      const td::Tensor y = td::sum(td::square(f(f(x))));
      const auto [dx, dout, dw] = tape.gradient(y, std::tuple{x, outside, w});
      return std::tuple{dx, dout, dw.dense()};
    };
  };
  const auto want = gradients(block)(x);
  both(gradients(td::recompute(block)), x, [&](const auto& got) {
    expect_near(std::get<0>(got), std::get<0>(want));
    expect_near(std::get<1>(got), std::get<1>(want));
    expect_near(std::get<2>(got), std::get<2>(want));
  });
}

TEST(Recompute, KeepsNothingButArguments) {
  const auto chain = [](const td::Tensor& x) { return td::exp(td::sin(td::tanh(x))); };
  const td::Tensor x = td::ones({1000});
  const auto saved = [&](const auto& f) {
    td::GradientTape tape({.persistent = true});
    tape.watch(x);
    const td::Tensor y = td::sum(f(x));
    return tape.saved_bytes();
  };
  EXPECT_EQ(saved(td::recompute(chain)), td::Bytes(4032));  // x itself.
  EXPECT_EQ(saved(chain), td::Bytes(2 * 4032));             // What tanh and exp give.
}

TEST(Recompute, RepeatsRandomDraws) {
  const td::Tensor x = td::ones({50}, td::f64);
  const auto f = [](const td::Tensor& x) {
    return td::grad([](const td::Tensor& x) {
      const auto noisy = td::recompute([](const td::Tensor& x) {
        return td::exp(x * td::random::normal({50}, {.dtype = td::f64}));
      });
      const td::Tensor y = noisy(x);
      // The gradient of y by x is y * noise: with other noise it is not log(y) * y.
      return td::sum(y) + 0.0 * td::sum(td::stop_gradient(y));
    })(x);
  };
  const auto value = [](const td::Tensor& x) {
    return td::exp(x * td::random::normal({50}, {.dtype = td::f64}));
  };
  for (const bool traced : {false, true}) {
    td::random::seed(7);
    const td::Tensor y = value(x);
    td::random::seed(7);
    const td::Tensor g = traced ? td::function([&](const td::Tensor& x) { return f(x); })(x) : f(x);
    expect_near(g, y * td::log(y));
  }
}

TEST(Recompute, OfRecomputeInALoop) {
  const td::Tensor x = drawn({2}, 1);
  const auto inner = td::recompute([](const td::Tensor& c) { return td::sin(c) + c * c * 0.1; });
  const auto outer = td::recompute([&](const td::Tensor& c) { return inner(inner(c)); });
  const auto plain = [](const td::Tensor& c) { return td::sin(c) + c * c * 0.1; };
  const auto looped = [](const auto& body) {
    return [&](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::sum(td::fori_loop(
            0, 3, [&](const td::Tensor&, const td::Tensor& c) { return body(c); }, x));
      })(x);
    };
  };
  const td::Tensor want = looped([&](const td::Tensor& c) { return plain(plain(c)); })(x);
  both(looped(outer), x, [&](const td::Tensor& g) { expect_near(g, want); });
}

TEST(Recompute, ThePlanSaysWhatEachMarkSaves) {
  const td::MachineCode machine;
  const td::Tensor x = td::random::normal({64, 64}), w = td::random::normal({64, 64});
  const auto deep = [&](const td::Tensor& h) {
    return td::matmul(td::tanh(td::matmul(td::tanh(td::matmul(h, w)), w)), w);
  };
  const auto shallow = [](const td::Tensor& h) { return h * 2.0F; };
  const auto plan_of = [&](const auto& block) {
    return td::function([&](const td::Tensor& x) {
             return td::grad([&](const td::Tensor& x) {
               td::Tensor h = td::matmul(x, w);
               for (int i = 0; i < 8; ++i) h = block(h);
               return td::sum(h);
             })(x);
           })
        .plan(x);
  };
  const unsigned line = __LINE__ + 1;
  const td::Plan marked = plan_of(td::recompute(deep)), plain = plan_of(deep);
  const std::vector<td::PlanRecompute> marks = marked.recomputes();
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0].line, td::cat("custom_gradient_test.cc:", line));
  EXPECT_EQ(marks[0].times, 8);
  EXPECT_EQ(marks[0].peak, marked.peak());
  EXPECT_EQ(marks[0].without, plain.peak());
  EXPECT_GT(marks[0].saves().count, 0);
  EXPECT_NE(marked.explain().find(td::cat(", 8 times, saves ", marks[0].saves(),
                                          ": the peak without it is ", plain.peak())),
            std::string::npos)
      << marked.explain();
  EXPECT_TRUE(plain.recomputes().empty());

  const td::Plan useless = plan_of(td::recompute(shallow));
  ASSERT_EQ(useless.recomputes().size(), 1U);
  EXPECT_LE(useless.recomputes()[0].saves().count, 0);
  EXPECT_NE(useless.explain().find(td::cat(" saves nothing: the peak without it is ",
                                           useless.recomputes()[0].without)),
            std::string::npos)
      << useless.explain();
}

TEST(GradientInAFunction, WhatItKeepsIsOfTheClassSaved) {
  const td::MachineCode machine;
  const td::Tensor w = td::random::normal({64, 64});
  auto step = td::function([&](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) {
      td::Tensor h = x;
      for (int i = 0; i < 4; ++i) h = td::tanh(td::matmul(h, w));
      return td::sum(h);
    })(x);
  });
  const td::Plan plan = step.plan(td::spec({64, 64}));
  constexpr int64_t square = 64 * 64 * 4;
  EXPECT_GE(plan.of(td::ByteClass::saved).count, 3 * square);
  EXPECT_LE(plan.of(td::ByteClass::saved).count, 4 * square);
  int64_t said = 0;
  for (const td::PlanTensor& tensor : plan.at_peak())
    if (tensor.reason.find("saved for the gradient of tanh (custom_gradient_test.cc:") == 0) ++said;
  EXPECT_GE(said, 3) << plan;
  // Without a gradient nothing is.
  auto forward = td::function([&](const td::Tensor& x) { return td::tanh(td::matmul(x, w)); });
  EXPECT_EQ(forward.plan(td::spec({64, 64})).of(td::ByteClass::saved).count, 0);
}

TEST(ClipByNorm, ShortensWhatIsTooLong) {
  const td::Tensor x = td::constant({3.0, 4.0});
  EXPECT_EQ(td::clip_by_norm(x, 10.0).to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(td::clip_by_norm(x, 2.5).to_vector<float>(), (std::vector<float>{1.5, 2}));
  const std::vector<td::Gradient> all = {td::Gradient(td::constant({3.0})),
                                         td::Gradient(td::constant({4.0}))};
  EXPECT_EQ(td::global_norm(all).item<float>(), 5.0F);
  const std::vector<td::Gradient> clipped = td::clip_by_global_norm(all, 1.0);
  EXPECT_FLOAT_EQ(clipped[0].dense().item<float>(), 0.6F);
  EXPECT_FLOAT_EQ(clipped[1].dense().item<float>(), 0.8F);
}

// What the gradient function captured is differentiated as the function computed it: cos(x) here.
// The result itself has the gradient that is written for it: sin(x).
TEST(CustomGradient, SecondDerivativesGoThroughWhatWasComputedOfTheResult) {
  const auto with_result = td::custom_gradient([](const td::Tensor& x) {
    const td::Tensor y = td::sin(x);
    return std::pair{y, [y](const td::Tensor& dy) { return dy * y; }};
  });
  const auto of_result = td::custom_gradient([](const td::Tensor& x) {
    const td::Tensor y = td::sin(x), slope = y * 1.0;
    return std::pair{y, [slope](const td::Tensor& dy) { return dy * slope; }};
  });
  const td::Tensor x = td::full({}, 0.5, td::f64);
  using Of = std::function<td::Tensor(const td::Tensor&)>;
  const auto expect = [&](const Of& f, double want) {
    const auto second = [&](const td::Tensor& at) { return td::Tensor(td::grad(td::grad(f))(at)); };
    EXPECT_NEAR(second(x).item<double>(), want, 1e-12);
    EXPECT_NEAR(td::function(second)(x).item<double>(), want, 1e-12);
  };
  expect([&](const td::Tensor& at) { return with_result(at); }, std::sin(0.5));
  expect([&](const td::Tensor& at) { return of_result(at); }, std::cos(0.5));
}

// The gradient is that of the result, not of a tensor that somebody captured and gives back.
TEST(CustomGradient, OfACapturedTensorLeavesTheTensorAlone) {
  const td::Tensor kept = td::full({}, 3.0, td::f64), x = td::full({}, 2.0, td::f64);
  const auto by_x = [&](const auto& f) {
    td::GradientTape tape;
    tape.watch(x);
    const td::Tensor y = f(x) * 0.0;
    return tape.gradient(y + kept * kept, x).template item<double>();
  };
  EXPECT_EQ(by_x(td::custom_gradient([kept](const td::Tensor&) {
              return std::pair{kept, [](const td::Tensor& dy) { return dy; }};
            })),
            0);
  EXPECT_EQ(by_x(td::recompute([kept](const td::Tensor&) { return kept; })), 0);
  const auto scaled = td::custom_gradient([kept](const td::Tensor&) {
    return std::pair{kept, [kept](const td::Tensor& dy) { return dy * kept; }};
  });
  const auto twice = td::function([kept, scaled](const td::Tensor& each) { return scaled(each); });
  EXPECT_EQ(by_x(twice), 0);
  // A function under a tape that gives it back does not make it watched.
  const auto given_back = td::function([kept](const td::Tensor& each) {
    return std::pair<td::Tensor, td::Tensor>(kept, each * 2.0);
  });
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor doubled = given_back(x).second;
  const auto reads = td::custom_gradient([kept](const td::Tensor& each) {
    return std::pair{each * kept, [kept](const td::Tensor& dy) { return dy * kept; }};
  });
  EXPECT_EQ(tape.gradient(reads(doubled), x).item<double>(), 6);
  // The second of two calls: 2 * 3 * 3, from the result of the first on.
  const auto chained = [&](const td::Tensor& at) { return td::square(scaled(scaled(at))); };
  EXPECT_EQ(td::grad(chained)(x).item<double>(), 54);
  EXPECT_EQ(td::grad(td::grad(chained))(x).item<double>(), 2 * 81);
}

}  // namespace

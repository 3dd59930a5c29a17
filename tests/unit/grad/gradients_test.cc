// Gradients against closed forms and central differences, in eager code and in functions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tests/unit/slopes.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using td::differences;
using td::Values;
using Scalar = td::ScalarFunction;
constexpr auto drawn = td::drawn_f64;

void expect_near(const td::Tensor& got, const Values& want, const std::string& what) {
  td::expect_slopes(got, want, what, 1e-6);
}

// The gradient is right in eager code and in a function, and both are the same bits where sums have
// one order: a function adds the trips of a loop before what comes from elsewhere.
void expect_gradient(const Scalar& f, const td::Tensor& x, bool same_bits = true) {
  const Values want = differences(f, x);
  const td::Tensor eager = td::grad(f)(x);
  expect_near(eager, want, "eager");
  auto compiled = td::function([&f](const td::Tensor& each) { return td::grad(f)(each); });
  const td::Tensor from_function = compiled(x);
  expect_near(from_function, want, "function");
  if (same_bits) {
    EXPECT_TRUE(td::identical(eager, from_function)) << eager << from_function;
  }
}

TEST(Gradient, OfAChainOfOps) {
  expect_gradient([](const td::Tensor& x) { return td::sum(td::tanh(x * x) / (1.0 + td::exp(x))); },
                  drawn({3, 4}, 1));
}

TEST(Gradient, OfWhatIsBroadcastIsSummed) {
  const td::Tensor row = drawn({4}, 2);
  expect_gradient([&](const td::Tensor& x) { return td::sum(td::sin(x) * row * 2.0); },
                  drawn({3, 1}, 3));
}

TEST(Gradient, OfWhatMeetsADyingTensorOfAnotherDtype) {
  // Converted in its own bytes it would be gone before the op reads it.
  const td::Tensor x = td::constant({0.5f, -1.5f, 2.0f});
  const auto times = [](const td::Tensor& x) { return td::sum(x * td::arange(3)); };
  EXPECT_TRUE(td::identical(td::grad(times)(x), td::constant({0.0f, 1.0f, 2.0f})));
  const auto halves = [](const td::Tensor& x) {
    return td::sum(td::cast(td::cast(x, td::f16) * td::ones({3}, td::bf16), td::f32));
  };
  EXPECT_TRUE(td::identical(td::grad(halves)(x), td::ones({3})));
  const auto wide = [](const td::Tensor& x) { return td::sum(td::ones({3}, td::i64) - x); };
  EXPECT_TRUE(td::identical(td::grad(wide)(td::cast(x, td::f64)), -td::ones({3}, td::f64)));
}

TEST(Gradient, OfMatmulSoftmaxAndReductions) {
  const td::Tensor w = drawn({4, 5}, 4);
  expect_gradient(
      [&](const td::Tensor& x) {
        const td::Tensor y = td::softmax(td::matmul(x, w));
        return td::sum(td::max(y, 1) * td::mean(td::square(x), 1)) + td::logsumexp(x);
      },
      drawn({3, 4}, 5));
}

TEST(Gradient, OfViewsPiecesAndIndices) {
  const td::Tensor at = td::constant({2, 0, 2});
  expect_gradient(
      [&](const td::Tensor& x) {
        const td::Tensor turned =
            td::reshape(td::transpose(x), {2, 6})[{td::all, td::Slice{.begin = 1, .step = 2}}];
        const td::Tensor picked = td::gather(x, at);
        return td::sum(td::square(td::concat({turned, turned * 3.0}, 1))) +
               td::sum(picked * picked * picked);
      },
      drawn({3, 4}, 6));
}

TEST(Gradient, OfTheSameTensorGivenTwice) {
  const td::Tensor x = drawn({3}, 7);
  const auto f = [](const td::Tensor& a, const td::Tensor& b) { return td::sum(a * a * b); };
  const auto [by_a, by_b] = td::grad<0, 1>(f)(x, x);
  EXPECT_TRUE(td::identical(by_b, td::square(x)));
  expect_near(by_a, (2.0 * x * x).to_vector<double>(), "by a");
}

TEST(Gradient, OfPlainNumbers) {
  EXPECT_EQ(td::grad([](const td::Tensor& x) { return x * x * x; })(2.0).item<float>(), 12.0F);
}

TEST(Gradient, ComesWithTheValueAndWhatIsAuxiliary) {
  const td::Tensor w = drawn({3}, 8), x = drawn({3}, 9);
  const auto loss = [](const td::Tensor& w, const td::Tensor& x) {
    return std::pair{td::sum(td::tanh(w * x)), w * x};
  };
  const auto [result, dw] = td::value_and_grad(loss)(w, x);
  EXPECT_TRUE(td::identical(result.second, w * x));
  expect_near(dw, ((1.0 - td::square(td::tanh(w * x))) * x).to_vector<double>(), "dw");
}

struct Pair {
  td::Tensor a, b;
};

TEST(Gradient, OfStructures) {
  const Pair point{drawn({2}, 1), drawn({2}, 2)};
  const auto f = [](const Pair& p) { return td::sum(p.a * p.a * p.b); };
  const Pair g = td::grad(f)(point);
  expect_near(g.a, (2.0 * point.a * point.b).to_vector<double>(), "a");
  EXPECT_TRUE(td::identical(g.b, td::square(point.a)));
}

// ---- higher orders ------------------------------------------------------------------------------

TEST(Gradient, OfGradients) {
  const auto f = [](const td::Tensor& x) { return td::sin(x) * x * x; };
  const auto third = td::grad(td::grad(td::grad(f)));
  const double x = 0.7;
  // (x^2 sin x)''' = 6 cos x - 6 x sin x - x^2 cos x
  const double want = 6 * std::cos(x) - 6 * x * std::sin(x) - x * x * std::cos(x);
  const td::Tensor at = td::constant(std::vector<double>{x}, td::Shape{});
  EXPECT_NEAR(third(at).item<double>(), want, 1e-12);
  auto compiled = td::function([&](const td::Tensor& each) { return third(each); });
  EXPECT_NEAR(compiled(at).item<double>(), want, 1e-12);
}

TEST(Gradient, JvpAndVjpAgree) {
  const td::Tensor w = drawn({4, 3}, 1), x = drawn({2, 4}, 2), dx = drawn({2, 4}, 3),
                   dy = drawn({2, 3}, 4);
  const auto f = [&](const td::Tensor& x) { return td::tanh(td::matmul(td::exp(x), w)); };
  const auto both = [&](const td::Tensor& x, const td::Tensor& dx, const td::Tensor& dy) {
    const auto [y, change] = td::jvp(f, x, dx);
    const auto [again, pullback] = td::vjp(f, x);
    return std::tuple{td::sum(change * dy), td::sum(pullback(dy) * dx), y, again};
  };
  const auto check = [](const auto& result) {
    const auto& [forward, backward, y, again] = result;
    EXPECT_NEAR(forward.template item<double>(), backward.template item<double>(), 1e-12);
    EXPECT_TRUE(td::identical(y, again));
  };
  check(both(x, dx, dy));
  check(td::function(both)(x, dx, dy));
}

TEST(Gradient, JacobianHasARowForEachResult) {
  const td::Tensor w = drawn({3, 2}, 1), x = drawn({3}, 2);
  const auto f = [&](const td::Tensor& x) { return td::matmul(td::square(x), w); };
  const td::Tensor want = td::transpose(w) * 2.0 * x;
  const td::Tensor eager = td::jacobian(f)(x);
  EXPECT_EQ(eager.shape(), (td::Shape{2, 3}));
  expect_near(eager, want.to_vector<double>(), "eager");
  auto compiled = td::function([&](const td::Tensor& each) { return td::jacobian(f)(each); });
  expect_near(compiled(x), want.to_vector<double>(), "function");
}

TEST(Gradient, JacobiansBySeveralSourcesComeFromOneTape) {
  const td::Tensor a = drawn({3}, 1), b = drawn({3}, 2), c = drawn({2}, 3);
  td::GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  tape.watch(c);
  const td::Tensor y = a * td::square(b);
  const std::vector<td::Tensor> by = tape.jacobian(y, {a, b, c}, td::Unconnected::none);
  expect_near(by[0], (td::eye(3, td::f64) * td::square(b)).to_vector<double>(), "by a");
  expect_near(by[1], (td::eye(3, td::f64) * (2.0 * a * b)).to_vector<double>(), "by b");
  EXPECT_FALSE(by[2].has_value());
  EXPECT_EQ(tape.saved_bytes(), td::Bytes(0));
}

TEST(Gradient, HvpIsTheHessianTimesAVector) {
  const td::Tensor x = drawn({4}, 1), v = drawn({4}, 2);
  const auto f = [](const td::Tensor& x) { return td::sum(x * x * x) * td::sum(x); };
  // The gradient is 3 x^2 s + c with s = sum x, c = sum x^3.
  const td::Tensor s = td::sum(x), sv = td::sum(v), cv = td::sum(3.0 * x * x * v);
  const Values want = (6.0 * x * v * s + 3.0 * x * x * sv + cv).to_vector<double>();
  expect_near(td::hvp(f, x, v), want, "eager");
  auto compiled =
      td::function([&](const td::Tensor& x, const td::Tensor& v) { return td::hvp(f, x, v); });
  expect_near(compiled(x, v), want, "function");
}

// ---- tapes --------------------------------------------------------------------------------------

TEST(GradientTape, WatchesVariablesByItself) {
  const td::Variable w(drawn({3}, 1), {.name = "w"});
  const td::Variable fixed(drawn({3}, 2), {.name = "fixed", .trainable = false});
  td::GradientTape tape;
  const td::Tensor loss = td::sum(td::square(w) * fixed);
  ASSERT_EQ(tape.watched_variables().size(), 1U);
  EXPECT_TRUE(tape.watched_variables()[0].same_as(w));
  const td::Gradient g = tape.gradient(loss, w);
  EXPECT_FALSE(g.is_rows());
  expect_near(g.dense(), (2.0 * w * fixed).to_vector<double>(), "w");
}

TEST(GradientTape, IsAskedOnceUnlessPersistent) {
  const td::Tensor x = drawn({3}, 1);
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor y = td::sum(x * x);
  tape.gradient(y, x);
  int line = 0;
  try {
    line = __LINE__ + 1;
    tape.gradient(y, x);
    FAIL() << "a used tape gave a gradient";
  } catch (const td::UserError& error) {
    EXPECT_EQ(error.what(),
              "gradient: this tape was already used, and its saved values are released\n"
              "  at gradients_test.cc:" +
                  std::to_string(line) +
                  "\n  ask for all sources in one call, or make the tape {.persistent = true}");
  }
}

TEST(GradientTape, APersistentOneSaysWhatItHolds) {
  const td::Tensor x = td::ones({1000});
  const td::Bytes before = td::memory::current();
  {
    td::GradientTape tape({.persistent = true});
    tape.watch(x);
    td::Tensor y = td::sum(td::exp(x));
    EXPECT_EQ(tape.saved_bytes(), td::Bytes(4032));  // exp's result, which nobody else holds.
    EXPECT_TRUE(td::identical(tape.gradient(y, x), tape.gradient(y, x)));
    tape.release();
    EXPECT_EQ(tape.saved_bytes(), td::Bytes(0));
    y = {};
    EXPECT_EQ(td::memory::current(), before);
  }
  EXPECT_EQ(td::memory::current(), before);
}

TEST(GradientTape, KeepsOnlyWhatRulesRead) {
  const td::Tensor x = td::ones({1000});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::sum(td::reshape(x + 1.0, {10, 100}) - 3.0);
  EXPECT_EQ(tape.saved_bytes(), td::Bytes(0));
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), std::vector<float>(1000, 1));
}

TEST(GradientTape, HistoryIsNotInTensors) {
  const td::Variable w(td::ones({16}));
  td::Tensor total = td::zeros({});
  const td::Bytes before = td::memory::current();
  for (int step = 0; step < 100; ++step) {
    td::GradientTape tape;
    const td::Tensor loss = td::sum(w * w);
    total += loss;
    tape.gradient(loss, w);
  }
  EXPECT_EQ(td::memory::current(), before);
}

TEST(GradientTape, StopsRecordingWhileAsked) {
  const td::Tensor x = drawn({3}, 1);
  td::GradientTape tape;
  tape.watch(x);
  td::Tensor factor;
  {
    const auto pause = tape.stop_recording();
    factor = td::exp(x);
  }
  const td::Tensor y = td::sum(x * factor);
  EXPECT_TRUE(td::identical(tape.gradient(y, x), factor));
}

TEST(GradientTape, UnconnectedSourcesAreZerosOrNothingOrAnError) {
  const td::Tensor x = drawn({2}, 1), z = drawn({2}, 2);
  td::GradientTape tape({.persistent = true});
  tape.watch(std::tuple{x, z});
  const td::Tensor y = td::sum(x * x);
  EXPECT_EQ(tape.gradient(y, z).to_vector<double>(), (Values{0, 0}));
  EXPECT_FALSE(tape.gradient(y, z, {.unconnected = td::Unconnected::none}).has_value());
  try {
    tape.gradient(y, z, {.unconnected = td::Unconnected::error});
    FAIL() << "no error";
  } catch (const td::UserError& error) {
    EXPECT_NE(
        std::string(error.what()).find("gradient: the target does not depend on source 0, f64[2]"),
        std::string::npos);
  }
}

TEST(GradientTape, NestedOnesGiveHigherOrders) {
  const td::Tensor x = td::constant({3.0});
  td::GradientTape outer;
  outer.watch(x);
  td::Tensor first;
  {
    td::GradientTape inner;
    inner.watch(x);
    const td::Tensor y = td::sum(x * x * x);
    first = inner.gradient(y, x);
  }
  EXPECT_EQ(first.to_vector<float>(), std::vector<float>{27});
  EXPECT_EQ(outer.gradient(first, x).to_vector<float>(), std::vector<float>{18});
}

TEST(GradientTape, TakesOutputGradients) {
  const td::Tensor x = drawn({3}, 1), weights = drawn({3}, 2);
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor y = td::sin(x);
  const td::Tensor g = tape.gradient(y, x, {.output_gradients = weights});
  EXPECT_TRUE(td::identical(g, weights * td::cos(x)));
}

TEST(GradientTape, GivesRowsForWhatIsLookedUp) {
  const td::Variable table(td::zeros({1000, 4}), {.name = "table"});
  const auto step = [&](const td::Tensor& ids) {
    td::GradientTape tape;
    const td::Tensor picked = td::sum(td::gather(table, ids) * td::constant({1.0, 2.0, 3.0, 4.0}));
    const td::Gradient g = tape.gradient(picked, table);
    EXPECT_TRUE(g.is_rows());
    return std::tuple{g.rows().indices, g.rows().rows, g.dense()};
  };
  const auto check = [](const auto& given) {
    const auto& [indices, rows, dense] = given;
    EXPECT_EQ(indices.template to_vector<int64_t>(), (std::vector<int64_t>{3, 7, 3}));
    EXPECT_EQ(rows.shape(), (td::Shape{3, 4}));
    EXPECT_EQ((dense[{3, td::all}].template to_vector<float>()), (std::vector<float>{2, 4, 6, 8}));
    EXPECT_EQ(td::sum(dense).template item<float>(), 30.0F);
  };
  const td::Tensor ids = td::constant({3, 7, 3});
  check(step(ids));
  check(td::function(step)(ids));
}

struct Layer {
  td::Variable kernel;
  std::string name = {};  // Holds no Variable: it has no part in the gradients.
  std::optional<td::Variable> bias = {};
  int units = 0;
};
struct Network {
  std::vector<Layer> layers;
  std::map<std::string, td::Variable> scales;
  td::Tensor shift;
};
class Hidden {
 public:
  explicit Hidden(double at) : w_(td::Tensor(at)) {}
  td::Tensor operator()(const td::Tensor& x) const { return w_ * x; }
  TIDEMARK_FIELDS(w_)

 private:
  td::Variable w_;
};

TEST(GradientTape, SourcesMayBeStructsMapsAndOptionalsOfVariables) {
  const Network net{
      {{td::Variable(2.0), "a", td::Variable(3.0), 1}, {td::Variable(5.0), "b", std::nullopt, 1}},
      {{"in", td::Variable(7.0)}, {"out", td::Variable(11.0)}},
      td::constant(1.0, td::f32)};
  const auto gradients = [&] {
    td::GradientTape tape;
    tape.watch(net.shift);
    const Layer &a = net.layers[0], &b = net.layers[1];
    const td::Tensor y = (a.kernel * net.scales.at("in") + *a.bias) * b.kernel;
    return tape.gradient(y * net.scales.at("out") + 4.0 * net.shift, net);
  }();
  const auto& [layers, scales, shift] = gradients;
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(layers[0])>,
                               std::tuple<td::Gradient, std::optional<td::Gradient>>>);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(std::get<0>(layers[0]).dense().item<double>(), 7.0 * 5 * 11);
  EXPECT_EQ(std::get<1>(layers[0])->dense().item<double>(), 5.0 * 11);
  EXPECT_EQ(std::get<0>(layers[1]).dense().item<double>(), 17.0 * 11);
  EXPECT_FALSE(std::get<1>(layers[1]).has_value());
  EXPECT_EQ(scales.at("in").dense().item<double>(), 2.0 * 5 * 11);
  EXPECT_EQ(scales.at("out").dense().item<double>(), 17.0 * 5);
  EXPECT_EQ(shift.item<float>(), 4.0f);
}

// What a model is made of hides its types, or lies behind a pointer.
struct Assembled {
  td::nn::Sequential stack;
  std::shared_ptr<const Layer> shared, absent;
};

TEST(GradientTape, SourcesMayHideTheirVariables) {
  const Assembled model{td::nn::Sequential{td::nn::Dense(1, {.use_bias = false}), td::nn::Dense(1)},
                        std::make_shared<const Layer>(Layer{td::Variable(2.0F)}), nullptr};
  const td::Tensor x = td::ones({1, 1});
  model.stack(x);  // Shapes it.
  td::GradientTape tape;
  const td::Tensor y = td::sum(model.stack(x)) * model.shared->kernel;
  const auto [stack, shared, absent] = tape.gradient(y, model);
  ASSERT_EQ(stack.size(), 3U);
  EXPECT_EQ(stack[2].dense().item<float>(), 2.0F);
  EXPECT_EQ(std::get<0>(*shared).dense().item<float>(), td::sum(model.stack(x)).item<float>());
  EXPECT_FALSE(absent.has_value());
}

TEST(Gradient, ByVariablesOfAModelComesInItsStructure) {
  const Hidden model(3.0);
  const auto loss = [&](const td::Tensor& x) { return td::sum(td::square(model(x))); };
  const auto [value, gradients] = td::value_and_grad(loss, model)(td::constant({1.0, 2.0}));
  EXPECT_EQ(value.item<double>(), 45.0);
  EXPECT_EQ(std::get<0>(gradients).dense().item<double>(), 30.0);

  const td::Variable w(td::Tensor(2.0));
  const auto cubed = [&](const td::Tensor& x) { return w * w * w * x; };
  EXPECT_EQ(td::value_and_grad(cubed, w)(1.0).second.dense().item<double>(), 12.0);
  EXPECT_EQ(td::value_and_grad(cubed, {w, w})(1.0).second[1].dense().item<double>(), 12.0);
  const std::map<std::string, td::Variable> named{{"w", w}};
  EXPECT_EQ(td::value_and_grad(cubed, named)(1.0).second.at("w").dense().item<double>(), 12.0);
}

TEST(GradientTape, ReadsAVariableAnewAfterAnAssignment) {
  const td::Variable w(td::constant({2.0}));
  const auto f = [&] {
    td::GradientTape tape;
    const td::Tensor before = td::sum(w * w);
    w.assign_add(1.0);
    const td::Tensor after = td::sum(w * w * w);
    const td::Tensor g = tape.gradient(before + after, w).dense();
    w.assign_sub(1.0);
    return g;
  };
  EXPECT_EQ(f().to_vector<float>(), std::vector<float>{4 + 27});
  EXPECT_EQ(td::function(f)().to_vector<float>(), std::vector<float>{4 + 27});
}

TEST(GradientTape, StopGradientIsAConstant) {
  expect_gradient(
      [](const td::Tensor& x) {
        return td::sum(x * td::stop_gradient(x)) -
               td::sum(td::stop_gradient(x) * td::stop_gradient(x)) * 0.0;
      },
      td::zeros({2}, td::f64));
  const td::Tensor x = drawn({3}, 1);
  EXPECT_TRUE(td::identical(
      td::grad([](const td::Tensor& x) { return td::sum(x * td::stop_gradient(x)); })(x), x));
}

// ---- control flow -------------------------------------------------------------------------------

TEST(Gradient, OfCondIsThatOfTheBranchTaken) {
  for (const double sign : {1.0, -1.0}) {
    const td::Tensor x = td::abs(drawn({3}, 1)) * sign;
    expect_gradient(
        [](const td::Tensor& x) {
          return td::cond(
              td::sum(x) > 0, [&] { return td::sum(td::exp(x) * x); },
              [&] { return td::sum(td::sin(x)); });
        },
        x);
  }
}

TEST(Gradient, OfMapFn) {
  const td::Tensor w = drawn({4}, 1);
  expect_gradient(
      [&](const td::Tensor& x) {
        const td::Tensor y =
            td::map_fn([&](const td::Tensor& row) { return td::sum(td::tanh(row * w)); }, x);
        return td::sum(y * y);
      },
      drawn({3, 4}, 2));
  // What the body captures has a gradient too.
  const td::Tensor rows = drawn({3, 4}, 3);
  expect_gradient(
      [&](const td::Tensor& w) {
        return td::sum(
            td::map_fn([&](const td::Tensor& row) { return td::sum(td::tanh(row * w)); }, rows));
      },
      w);
}

TEST(Gradient, OfForiLoop) {
  const td::Tensor a = drawn({3, 3}, 1) * 0.3;
  const auto power = [](const td::Tensor& x, const td::Tensor& a) {
    return td::sum(td::fori_loop(
        0, 5,
        [&](const td::Tensor& i, const td::Tensor& c) {
          return td::tanh(td::matmul(c, a)) + td::cast(i, td::f64) * c;
        },
        x));
  };
  const td::Tensor x = drawn({2, 3}, 2);
  expect_gradient([&](const td::Tensor& each) { return power(each, a); }, x);
  expect_gradient([&](const td::Tensor& each) { return power(x, each); }, a);
}

TEST(Gradient, OfScanInBothDirections) {
  for (const bool reverse : {false, true}) {
    const td::Tensor xs = drawn({4, 3}, 1), w = drawn({3}, 2);
    const auto f = [&](const td::Tensor& xs, const td::Tensor& w) {
      const auto [last, ys] = td::scan(
          [&](const td::Tensor& c, const td::Tensor& x) {
            const td::Tensor next = td::sin(c * w) + x * x;
            return std::pair{next, next * c};
          },
          td::zeros({3}, td::f64), xs, {.reverse = reverse});
      return td::sum(last) + td::sum(ys * ys);
    };
    expect_gradient([&](const td::Tensor& each) { return f(each, w); }, xs);
    expect_gradient([&](const td::Tensor& each) { return f(xs, each); }, w);
  }
}

TEST(Gradient, OfNestedLoops) {
  const td::Tensor w = drawn({2}, 1);
  expect_gradient(
      [&](const td::Tensor& x) {
        return td::sum(td::fori_loop(
            0, 3,
            [&](const td::Tensor&, const td::Tensor& outer) {
              return td::fori_loop(
                  0, 2,
                  [&](const td::Tensor&, const td::Tensor& inner) {
                    return td::sin(inner * w) + outer * 0.5;
                  },
                  outer);
            },
            x));
      },
      drawn({2}, 2), false);
}

TEST(Gradient, OfGradientsOfLoops) {
  const td::Tensor x = drawn({2}, 1);
  const auto f = [](const td::Tensor& x) {
    return td::sum(td::fori_loop(
        0, 4, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * 1.1 + c * c * 0.1; },
        x));
  };
  expect_gradient([&](const td::Tensor& x) { return td::sum(td::square(td::grad(f)(x))); }, x);
}

TEST(Gradient, OfTensorArrays) {
  expect_gradient(
      [](const td::Tensor& x) {
        td::TensorArray rows(td::f64, {.size = 4, .element_shape = td::Shape{2}});
        rows = td::fori_loop(
            0, 4,
            [&](const td::Tensor& i, td::TensorArray rows) {
              return std::move(rows).write(i, td::sin(x) * td::cast(i, td::f64));
            },
            rows);
        return td::sum(td::square(rows.stack()));
      },
      drawn({2}, 1));
}

// ---- functions under a tape ---------------------------------------------------------------------

TEST(GradientTape, ACallOfAFunctionIsOneEntry) {
  const td::Variable w(drawn({4, 5}, 1), {.name = "w"});
  const td::Tensor captured = drawn({5}, 2);
  auto layer =
      td::function([&](const td::Tensor& x) { return td::tanh(td::matmul(x, w)) * captured; });
  const td::Tensor x = drawn({3, 4}, 3);
  const auto gradients = [&](const auto& f) {
    td::GradientTape tape;
    tape.watch(std::tuple{x, captured});
    const td::Tensor y = td::sum(td::square(f(x)));
    return tape.gradient(y, std::tuple{x, captured, w});
  };
  const auto plain = [&](const td::Tensor& x) { return td::tanh(td::matmul(x, w)) * captured; };
  const auto [dx, dc, dw] = gradients(layer);
  const auto [want_dx, want_dc, want_dw] = gradients(plain);
  EXPECT_TRUE(td::identical(dx, want_dx));
  EXPECT_TRUE(td::identical(dc, want_dc));
  EXPECT_TRUE(td::identical(dw.dense(), want_dw.dense()));
}

TEST(GradientTape, ACallSavesWhatItsGradientReads) {
  auto chain = td::function([](const td::Tensor& x) { return td::exp(td::sin(x) + 1.0) * 2.0; });
  const td::Tensor x = td::ones({1000});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::sum(chain(x));
  // All of it is computed by element from x: nothing but x is held.
  EXPECT_EQ(tape.saved_bytes(), td::Bytes(4032));
  EXPECT_NEAR(tape.gradient(y, x).to_vector<float>()[0],
              2 * std::exp(std::sin(1.0) + 1) * std::cos(1.0), 1e-5);
}

TEST(GradientTape, NestedOnesSeeThroughFunctions) {
  auto cube = td::function([](const td::Tensor& x) { return td::sum(td::sin(x) * x * x); });
  const td::Tensor x = drawn({3}, 1);
  const auto f = [&](const td::Tensor& x) { return cube(x); };
  const auto plain = [&](const td::Tensor& x) { return td::sum(td::sin(x) * x * x); };
  const auto twice = [](const auto& f) {
    return td::grad([f](const td::Tensor& x) { return td::sum(td::grad(f)(x)); });
  };
  expect_near(twice(f)(x), twice(plain)(x).to_vector<double>(), "second");
}

TEST(GradientTape, FunctionsWithLoopsAndStateUnderATape) {
  const td::Variable count(td::zeros({}), {.name = "count", .trainable = false});
  auto f = td::function([&](const td::Tensor& x) {
    count.assign_add(1.0);
    return td::fori_loop(
        0, 4, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * c; }, x);
  });
  const auto plain = [](const td::Tensor& x) {
    return td::fori_loop(
        0, 4, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * c; }, x);
  };
  const td::Tensor x = drawn({3}, 1);
  const td::Tensor got = td::grad([&](const td::Tensor& x) { return td::sum(f(x)); })(x);
  EXPECT_TRUE(
      td::identical(got, td::grad([&](const td::Tensor& x) { return td::sum(plain(x)); })(x)));
  EXPECT_EQ(count.value().item<float>(), 1.0F);
}

// ---- what is kept -------------------------------------------------------------------------------

TEST(Gradient, OfAWholeStepNeverHoldsAllGradients) {
  constexpr int64_t layers = 6, n = 256;
  std::vector<td::Variable> weights;
  for (int64_t i = 0; i < layers; ++i)
    weights.emplace_back(td::random::normal({n, n}, {.key = td::random::Key(i)}));
  const auto step = td::function([&](const td::Tensor& x) {
    td::GradientTape tape;
    td::Tensor h = x;
    for (const td::Variable& w : weights) h = td::tanh(td::matmul(h, w));
    const td::Tensor loss = td::sum(h * h);
    const std::vector<td::Gradient> gradients = tape.gradient(loss, weights);
    for (size_t i = 0; i < weights.size(); ++i) weights[i].assign_sub(gradients[i].dense() * 0.1);
    return loss;
  });
  const td::Plan plan = step.plan(td::spec({n, n}));
  constexpr int64_t one = n * n * 4;
  // The results of all layers, and besides those a gradient by a result, one by a weight, and one
  // more while a product is made; not one by each weight. Half a tensor for workspace.
  EXPECT_LE(plan.peak().count, (layers + 3) * one + one / 2) << plan.to_text();
}

// ---- what counts once ---------------------------------------------------------------------------

TEST(GradientTape, WhatAFunctionReturnsAsItCameCountsOnce) {
  auto same = td::function([](const td::Tensor& x) { return x; });
  auto twice = td::function([](const td::Tensor& x) { return std::pair{x, x}; });
  auto swap =
      td::function([](const td::Tensor& x, const td::Tensor& y) { return std::pair{y, x}; });
  const td::Tensor x = td::ones({2}), y = td::ones({2}) * 2.0;
  td::GradientTape tape({.persistent = true});
  tape.watch(std::tuple{x, y});
  const td::Tensor thrice = same(same(same(x)));
  const td::Tensor first = twice(x).first;
  const auto [a, b] = swap(x, y);
  const td::Tensor sum = td::sum(a * 2.0 + b * 5.0);
  EXPECT_EQ(tape.gradient(thrice, x).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(tape.gradient(first, x).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(tape.gradient(sum, x).to_vector<float>(), (std::vector<float>{5, 5}));
  EXPECT_EQ(tape.gradient(sum, y).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Gradient, OfWhatEntersALoopTwiceCountsOnceInEveryOrder) {
  for (const td::Save save : {td::Save::all(), td::Save::slots(1), td::Save::every(2)}) {
    const auto power = [save](const td::Tensor& x) {
      return td::fori_loop(0, 3, [&](const td::Tensor&, const td::Tensor& c) { return c * x; }, x,
                           {.save = save});
    };
    const auto second = [&](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) { return td::grad(power)(x); })(x);
    };
    const td::Tensor x = td::constant(std::vector<double>{3.0}, td::Shape{});
    // x^4 has the second derivative 12 x^2.
    EXPECT_DOUBLE_EQ(second(x).item<double>(), 108);
    EXPECT_DOUBLE_EQ(td::function(second)(x).item<double>(), 108);
  }
}

TEST(Gradient, OfTheSameTensorGivenTwiceToRecompute) {
  const auto product =
      td::recompute([](const td::Tensor& a, const td::Tensor& b) { return td::sum(a * a * b); });
  const auto f = [&](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) { return product(x, x); })(x);
  };
  const td::Tensor x = drawn({3}, 1);
  expect_near(f(x), (3.0 * x * x).to_vector<double>(), "eager");
  expect_near(td::function(f)(x), (3.0 * x * x).to_vector<double>(), "function");
}

TEST(GradientTape, WatchesFromWhereItIsAskedTo) {
  const auto f = [](const td::Tensor& x, const td::Tensor& z) {
    td::GradientTape tape;
    tape.watch(z);
    td::Tensor y = td::sum(x * z);
    tape.watch(x);
    y = y + td::sum(3.0 * x);
    return tape.gradient(y, x);
  };
  const td::Tensor x = td::ones({2}), z = td::ones({2}) * 7.0;
  EXPECT_EQ(f(x, z).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(td::function(f)(x, z).to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(GradientTape, AFunctionThatAssignsMayBeTracedUnderIt) {
  const td::Variable v(td::ones({2}), {.name = "v"});
  const auto f = td::function([v](const td::Tensor& x) {
    v.assign(x);
    return td::sum(v * v);
  });
  const td::Tensor x = td::ones({2}) * 3.0;
  td::GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(f(x).item<float>(), 18.0F);
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{3, 3}));
}

// One row that repeats comes into a program as that row; its gradient's program takes it whole.
TEST(GradientTape, AFunctionMayAssignWhatRepeats) {
  const td::Variable v(td::ones({3}, td::f64), {.name = "v"});
  const auto f = td::function([v](const td::Tensor& x, const td::Tensor& scale) {
    v.assign(x);
    return td::sum(v.value() * scale);
  });
  const td::Tensor row = td::broadcast_to(td::full({1}, 2.0, td::f64), {3});
  const td::Tensor scale = td::constant({1.0, 2.0, 3.0}, td::f64);
  td::GradientTape tape;
  tape.watch(scale);
  const td::Tensor y = f(row, scale);
  EXPECT_EQ(y.item<double>(), 12.0);
  EXPECT_EQ(tape.gradient(y, scale).to_vector<double>(), (Values{2, 2, 2}));
}

// Which operands a tape keeps depends on sizes: the gradient of a product of one reads nothing.
TEST(GradientTape, WhatRulesReadIsKnownForEachSize) {
  const auto by_product = [](const td::Tensor& x) {
    return td::Tensor(
        td::grad([](const td::Tensor& each) { return td::sum(td::prod(each, 0)); })(x));
  };
  EXPECT_EQ(by_product(td::full({1, 2}, 5.0, td::f64)).to_vector<double>(), (Values{1, 1}));
  EXPECT_EQ(by_product(td::full({2, 1}, 5.0, td::f64)).to_vector<double>(), (Values{5, 5}));
  const auto by_image = [](const td::Tensor& x) {
    return td::Tensor(td::grad([](const td::Tensor& each) {
      return td::sum(td::conv2d(each, td::full({1, 1, 1, 1}, 3.0, td::f64)));
    })(x));
  };
  EXPECT_EQ(by_image(td::zeros({0, 2, 2, 1}, td::f64)).size(), 0);
  EXPECT_EQ(by_image(td::zeros({1, 2, 1, 1}, td::f64)).to_vector<double>(), (Values{3, 3}));
  const auto by_table = [](const td::Tensor& x, const td::Tensor& index, int64_t axis) {
    return td::Tensor(td::grad([&](const td::Tensor& each) {
      return td::sum(td::square(td::take_along_axis(each, index, axis)));
    })(x));
  };
  const td::Tensor table = td::constant({{1.0, 2.0}, {3.0, 4.0}}, td::f64);
  const td::Tensor one = td::zeros({1, 2}, td::i64);
  EXPECT_EQ(by_table(table, one, 0).to_vector<double>(), (Values{2, 4, 0, 0}));
  EXPECT_EQ(by_table(table[{td::Slice{.end = 1}}], one, 1).to_vector<double>(), (Values{4, 0}));
}

// The gradient of a sum repeats one number: kernels read it so, or copy it, with the same bits.
TEST(Gradient, OfASumOverAConvolutionIsThatByOnes) {
  const td::Tensor image = drawn({3, 4, 5, 6, 7}, 30), wide = drawn({7, 4, 5, 6, 7}, 31);
  const td::Tensor kernel = drawn({2, 3, 2, 7, 9}, 32), turned = drawn({2, 3, 2, 9, 7}, 33);
  for (const td::DType dtype : {td::f32, td::f64}) {
    for (const td::Tensor& x : {td::cast(image, dtype), td::cast(wide, dtype)}) {
      const td::Tensor w = td::cast(kernel, dtype), v = td::cast(turned, dtype);
      td::GradientTape tape({.persistent = true});
      for (const td::Tensor& each : {x, w, v}) tape.watch(each);
      const td::Tensor y = td::conv3d(x, w), z = td::conv_transpose3d(x, v, {.strides = {1, 2, 3}});
      const auto both = [&](const td::Tensor& result, const td::Tensor& source) {
        const td::Tensor ones = td::identity(td::ones(result.shape(), dtype));
        const td::Tensor of_sum = tape.gradient(result, source);
        const td::Tensor by_ones = tape.gradient(result, source, {.output_gradients = ones});
        EXPECT_TRUE(td::identical(of_sum, by_ones)) << x.shape();
      };
      both(y, x), both(y, w), both(z, x), both(z, v);
    }
  }
}

TEST(Gradient, OfOpsByName) {
  EXPECT_NEAR(td::grad(td::grad(td::sin))(td::constant({0.5}, td::f64)[0]).item<double>(),
              -std::sin(0.5), 1e-12);
  const auto wrapped = td::function<td::Tensor(td::Tensor)>(td::grad(td::exp));
  EXPECT_NEAR(wrapped(td::constant(1.0F)).item<float>(), std::exp(1.0F), 1e-5F);
  const td::Tensor slopes = td::map_fn(td::grad(td::square), td::constant({1.0, 2.0}));
  EXPECT_EQ(slopes.to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(Gradient, OfPowersAndFillsAtTheirCorners) {
  const td::Tensor zero = td::zeros({}, td::f64);
  EXPECT_EQ(td::grad([](const td::Tensor& x) { return td::pow(x, 0.0); })(zero).item<double>(), 0);
  const auto first = [](const td::Tensor& x) { return td::pow(x, 1.0); };
  EXPECT_EQ(td::grad(td::grad(first))(zero).item<double>(), 0);
  EXPECT_EQ(td::grad([](const td::Tensor& y) { return td::pow(td::zeros({}, td::f64), y); })(
                td::full({}, 2.0, td::f64))
                .item<double>(),
            0);
  // d/dy of y * x^(y - 1) at y = 0 is 1 / x, whichever of the two is asked first.
  const td::Tensor two = td::full({}, 2.0, td::f64);
  const auto by_base = [](const td::Tensor& x, const td::Tensor& y) {
    return td::Tensor(td::grad([&](const td::Tensor& each) { return td::pow(each, y); })(x));
  };
  const auto mixed = [&](const td::Tensor& y) { return by_base(two, y); };
  EXPECT_EQ(td::grad(mixed)(zero).item<double>(), 0.5);
  EXPECT_EQ(td::function([&](const td::Tensor& y) { return td::Tensor(td::grad(mixed)(y)); })(zero)
                .item<double>(),
            0.5);
  // No slope at the smallest of numbers, nor where there is no number.
  for (const double x : Values{5e-324, -5e-324, INFINITY, NAN})
    EXPECT_EQ(by_base(td::full({}, x, td::f64), zero).item<double>(), 0) << x;
  const auto product = [](const td::Tensor& x) { return td::prod(x); };
  EXPECT_EQ(td::grad(product)(td::constant({2.0, 0.0, 3.0})).to_vector<float>(),
            (std::vector<float>{0, 6, 0}));
  EXPECT_EQ(td::grad(product)(td::constant({2.0, 0.0, 0.0})).to_vector<float>(),
            (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(td::grad(product)(td::constant({2.0, 4.0, 3.0})).to_vector<float>(),
            (std::vector<float>{12, 6, 8}));
  const auto filled = [](const td::Tensor& v) { return td::sum(td::full({3}, v)); };
  EXPECT_EQ(td::grad(filled)(td::constant(2.0F)).item<float>(), 3.0F);
}

// What logsumexp takes out before exp has no part in the gradient, in any number of elements.
TEST(Gradient, OfLogsumexpHasTheDigitsOfSoftmax) {
  const td::Tensor x =
      td::random::uniform({3000}, {.low = -2, .high = 2, .key = td::random::Key(3)});
  const auto f = [](const td::Tensor& each) { return td::logsumexp(each); };
  const Values want = td::softmax(td::cast(x, td::f64)).to_vector<double>();
  const td::Tensor eager = td::grad(f)(x);
  const td::Tensor compiled =
      td::function([&](const td::Tensor& each) { return td::Tensor(td::grad(f)(each)); })(x);
  for (const td::Tensor& slopes : {eager, compiled}) {
    const std::vector<float> got = slopes.to_vector<float>();
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i] / want[i], 1, 2e-6) << i;
  }
}

// What takes a few operations by element from what is kept anyway is made again in backward.
TEST(Gradient, KeepsOfGeluItsInputAlone) {
  const td::MachineCode machine;
  constexpr int64_t rows = 64, wide = 128;
  const td::Tensor x = td::random::normal({rows, wide}, {.key = td::random::Key(1)});
  const td::Tensor w = td::random::normal({wide, wide}, {.stddev = 0.1, .key = td::random::Key(2)});
  const auto by_both = td::grad<0, 1>([](const td::Tensor& x, const td::Tensor& w) {
    return td::sum(td::square(td::matmul(td::gelu(td::matmul(x, w)), w)));
  });
  const auto f =
      td::function([&](const td::Tensor& x, const td::Tensor& w) { return by_both(x, w); });
  // The input of gelu, its result (for the product behind it), and that product.
  const td::Plan plan = f.plan(x, w);
  EXPECT_LE(plan.of(td::ByteClass::saved).count, 3 * rows * wide * 4) << plan.explain();
  const auto [dx, dw] = f(x, w);
  const auto [eager_dx, eager_dw] = by_both(x, w);
  EXPECT_TRUE(td::identical(dx, eager_dx));
  EXPECT_TRUE(td::identical(dw, eager_dw));
}

}  // namespace

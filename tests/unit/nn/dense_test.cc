#include "tidemark/nn/dense.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/error_of.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using Names = std::vector<std::string>;

Tensor matrix() { return constant({{1, 2, 3}, {4, 5, 6}}, f32); }

TEST(Dense, IsAProductABiasAndAnActivation) {
  const nn::Dense dense(2, {.activation = "relu"});
  dense.kernel.assign(constant({{1, -1}, {0, 2}, {1, -3}}, f32));
  dense.bias->set_shape({2});
  dense.bias->assign(constant({0.5, 1.0}));
  expect_near(dense(matrix()), {4.5, 0, 10.5, 0});
}

TEST(Dense, TakesAnActivationByNameAsAnOpAndAsALambda) {
  const Tensor x = constant({{-1.0, 2.0}});
  for (const nn::Activation& activation :
       {nn::Activation("tanh"), nn::Activation(tanh),
        nn::Activation([](const Tensor& y) { return tanh(y); })}) {
    const nn::Dense dense(2, {.activation = activation, .use_bias = false});
    dense.kernel.assign(eye(2));
    expect_near(dense(x), {std::tanh(-1.0), std::tanh(2.0)});
  }
  const nn::Dense gelu_dense(2, {.activation = gelu, .use_bias = false});
  gelu_dense.kernel.assign(eye(2));
  EXPECT_TRUE(identical(gelu_dense(x), gelu(x)));
}

TEST(Dense, HasItsVariablesBeforeItIsBuiltAndItsBytesWhenTheyAreUsed) {
  const nn::Dense dense(10, {.name = "head"});
  const std::vector<Variable> before = nn::variables(dense);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_FALSE(before[0].has_shape());
  EXPECT_EQ(before[0].name(), "head/kernel");
  const Bytes held = memory::of(ByteClass::variables);
  dense(ones({4, 100}));
  EXPECT_EQ(before[0].shape(), (Shape{100, 10}));
  EXPECT_EQ(before[1].shape(), (Shape{10}));
  EXPECT_EQ(memory::of(ByteClass::variables) - held, Bytes(4032 + 64));
}

TEST(Dense, IsFilledInPlace) {
  const nn::Dense dense(512);
  dense.kernel.set_shape({2048, 512});
  const MemoryScope scope("fill");
  dense.kernel.value();
  EXPECT_EQ(scope.current(), 4_MiB);
  EXPECT_LE(scope.peak(), 4_MiB + 64_B);  // And the key of the draw.
}

TEST(Dense, TakesInputsOfAnyRankAsOneProduct) {
  const nn::Dense dense(5);
  const Tensor x = random::normal({2, 3, 4});
  const Tensor flat = dense(reshape(x, {6, 4}));
  EXPECT_TRUE(identical(dense(x), reshape(flat, {2, 3, 5})));
  EXPECT_TRUE(identical(dense(x[{0, 0}]), flat[0]));
}

TEST(Dense, HasTheGradientsOfDifferences) {
  expect_gradients(nn::Dense(3, {.activation = "tanh", .dtype = f64}), drawn_f64({2, 4}, 1));
  expect_gradients(nn::Dense(2, {.use_bias = false, .dtype = f64}), drawn_f64({2, 2, 3}, 2));
}

TEST(Dense, KeepsTheSizeOfItsFirstInput) {
  const nn::Dense head(10, {.name = "head"}), other(3);
  head(ones({1, 784}));
  other(ones({1, 4}));
  const auto call = [&] { head(ones({1, 128})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("nn::Dense \"head\": built for 784 features, got 128\n  at dense_test.cc:", line,
                "\n  a layer keeps the size of its first input: make another for inputs of this "
                "size"));
  EXPECT_EQ(error_of([&] { other(ones({1, 5})); }).substr(0, 42),
            "nn::Dense: built for 4 features, got 5\n  a");
}

TEST(Dense, RefusesWhatItCannotBe) {
  const auto call = [] { nn::Dense dense(0, {.name = "a"}); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call), cat("nn::Dense \"a\": cannot have 0 units\n  at dense_test.cc:", line,
                                "\n  give it one or more"));
  const auto second_call = [&] { nn::Dense(2)(ones({})); };
  const unsigned second_line = __LINE__ - 1;
  EXPECT_EQ(error_of(second_call),
            cat("nn::Dense: the input is a scalar, without an axis of features\n  at "
                "dense_test.cc:",
                second_line, "\n  give it [..., features]: td::reshape(x, {1, 1})"));
  const auto third_call = [&] { nn::Dense(2, {.activation = "rely"}); };
  const unsigned third_line = __LINE__ - 1;
  EXPECT_EQ(error_of(third_call),
            cat("nn::Activation: there is no \"rely\"\n  at dense_test.cc:", third_line,
                "\n  there are elu, gelu, leaky_relu, linear, log_softmax, relu, sigmoid, silu, "
                "softmax, softplus, swish, tanh; or give an op or a lambda: td::relu"));
}

TEST(Dense, RefusesAKernelOfAnotherLayer) {
  const nn::Dense dense(3);
  dense.kernel.assign(ones({4, 2}));
  const auto call = [&] { dense(ones({1, 4})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("nn::Dense: its kernel is [4, 2], expected [features, 3]\n  at "
                "dense_test.cc:",
                line, "\n  it holds the value of another layer: assign or load one of this shape"));
}

TEST(Dense, IsNamedByErrorsOfItsOps) {
  const nn::Sequential model{
      nn::Dense(4, {.activation = [](const Tensor& x) { return x + ones({3}); }, .name = "head"})};
  const NameScope scope("encoder");
  const std::string error = error_of([&] { model(ones({2, 5})); });
  EXPECT_NE(error.find(", in encoder/nn::Dense \"head\"\n"), std::string::npos) << error;
  const auto call = [&] { model(ones({2, 6})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call).substr(0, 90),
            cat("nn::Dense \"head\": built for 5 features, got 6\n  at dense_test.cc:", line,
                ", in encoder\n  a layer"));
}

TEST(Dense, MadeInAFunctionBelongsToIt) {
  std::optional<nn::Dense> dense;
  const auto f = function([&dense](const Tensor& x) {
    if (!dense) dense.emplace(3);
    return (*dense)(x);
  });
  const Bytes before = memory::of(ByteClass::variables);
  const Plan plan = f.plan(spec({2, 4}));
  EXPECT_EQ(memory::of(ByteClass::variables), before);
  EXPECT_EQ(plan.of(ByteClass::variables), Bytes(64 + 64));
  const Tensor x = random::normal({2, 4});
  EXPECT_TRUE(identical(f(x), (*dense)(x)));
  EXPECT_TRUE(identical(f(ones({5, 4})), (*dense)(ones({5, 4}))));
}

TEST(Dense, IsAFunctionOfOneTensor) {
  const nn::Dense dense(3);
  const auto f = function(dense);
  const Tensor x = random::normal({2, 4});
  EXPECT_TRUE(identical(f(x), dense(x)));
}

TEST(Sequential, RunsAnyCallablesOfOneTensorInOrder) {
  const nn::Dense first(4), last(2);
  const auto doubled = custom_gradient(
      [](const Tensor& x) { return std::pair{x * 2, [](const Tensor& dy) { return dy * 5; }}; });
  const nn::Sequential model{first, relu, [](const Tensor& x) { return x + 1; }, doubled,
                             recompute(last)};
  const Tensor x = random::normal({3, 5});
  EXPECT_TRUE(identical(model(x), last((relu(first(x)) + 1) * 2)));
  EXPECT_EQ(names_of(nn::named_variables(model)),
            (Names{"0/kernel", "0/bias", "4/kernel", "4/bias"}));
}

TEST(Sequential, TakesTheGradientThatAFunctionGivesItself) {
  const auto own = custom_gradient(
      [](const Tensor& x) { return std::pair{x * 2, [](const Tensor& dy) { return dy * 5; }}; });
  const nn::Sequential model{own};
  expect_near(grad([&](const Tensor& x) { return sum(model(x)); })(ones({2})), {5, 5});
}

TEST(Sequential, HasTheGradientsOfDifferencesAlsoWhereItIsRecomputed) {
  const auto dense = [](int64_t units) {
    return nn::Dense(units, {.activation = "tanh", .dtype = f64});
  };
  expect_gradients(nn::Sequential{dense(3), recompute(dense(2))}, drawn_f64({2, 3}, 1));
}

TEST(Sequential, CopiesShareLayersAndClonesDoNot) {
  const nn::Sequential model{nn::Dense(4), nn::Dense(2)};
  const Tensor x = random::normal({3, 5});
  const Tensor before = model(x);
  const nn::Sequential copy = model;
  const nn::Sequential clone = nn::clone(model);
  for (const Variable& variable : nn::variables(model)) variable.assign(variable.value() * 2);
  EXPECT_TRUE(identical(copy(x), model(x)));
  EXPECT_TRUE(identical(clone(x), before));
  EXPECT_FALSE(identical(model(x), before));
}

TEST(Sequential, GrowsByAddAndIsReadByNumber) {
  nn::Sequential model;
  model.add(nn::Dense(4)).add(relu);
  EXPECT_EQ(model.size(), 2);
  const Tensor x = constant({-1.0, 1.0});
  EXPECT_TRUE(identical(model[-1](x), relu(x)));
  EXPECT_EQ(error_of([&] { model[2](x); }),
            "nn::Sequential: there is no layer 2 of 2\n  the first is 0, the last is -1");
}

TEST(Sequential, TellsLayersWithoutANameApartByPlace) {
  const nn::Sequential model{
      relu, nn::Dense(4, {.activation = [](const Tensor& x) { return x + ones({3}); }})};
  const std::string error = error_of([&] { model(ones({2, 5})); });
  EXPECT_NE(error.find(", in 1/nn::Dense\n"), std::string::npos) << error;
}

TEST(Sequential, IsChargedToTheLinesOfItsCaller) {
  const nn::Sequential model{nn::Dense(4), relu};
  const unsigned line = __LINE__ + 1;
  const Tensor y = model(ones({2, 3}));
  EXPECT_EQ(y.source().line, line);
}

TEST(Lambda, NamesTheLayersOfAClosure) {
  const nn::Dense dense(3, {.use_bias = false});
  const nn::Lambda block([dense](const Tensor& x) { return x + dense(x); }, dense);
  const Tensor x = random::normal({2, 3});
  EXPECT_TRUE(identical(block(x), x + dense(x)));
  EXPECT_EQ(names_of(nn::named_variables(nn::Sequential{block})), (Names{"0/0/kernel"}));
  EXPECT_EQ(error_of([&] { nn::clone(nn::Sequential{block}); }),
            "clone: the closure of nn::Lambda at \"0\" captures its layers: the copy would run the "
            "original's\n  pass the layers as arguments: nn::Lambda([](const td::Tensor& x, "
            "const td::nn::Dense& dense) {...}, dense)");
}

TEST(Lambda, ThatTakesItsLayersCanBeCloned) {
  const nn::Dense dense(3, {.use_bias = false});
  const nn::Lambda block([](const Tensor& x, const nn::Dense& d) { return x + d(x); }, dense);
  const Tensor x = random::normal({2, 3});
  const Tensor before = block(x);
  const auto clone = nn::clone(block);
  dense.kernel.assign(zeros({3, 3}));
  EXPECT_TRUE(identical(clone(x), before));
  EXPECT_TRUE(identical(block(x), x));
}

struct Scaled {  // An activation with a Variable of its own.
  Variable slope{2.0f};
  Tensor operator()(const Tensor& x) const { return x * slope; }
};

TEST(Dense, FindsTheVariablesOfItsActivation) {
  EXPECT_EQ(names_of(nn::named_variables(nn::Dense(2, {.activation = Scaled()}))),
            (Names{"kernel", "bias", "activation/slope"}));
}

}  // namespace
}  // namespace tidemark

#include "tidemark/nn/predict.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

struct Net {
  nn::Dense up{8, {.activation = "tanh"}}, down{3};
  nn::Dropout drop{0.5};
  double temperature = 1;
  Tensor operator()(const Tensor& x) const { return down(drop(up(x))) / temperature; }
};

TEST(Predict, GivesTheBitsOfEvaluationModeInEveryMode) {
  const Net net;
  const Tensor x = random::normal({4, 5});
  const Tensor want = net(x);
  EXPECT_TRUE(identical(nn::predict(net, x), want));
  const nn::Training on;
  EXPECT_TRUE(identical(nn::predict(net, x), want));
  EXPECT_TRUE(nn::is_training());
}

TEST(Predict, BuildsAModelThatHasNoShapes) {
  const nn::Sequential model{nn::Dense(4), relu};
  const Tensor x = ones({2, 3});
  const Tensor first = nn::predict(model, x);
  EXPECT_TRUE(identical(nn::predict(model, x), first));
  EXPECT_TRUE(identical(model(x), first));
}

TEST(Predict, SeesWhatVariablesAndFieldsAreNow) {
  Net net;
  const Tensor x = random::normal({4, 5});
  nn::predict(net, x);
  net.down.bias->assign(ones({3}));
  EXPECT_TRUE(identical(nn::predict(net, x), net(x)));
  net.temperature = 2;
  EXPECT_TRUE(identical(nn::predict(net, x), net(x)));
  net.up = nn::Dense(8, {.activation = "relu"});
  EXPECT_TRUE(identical(nn::predict(net, x), net(x)));
  EXPECT_TRUE(identical(nn::predict(net, x), net(x)));
}

TEST(Predict, TellsLayersWithTheSameVariablesApart) {
  const nn::Dense first(4, {.activation = "relu"});
  nn::Dense second(4, {.activation = "tanh"});
  const Tensor x = random::normal({2, 3});
  first(x);
  second.kernel = first.kernel;
  second.bias = first.bias;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(identical(nn::predict(first, x), first(x)));
    EXPECT_TRUE(identical(nn::predict(second, x), second(x)));
  }
  EXPECT_TRUE(identical(nn::predict(nn::Sequential{relu}, x), relu(x)));
  EXPECT_TRUE(identical(nn::predict(nn::Sequential{tanh}, x), tanh(x)));
}

TEST(Predict, IsFlatInALoop) {
  const Net net;
  const Tensor x = random::normal({64, 5});
  for (int i = 0; i < 3; ++i) nn::predict(net, x);
  const Bytes held = memory::current();
  const Tensor sample = nn::predict(net, x);
  const MemoryScope scope("loop");
  for (int i = 0; i < 100; ++i) nn::predict(net, x);
  EXPECT_EQ(scope.current(), 0_B);
  EXPECT_EQ(memory::current(), held + Bytes(64 * 3 * 4));
}

TEST(Predict, KeepsNothingOfAModelThatIsGone) {
  const Tensor x = random::normal({64, 500});
  const Bytes held = memory::current();
  {
    const nn::Sequential model{nn::Dense(400), relu, nn::Dense(300)};
    for (int i = 0; i < 3; ++i) nn::predict(model, x);
    EXPECT_GE(memory::current() - held, Bytes(4 * 500 * 400));
  }
  EXPECT_EQ(memory::current(), held);
}

struct Counting {
  Variable calls{0.0f, {.trainable = false}};
  Tensor operator()(const Tensor& x) const {
    calls.assign_add(1);
    return x + calls;
  }
};

TEST(Predict, DoesWhatAModelAssigns) {
  const Counting model;
  const Tensor x = zeros({1});
  for (float i = 1; i < 4; ++i) EXPECT_EQ(nn::predict(model, x).item<float>(), i);
  EXPECT_EQ(model.calls.value().item<float>(), 3);
}

TEST(Predict, RunsClosuresWithCapturesAndWhatIsTraced) {
  const nn::Dense dense(3);
  const Tensor x = random::normal({2, 4});
  const auto closure = [dense](const Tensor& y) { return dense(y) * 2; };
  EXPECT_TRUE(identical(nn::predict(closure, x), closure(x)));
  const nn::Sequential model{dense, [factor = 3](const Tensor& y) { return y * factor; }};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(identical(nn::predict(model, x), model(x)));
  const auto f = function([model](const Tensor& y) { return nn::predict(model, y); });
  EXPECT_TRUE(identical(f(x), model(x)));
}

TEST(Predict, StaysWithinABudget) {
  const nn::Sequential net{nn::Dense(64, {.activation = relu}), nn::Dense(64), nn::Dense(4)};
  const Tensor x = random::normal({128, 16});
  const Tensor want = nn::predict(net, x);
  const Bytes peak = function([&](const Tensor& y) { return net(y); }).plan(x).peak();
  memory::reset_peak();
  const Bytes before = memory::current();
  EXPECT_TRUE(identical(nn::predict(net, x, {.budget = peak}), want));
  EXPECT_LE(memory::peak() - before, peak);
  EXPECT_THROW(nn::predict(net, x, {.budget = Bytes(64)}), OverBudget);
  EXPECT_TRUE(identical(nn::predict(net, x, {.budget = Budget::available}), want));
  EXPECT_TRUE(identical(nn::predict(net, x), want));
}

TEST(Predict, RefusesABudgetThatItCannotKeep) {
  const nn::Dense dense(3);
  const Tensor x = random::normal({2, 4});
  const auto closure = [dense](const Tensor& y) { return dense(y) * 2; };
  const auto budgeted = [&](const auto& model) {
    return error_of<UserError>([&] { nn::predict(model, x, {.budget = Bytes(1 << 20)}); });
  };
  const std::string line = "predict_test.cc:" + std::to_string(__LINE__ - 2);
  const auto text = [&](const char* reason) {
    return cat("predict: the model runs eagerly, without a plan, because ", reason,
               "; so it cannot be held to a budget\n  at ", line,
               "\n  leave out .budget, or give td::function a budget and call the model there");
  };
  EXPECT_EQ(budgeted(dense), text("its Variables have no shapes yet"));
  EXPECT_EQ(budgeted(closure), text("it has a closure with captures"));
  EXPECT_EQ(budgeted(Counting()), text("it assigns Variables"));
}

int calls_of_block = 0;  // Of the C++ function: a compiled one is called to be traced alone.

TEST(Predict, CompilesALambdaThatTakesItsLayers) {
  const nn::Dense dense(3), other(3);
  const Tensor x = random::normal({2, 3});
  const auto block = [](const Tensor& y, const nn::Dense& layer) {
    ++calls_of_block;
    return y + layer(y);
  };
  const nn::Lambda model(block, dense), same_function(block, other);
  (void)model(x), (void)same_function(x);
  const Tensor first = model(x), second = same_function(x);
  calls_of_block = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(identical(nn::predict(model, x), first));
    EXPECT_TRUE(identical(nn::predict(nn::Sequential{model, relu}, x), relu(first)));
    EXPECT_TRUE(identical(nn::predict(same_function, x), second));
  }
  EXPECT_EQ(calls_of_block, 3);
  // One that holds the layer itself goes op by op, and reads the layer that it holds.
  const nn::Lambda closure([dense](const Tensor& y) { return y + dense(y); }, dense);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(identical(nn::predict(closure, x), first));
}

TEST(Predict, MayBeDifferentiated) {
  const nn::Dense dense(3, {.use_bias = false});
  const Tensor x = random::normal({2, 4});
  dense(x);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor total = sum(nn::predict(dense, x)), eager = sum(dense(x));
  EXPECT_TRUE(identical(tape.gradient(total, x), tape.gradient(eager, x)));
  EXPECT_TRUE(identical(Tensor(tape.gradient(total, dense.kernel)),
                        Tensor(tape.gradient(eager, dense.kernel))));
}

}  // namespace
}  // namespace tidemark

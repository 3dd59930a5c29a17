#include "tests/unit/nn/layers_test.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using Names = std::vector<std::string>;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Embedding, GivesRowsAndItsGradientIsRows) {
  const nn::Embedding embed(1000, 2, {.name = "words"});
  embed.table.assign_slice({3, all}, constant({1.0, 2.0}));
  EXPECT_EQ(embed.table.name(), "words/table");
  const Tensor ids = constant({{3, 7}});
  GradientTape tape;
  const Tensor rows = embed(ids);
  EXPECT_EQ(rows.shape(), (Shape{1, 2, 2}));
  expect_near(rows[{0, 0}], {1, 2});
  const Gradient gradient = tape.gradient(sum(rows), embed.table);
  ASSERT_TRUE(gradient.is_rows());
  EXPECT_EQ(gradient.shape(), (Shape{1000, 2}));
  const auto call = [&] { embed(ones({2})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("nn::Embedding \"words\": ids are f32, not integers\n  at layers_test.cc:", line,
                "\n  give it row numbers: td::cast(x, td::i32)"));
  const auto second_call = [] { nn::Embedding(10, -1); };
  const unsigned second_line = __LINE__ - 1;
  EXPECT_EQ(error_of(second_call),
            cat("nn::Embedding: cannot have a table of 10 x -1\n  at layers_test.cc:", second_line,
                "\n  both sizes must be positive"));
}

TEST(Flatten, KeepsTheFirstAxisAndTheBytes) {
  const Tensor x = ones({2, 3, 4});
  const Bytes before = memory::current();
  const Tensor flat = nn::Flatten()(x);
  EXPECT_EQ(flat.shape(), (Shape{2, 12}));
  EXPECT_EQ(memory::current(), before);
  EXPECT_EQ(nn::Flatten()(ones({5})).shape(), (Shape{5, 1}));
}

TEST(Dropout, ActsInTrainModeOnly) {
  const nn::Dropout drop(0.25);
  const Tensor x = ones({10000});
  EXPECT_TRUE(identical(drop(x), x));
  const nn::Training on;
  const Values kept = drop(x).to_vector<double>();
  int64_t zeros_seen = 0;
  for (const double value : kept) {
    EXPECT_TRUE(value == 0 || std::abs(value - 4.0 / 3) < 1e-6);
    zeros_seen += value == 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros_seen), 2500, 200);  // Four and a half deviations.
  const auto call = [] { nn::Dropout drop(1.0); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("nn::Dropout: the rate must be in [0, 1), got 1\n  at layers_test.cc:", line,
                "\n  it is the fraction of elements that become zero"));
}

TEST(Dropout, HasATraceForEachModeInAFunction) {
  const nn::Dropout drop(0.5);
  const auto f = function([drop](const Tensor& x) { return drop(x); });
  const Tensor x = ones({1000});
  EXPECT_TRUE(identical(f(x), x));
  {
    const nn::Training on;
    EXPECT_FALSE(identical(f(x), x));
    EXPECT_FALSE(identical(f(x), f(x)));  // Each call draws anew.
  }
  EXPECT_TRUE(identical(f(x), x));
}

TEST(LayerNorm, BringsFeaturesToMeanZeroAndScalesThem) {
  const nn::LayerNorm norm({.epsilon = 0});
  norm.scale->assign(constant({2.0, 1.0}));
  norm.bias->assign(constant({0.0, 10.0}));
  expect_near(norm(constant({{1.0, 3.0}, {8.0, 4.0}})), {-2, 11, 2, 9});
  EXPECT_EQ(names_of(nn::named_variables(norm)), (Names{"scale", "bias"}));
  expect_gradients(nn::LayerNorm({.dtype = f64}), drawn_f64({2, 4}, 1));
  EXPECT_EQ(error_of([&] { norm(ones({2, 3})); }).substr(0, 46),
            "nn::LayerNorm: built for 2 features, got 3\n  a");
}

TEST(RMSNorm, DividesByTheRootOfTheMeanOfSquares) {
  const nn::RMSNorm norm({.epsilon = 0});
  const double root = std::sqrt(12.5);
  expect_near(norm(constant({{3.0, 4.0}})), {3 / root, 4 / root});
  expect_gradients(nn::RMSNorm({.dtype = f64}), drawn_f64({2, 4}, 1));
}

TEST(BatchNorm, UsesTheBatchInTrainModeAndWhatItLearnedOtherwise) {
  const nn::BatchNorm norm({.epsilon = 0, .momentum = 0.75});
  const Tensor x = constant({{1.0, 10.0}, {3.0, 30.0}});
  expect_near(norm(x), {1, 10, 3, 30});  // Running mean 0, variance 1.
  {
    const nn::Training on;
    expect_near(norm(x), {-1, -1, 1, 1});
  }
  expect_near(norm.running_mean, {0.5, 5});
  expect_near(norm.running_variance, {0.75 + 0.25, 0.75 + 25});
  EXPECT_EQ(nn::trainable_variables(norm).size(), 2u);
  const nn::Training on;
  expect_gradients(nn::BatchNorm({.dtype = f64}), drawn_f64({4, 3}, 1));
}

// A variance of 360,000 is beyond f16, and so is what f16 would keep of a running figure.
TEST(BatchNorm, ComputesAndKeepsFiguresOf16BitFloatsIn32Bits) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const nn::BatchNorm norm({.dtype = dtype});
    const nn::Training on;
    const Tensor y = norm(cast(constant({{-600.0F}, {600.0F}}), dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-1, 1}));
    EXPECT_EQ(norm.running_variance.dtype(), DType::f32);
    EXPECT_NEAR(norm.running_variance.value().item<float>(), 0.99F + 3600, 1e-2F);
  }
}

TEST(BatchNorm, LearnsNothingOfAnEmptyBatch) {
  const nn::BatchNorm norm({.momentum = 0.5});
  const auto f = function([norm](const Tensor& x) { return norm(x); });
  const nn::Training on;
  f(constant({{1.0, 10.0}, {3.0, 30.0}}));
  const Tensor mean = norm.running_mean.value() + 0, variance = norm.running_variance.value() + 0;
  EXPECT_EQ(f(zeros({0, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(norm(zeros({0, 2})).shape(), (Shape{0, 2}));
  EXPECT_TRUE(identical(norm.running_mean, mean));
  EXPECT_TRUE(identical(norm.running_variance, variance));
  GradientTape tape;
  const Tensor total = sum(norm(zeros({0, 2})));
  expect_near(tape.gradient(total, *norm.scale), {0, 0});
  for (const int64_t rows : {3, 4, 5, 6}) f(ones({rows, 2}));
  EXPECT_LE(f.cache_info().traces, 3);  // Sizes, the empty one, and all others.
}

TEST(Conv2D, IsASumOverWindows) {
  const nn::Conv2D conv(1, 2, {.activation = relu});
  conv.kernel.assign(reshape(constant({1.0, 2.0, 3.0, 4.0}), {2, 2, 1, 1}));
  const Tensor x = reshape(cast(arange(9), f32), {1, 3, 3, 1});
  const Tensor y = conv(x);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 1}));
  expect_near(y, {0 + 2 + 9 + 16, 1 + 4 + 12 + 20, 3 + 8 + 18 + 28, 4 + 10 + 21 + 32});
  EXPECT_EQ(nn::Conv2D(4, {3, 1}, {.strides = {2, 1}, .padding = Padding::same})(x).shape(),
            (Shape{1, 2, 3, 4}));
}

TEST(Conv2D, HasTheGradientsOfDifferencesAlsoInGroups) {
  expect_gradients(nn::Conv2D(2, 2, {.activation = "tanh", .dtype = f64}),
                   drawn_f64({1, 3, 3, 2}, 1));
  expect_gradients(nn::Conv2D(2, 2, {.padding = Padding::same, .groups = 2, .dtype = f64}),
                   drawn_f64({1, 2, 3, 4}, 2));
}

TEST(Conv2D, KeepsTheChannelsOfItsFirstInput) {
  const nn::Conv2D conv(4, 3, {.name = "stem"});
  conv(ones({1, 5, 5, 3}));
  const auto call = [&] { conv(ones({1, 5, 5, 1})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("nn::Conv2D \"stem\": built for 3 channels, got 1\n  at layers_test.cc:", line,
                "\n  a layer keeps the size of its first input: make another for inputs of this "
                "size"));
  const auto second_call = [&] { conv(ones({5, 5, 3})); };
  const unsigned second_line = __LINE__ - 1;
  EXPECT_EQ(
      error_of(second_call),
      cat("nn::Conv2D \"stem\": the input f32[5, 5, 3] is not a batch of images\n  at "
          "layers_test.cc:",
          second_line, "\n  give it [n, height, width, channels]: td::expand_dims adds an axis"));
}

TEST(Pooling, TakesTheLargestOrTheMeanOfAWindow) {
  const Tensor x = reshape(cast(arange(16), f32), {1, 4, 4, 1});
  expect_near(nn::MaxPool2D(2)(x), {5, 7, 13, 15});
  expect_near(nn::AveragePool2D(2)(x), {2.5, 4.5, 10.5, 12.5});
  expect_near(nn::MaxPool2D({2, 4}, {.strides = 2})(x), {7, 15});
  expect_near(nn::GlobalAveragePool2D()(x), {7.5});
  expect_gradients(nn::AveragePool2D(2), drawn_f64({1, 4, 4, 1}, 1));
}

// Head by head, as it is defined.
Tensor attention_by_hand(const nn::MultiHeadAttention& layer, const Tensor& x, int64_t heads,
                         int64_t size) {
  const auto projected = [&](const nn::MultiHeadAttention::Projection& p, const Tensor& of) {
    return matmul(of, p.kernel) + *p.bias;
  };
  const Tensor q = projected(layer.query, x), k = projected(layer.key, x),
               v = projected(layer.value, x);
  std::vector<Tensor> parts;
  for (int64_t head = 0; head < heads; ++head) {
    const Slice columns{.begin = head * size, .end = (head + 1) * size};
    const Tensor scores = matmul(q[{all, columns}], k[{all, columns}], {.transpose_b = true});
    parts.push_back(
        matmul(softmax(scores / std::sqrt(static_cast<double>(size))), v[{all, columns}]));
  }
  return projected(layer.output, concat(parts, 1));
}

TEST(MultiHeadAttention, AttendsHeadByHead) {
  const nn::MultiHeadAttention layer(2, 3);
  const Tensor x = random::normal({5, 4}, {.key = random::Key(1)});
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{5, 4}));
  expect_near(y, attention_by_hand(layer, x, 2, 3).to_vector<double>());
  EXPECT_TRUE(identical(layer(stack({x, x}))[1], y));
  EXPECT_EQ(names_of(nn::named_variables(layer)),
            (Names{"query/kernel", "query/bias", "key/kernel", "key/bias", "value/kernel",
                   "value/bias", "output/kernel", "output/bias"}));
}

TEST(MultiHeadAttention, ThatIsCausalSeesNothingOfWhatComes) {
  const nn::MultiHeadAttention layer(2, 3, {.causal = true});
  const Tensor x = random::normal({5, 4}, {.key = random::Key(1)});
  const Tensor y = layer(x);
  const Tensor changed = update(x, {4, all}, 9);
  EXPECT_TRUE(identical(layer(changed)[{Slice{.end = 4}}], y[{Slice{.end = 4}}]));
  EXPECT_FALSE(identical(layer(changed)[4], y[4]));
}

TEST(MultiHeadAttention, AttendsToOthersUnderAMask) {
  const nn::MultiHeadAttention layer(2, 3, {.output_size = 6});
  const Tensor x = random::normal({5, 4}, {.key = random::Key(1)});
  const Tensor memory = random::normal({7, 2}, {.key = random::Key(2)});
  const Tensor mask = arange(7) < 3;
  const Tensor y = layer(x, memory, mask);
  EXPECT_EQ(y.shape(), (Shape{5, 6}));
  expect_near(y, layer(x, memory[{Slice{.end = 3}}]).to_vector<double>());
}

TEST(MultiHeadAttention, HasTheGradientsOfDifferences) {
  expect_gradients(nn::MultiHeadAttention(2, 2, {.causal = true, .dtype = f64}),
                   drawn_f64({3, 2}, 1));
}

// By its definition, one sequence at a time.
Values lstm_by_hand(const nn::LSTM& layer, const Values& x, size_t features, size_t units) {
  const Values w = layer.kernel.value().to_vector<double>(),
               u = layer.recurrent.value().to_vector<double>(),
               b = layer.bias.value().to_vector<double>();
  Values h(units), c(units);
  for (size_t step = 0; step < x.size() / features; ++step) {
    Values gates = b;
    for (size_t j = 0; j < 4 * units; ++j) {
      for (size_t i = 0; i < features; ++i)
        gates[j] += x[step * features + i] * w[i * 4 * units + j];
      for (size_t i = 0; i < units; ++i) gates[j] += h[i] * u[i * 4 * units + j];
    }
    for (size_t i = 0; i < units; ++i) {
      c[i] = sigmoid_of(gates[units + i]) * c[i] +
             sigmoid_of(gates[i]) * std::tanh(gates[2 * units + i]);
      h[i] = sigmoid_of(gates[3 * units + i]) * std::tanh(c[i]);
    }
  }
  return h;
}

TEST(LSTM, FollowsItsDefinition) {
  const nn::LSTM layer(3);
  const Tensor x = random::normal({2, 4, 2}, {.key = random::Key(1)});
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  expect_near(y[0], lstm_by_hand(layer, x[0].to_vector<double>(), 2, 3));
  expect_near(y[1], lstm_by_hand(layer, x[1].to_vector<double>(), 2, 3));
  expect_near(layer.bias, {0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(names_of(nn::named_variables(layer)), (Names{"kernel", "recurrent", "bias"}));
}

TEST(LSTM, GivesSequencesWhereAsked) {
  const nn::LSTM layer(3, {.return_sequences = true});
  const Tensor x = random::normal({2, 4, 2}, {.key = random::Key(1)});
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{2, 4, 3}));
  expect_near(y[{1, 1}], lstm_by_hand(layer, x[{1, Slice{.end = 2}}].to_vector<double>(), 2, 3));
  const auto f = function([layer](const Tensor& x) { return layer(x); });
  EXPECT_TRUE(identical(f(x), y));
}

TEST(LSTM, HasTheGradientsOfDifferences) {
  expect_gradients(nn::LSTM(2, {.dtype = f64}), drawn_f64({2, 3, 2}, 1));
  expect_gradients(nn::LSTM(2, {.return_sequences = true, .reverse = true, .dtype = f64}),
                   drawn_f64({1, 3, 1}, 2));
}

// In a function: the bits of eager code, for any batch, from one trace of a known and one of an
// open size; gradients too.
template <class Layer>
void expect_same_in_functions(const Layer& layer, const Shape& features) {
  const std::vector<Variable> variables = nn::trainable_variables(layer);
  const auto gradients = [layer, variables](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor loss = sum(square(layer(x)));
    const auto [by_x, by_variables] = tape.gradient(loss, std::pair{x, variables});
    std::vector<Tensor> all{loss, by_x};
    for (const Gradient& gradient : by_variables) all.push_back(gradient.dense());
    return all;
  };
  const auto value = function<Tensor(Tensor)>([layer](const Tensor& x) { return layer(x); });
  const auto compiled = function(gradients);
  for (const int64_t batch : {2, 3, 5}) {
    Shape shape = features;
    shape.insert(0, batch);
    const Tensor x = random::normal(shape, {.key = random::Key(static_cast<uint64_t>(batch))});
    EXPECT_TRUE(identical(value(x), layer(x))) << shape;
    const std::vector<Tensor> got = compiled(x), want = gradients(x);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << shape << i;
  }
  EXPECT_LE(value.cache_info().traces, 2);
}

TEST(Layers, GiveTheBitsOfEagerCodeInFunctionsOfAnyBatch) {
  expect_same_in_functions(nn::Dense(3, {.activation = gelu}), {4});
  expect_same_in_functions(nn::Dense(3, {.activation = "relu"}), {3, 4});
  expect_same_in_functions(nn::LayerNorm(), {3, 4});
  expect_same_in_functions(nn::RMSNorm(), {4});
  expect_same_in_functions(nn::BatchNorm(), {4});
  expect_same_in_functions(nn::Conv2D(2, 2, {.padding = Padding::same}), {4, 3, 2});
  expect_same_in_functions(nn::MaxPool2D(), {4, 4, 2});
  expect_same_in_functions(nn::MultiHeadAttention(2, 3, {.causal = true}), {4, 5});
  expect_same_in_functions(nn::Sequential{nn::Flatten(), recompute(nn::Dense(3))}, {2, 2});
}

TEST(Layers, OfSequencesGiveTheBitsOfEagerCodeInFunctions) {
  const nn::LSTM layer(3);
  const auto f = function(layer);
  for (const int64_t batch : {2, 3, 5}) {
    const Tensor x = random::normal({batch, 4, 2});
    EXPECT_TRUE(identical(f(x), layer(x)));
  }
  EXPECT_LE(f.cache_info().traces, 2);
}

TEST(Initializers, DrawWithinTheirLimits) {
  random::seed(1);
  const auto spread = [](const Initializer& make, const Shape& shape) {
    const Tensor x = make(shape, f32);
    return std::pair{max(abs(x)).item<double>(), std(x).item<double>()};
  };
  const double glorot = std::sqrt(6.0 / (100 + 300));
  const auto [most, deviation] = spread(nn::initializers::glorot_uniform, {100, 300});
  EXPECT_LE(most, glorot * (1 + 1e-6));
  EXPECT_NEAR(deviation, glorot / std::sqrt(3.0), glorot * 0.02);
  EXPECT_NEAR(spread(nn::initializers::glorot_normal, {100, 300}).second, std::sqrt(2.0 / 400),
              0.002);
  EXPECT_NEAR(spread(nn::initializers::he_normal, {3, 3, 16, 64}).second, std::sqrt(2.0 / 144),
              0.004);
  EXPECT_LE(spread(nn::initializers::he_uniform, {3, 3, 16, 64}).first,
            std::sqrt(6.0 / 144) * (1 + 1e-6));
  EXPECT_NEAR(spread(nn::initializers::normal(0.02), {100, 100}).second, 0.02, 0.001);
  EXPECT_TRUE(identical(nn::initializers::constant(3)({2}, f32), constant({3.0, 3.0})));
}

TEST(Initializers, OrthogonalRowsOrColumnsStandAtRightAngles) {
  for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{2, 2, 3}}) {
    const Tensor flat = reshape(nn::initializers::orthogonal(shape, f32), {-1, shape[-1]});
    const bool wide = flat.shape()[0] < flat.shape()[1];
    const Tensor product = wide ? matmul(flat, flat, {.transpose_b = true})
                                : matmul(flat, flat, {.transpose_a = true});
    expect_near(product, eye(product.shape()[0]).to_vector<double>());
  }
}

// The first call of a model builds it: eager code draws each kernel where its layer is reached,
// between two dropouts, a function draws all of them before it runs.
TEST(Initializers, OfAModelWithDropoutDrawTheSameInEagerCodeAndInAFunction) {
  const auto net = [] {
    return nn::Sequential{nn::Dropout(0.3), nn::Dense(6), nn::Dropout(0.5), nn::Dense(4),
                          nn::Dropout(0.2)};
  };
  const Tensor x = random::normal({8, 5}, {.key = random::Key(3)});
  const nn::Training on;
  const nn::Sequential eager = net(), compiled = net();
  const auto f = function([compiled](const Tensor& y) { return compiled(y); });
  for (const uint64_t seed : {7, 8}) {  // Built in the first round alone.
    random::seed(seed);
    const Tensor first = eager(x), second = eager(x), after = random::normal({3});
    random::seed(seed);
    EXPECT_TRUE(identical(f(x), first));
    EXPECT_TRUE(identical(f(x), second));
    EXPECT_TRUE(identical(random::normal({3}), after));
  }
  const auto expected = variables(eager), given = variables(compiled);
  for (size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(identical(given[i], expected[i]));
}

TEST(Initializers, GoOnFromAState) {
  random::seed(5);
  (void)nn::Dense(3)(ones({2, 4}));
  const Tensor state = random::state();
  const nn::Dense first(3), second(3);
  (void)first(ones({2, 4}));
  random::set_state(state);
  (void)second(ones({2, 4}));
  EXPECT_TRUE(identical(first.kernel, second.kernel));
}

TEST(Initializers, DrawTheSameAgainAfterTheSameSeed) {
  const auto first_output = [] {
    random::seed(7);
    const nn::Sequential model{nn::Dense(4), nn::Dense(2)};
    return model(ones({1, 3}));
  };
  EXPECT_TRUE(identical(first_output(), first_output()));
}

}  // namespace
}  // namespace tidemark

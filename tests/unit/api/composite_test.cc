// Composites against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark {
namespace {

namespace td = tidemark;
using Doubles = std::vector<double>;

Tensor drawn(const Shape& shape, uint64_t seed) {
  return random::normal(shape, {.key = random::Key(seed)});
}

void expect_near(const Tensor& got, const Doubles& want, double relative = 2e-6) {
  const Doubles list = got.to_vector<double>();
  ASSERT_EQ(list.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(list[i], want[i], relative * (1 + std::fabs(want[i]))) << "element " << i;
}

Doubles mapped(const Tensor& x, const std::function<double(double)>& f) {
  Doubles list = x.to_vector<double>();
  for (double& value : list) value = f(value);
  return list;
}

// Where exp(-x) overflows the result is still exp(x), down to the denormals.
TEST(Sigmoid, IsDenormalWhereTheLogisticFunctionIs) {
  for (const double x : {-88.0, -90.0, -100.0, -103.0}) {
    const auto want = static_cast<float>(std::exp(x));
    EXPECT_NEAR(td::sigmoid(td::constant(x, td::f32)).item<float>(), want,
                std::max(want * 1e-6, 3e-45))
        << x;
  }
  EXPECT_EQ(td::sigmoid(td::constant(-740.0, td::f64)).item<double>(), std::exp(-740.0));
  EXPECT_EQ(td::sigmoid(td::constant(-INFINITY, td::f32)).item<float>(), 0);
  EXPECT_EQ(td::sigmoid(td::constant(INFINITY, td::f32)).item<float>(), 1);
  EXPECT_TRUE(std::isnan(td::sigmoid(td::constant(NAN, td::f32)).item<float>()));
}

TEST(Activations, AreTheirFormulas) {
  const Tensor x = concat({drawn({50}, 1), constant({0.0F, -90.0F, 90.0F, 20.0F, -20.0F})});
  expect_near(gelu(x),
              mapped(x, [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2))); }));
  expect_near(silu(x), mapped(x, [](double v) { return v / (1 + std::exp(-v)); }));
  expect_near(softplus(x), mapped(x, [](double v) {
                return std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v)));
              }));
  expect_near(leaky_relu(x), mapped(x, [](double v) { return v < 0 ? 0.01 * v : v; }));
  expect_near(leaky_relu(x, 0.3), mapped(x, [](double v) { return v < 0 ? 0.3 * v : v; }));
  EXPECT_EQ(gelu(constant({1, 2})).dtype(), DType::f32) << "integers become floats";
}

TEST(Reductions, MadeOfOthersAreTheirFormulas) {
  const Tensor x = drawn({4, 50}, 2);
  const Doubles list = x.to_vector<double>();
  Doubles means, vars, deviations, sums, norms;
  for (size_t row = 0; row < 4; ++row) {
    double total = 0, squares = 0, exps = 0, all_squares = 0;
    for (size_t i = 0; i < 50; ++i) total += list[row * 50 + i];
    const double mean = total / 50;
    for (size_t i = 0; i < 50; ++i) {
      const double v = list[row * 50 + i];
      squares += (v - mean) * (v - mean);
      exps += std::exp(v);
      all_squares += v * v;
    }
    means.push_back(mean);
    vars.push_back(squares / 50);
    deviations.push_back(std::sqrt(squares / 50));
    sums.push_back(std::log(exps));
    norms.push_back(std::sqrt(all_squares));
  }
  expect_near(mean(x, 1), means);
  expect_near(var(x, 1), vars);
  expect_near(td::std(x, 1, keepdims), deviations);
  expect_near(logsumexp(x, -1), sums);
  expect_near(norm(x, 1), norms);
  EXPECT_EQ(td::std(x, 1, keepdims).shape(), (Shape{4, 1}));
  EXPECT_EQ(logsumexp(x, {0, 1}).shape(), Shape{});
  EXPECT_EQ(logsumexp(constant({1000.0F, 1000.0F})).item<float>(), 1000 + std::log(2.0F));
  const float inf = INFINITY;
  EXPECT_EQ(logsumexp(constant({-inf, -inf})).item<float>(), -inf);
  EXPECT_EQ(logsumexp(constant({inf, 0.0F})).item<float>(), inf);
  EXPECT_EQ(logsumexp(zeros({0})).item<float>(), -inf);
  // 16-bit floats add up in f32: 4096 ones are 4096, where f16 would stop at 2048.
  EXPECT_EQ(mean(ones({4096}, DType::f16)).item<float>(), 1);
}

Doubles normalised(const Tensor& x, bool centre, double epsilon) {
  Doubles list = x.to_vector<double>();
  const auto n = static_cast<size_t>(int64_t{x.shape()[-1]});
  for (size_t row = 0; row < list.size() / n; ++row) {
    double mean = 0, squares = 0;
    for (size_t i = 0; centre && i < n; ++i) mean += list[row * n + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      double& v = list[row * n + i];
      v -= mean;
      squares += v * v / static_cast<double>(n);
    }
    for (size_t i = 0; i < n; ++i) list[row * n + i] /= std::sqrt(squares + epsilon);
  }
  return list;
}

TEST(Norms, AreTheirFormulas) {
  const Tensor x = drawn({2, 3, 17}, 3), scale = drawn({17}, 4), bias = drawn({17}, 5);
  expect_near(layer_norm(x), normalised(x, true, 1e-5));
  expect_near(rms_norm(x), normalised(x, false, 1e-5));
  expect_near(layer_norm(x, {.epsilon = 0.5}), normalised(x, true, 0.5));
  Doubles want = normalised(x, true, 1e-5);
  const Doubles factor = scale.to_vector<double>(), shift = bias.to_vector<double>();
  for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] * factor[i % 17] + shift[i % 17];
  expect_near(layer_norm(x, {.scale = scale, .bias = bias}), want);
}

// softmax(q k' scale) v for [tokens, features], where keep(i, j).
Doubles attended(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                 const std::function<bool(size_t, size_t)>& keep) {
  const auto rows = static_cast<size_t>(int64_t{q.shape()[-2]}),
             keys = static_cast<size_t>(int64_t{k.shape()[-2]}),
             inner = static_cast<size_t>(int64_t{q.shape()[-1]}),
             columns = static_cast<size_t>(int64_t{v.shape()[-1]});
  const Doubles a = q.to_vector<double>(), b = k.to_vector<double>(), c = v.to_vector<double>();
  Doubles result;
  for (size_t i = 0; i < rows; ++i) {
    Doubles weights(keys);
    double total = 0;
    for (size_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (size_t f = 0; f < inner; ++f) dot += a[i * inner + f] * b[j * inner + f];
      weights[j] = keep(i, j) ? std::exp(dot * scale) : 0;
      total += weights[j];
    }
    for (size_t f = 0; f < columns; ++f) {
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) sum += weights[j] / total * c[j * columns + f];
      result.push_back(sum);
    }
  }
  return result;
}

TEST(Attention, IsItsFormula) {
  const Tensor q = drawn({5, 8}, 6), k = drawn({7, 8}, 7), v = drawn({7, 3}, 8);
  const auto every = [](size_t, size_t) { return true; };
  expect_near(attention(q, k, v), attended(q, k, v, 1 / std::sqrt(8.0), every), 1e-5);
  expect_near(attention(q, k, v, {.scale = 0.5}), attended(q, k, v, 0.5, every), 1e-5);
  expect_near(attention(q, k, v, {.causal = true}),
              attended(q, k, v, 1 / std::sqrt(8.0), [](size_t i, size_t j) { return j <= i; }),
              1e-5);
  const Tensor mask = arange(7) < 4;
  expect_near(attention(q, k, v, {.mask = mask}),
              attended(q, k, v, 1 / std::sqrt(8.0), [](size_t, size_t j) { return j < 4; }), 1e-5);
  const Tensor batch = attention(broadcast_to(q, {2, 3, 5, 8}), k, v);
  EXPECT_EQ(batch.shape(), (Shape{2, 3, 5, 3}));
  expect_near(batch[{1, 2}], attended(q, k, v, 1 / std::sqrt(8.0), every), 1e-5);
}

TEST(Losses, AreTheirFormulas) {
  const Tensor a = drawn({4, 5}, 9), b = drawn({4, 5}, 10);
  const Doubles x = a.to_vector<double>(), y = b.to_vector<double>();
  double squares = 0, entropy = 0;
  for (size_t i = 0; i < 20; ++i) squares += (x[i] - y[i]) * (x[i] - y[i]) / 20;
  expect_near(mse(a, b), {squares});
  const std::vector<int> labels = {3, 0, 4, 1};
  for (size_t row = 0; row < 4; ++row) {
    double total = 0;
    for (size_t i = 0; i < 5; ++i) total += std::exp(x[row * 5 + i]);
    entropy += (std::log(total) - x[row * 5 + static_cast<size_t>(labels[row])]) / 4;
  }
  expect_near(sparse_softmax_cross_entropy(constant(labels), a), {entropy});
}

TEST(Embedding, PicksRows) {
  const Tensor table = reshape(arange(12), {4, 3});
  EXPECT_EQ(embedding(table, constant({{3, 0}, {1, 1}})).shape(), (Shape{2, 2, 3}));
  EXPECT_EQ((embedding(table, constant({3, 0}))[0].to_vector<int>()),
            (std::vector<int>{9, 10, 11}));
}

TEST(Dropout, ZeroesItsShareAndScalesTheRest) {
  const Tensor x = full({100000}, 3.0F);
  const Tensor y = dropout(x, {.rate = 0.25, .key = random::Key(1)});
  const double zeros = sum(y == 0).item<double>() / 1e5;
  EXPECT_NEAR(zeros, 0.25, 5 * 0.433 / 316);
  EXPECT_TRUE(td::all((y == 0) | (y == 4.0F)).item<bool>());
  EXPECT_TRUE(identical(dropout(x, {.rate = 0, .key = random::Key(1)}), x));
}

// ---- images -------------------------------------------------------------------------------------

struct Window {
  int64_t size, stride, dilation, low;
};

// sum over taps of x[n, oh*s + kh*d - p, ...] * w, by plain loops; layouts NHWC and HWIO.
Doubles convolved(const Tensor& x, const Tensor& w, const Shape& out, Window window,
                  int64_t groups) {
  const Doubles a = x.to_vector<double>(), b = w.to_vector<double>();
  const int64_t height = x.shape()[1], width = x.shape()[2], channels = x.shape()[3];
  const int64_t each = w.shape()[2], outs = w.shape()[3];
  Doubles result;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t i = 0; i < out[1]; ++i)
      for (int64_t j = 0; j < out[2]; ++j)
        for (int64_t o = 0; o < outs; ++o) {
          double total = 0;
          for (int64_t p = 0; p < w.shape()[0]; ++p)
            for (int64_t q = 0; q < w.shape()[1]; ++q)
              for (int64_t c = 0; c < each; ++c) {
                const int64_t row = i * window.stride + p * window.dilation - window.low;
                const int64_t column = j * window.stride + q * window.dilation - window.low;
                if (row < 0 || row >= height || column < 0 || column >= width) continue;
                const int64_t from = o / (outs / groups) * each + c;
                total += a[static_cast<size_t>(((n * height + row) * width + column) * channels +
                                               from)] *
                         b[static_cast<size_t>(((p * w.shape()[1] + q) * each + c) * outs + o)];
              }
          result.push_back(total);
        }
  return result;
}

TEST(Conv2d, IsItsFormulaInBothLayouts) {
  const Tensor x = drawn({2, 9, 7, 4}, 11), w = drawn({3, 3, 4, 5}, 12),
               g = drawn({3, 3, 2, 6}, 13);
  expect_near(conv2d(x, w), convolved(x, w, {2, 7, 5, 5}, {3, 1, 1, 0}, 1), 1e-5);
  expect_near(conv2d(x, w, {.padding = Padding::same}),
              convolved(x, w, {2, 9, 7, 5}, {3, 1, 1, 1}, 1), 1e-5);
  expect_near(conv2d(x, w, {.strides = {2, 2}, .padding = Padding::same}),
              convolved(x, w, {2, 5, 4, 5}, {3, 2, 1, 1}, 1), 1e-5);
  expect_near(conv2d(x, w, {.dilations = {2, 2}}), convolved(x, w, {2, 5, 3, 5}, {3, 1, 2, 0}, 1),
              1e-5);
  expect_near(conv2d(x, g, {.groups = 2}), convolved(x, g, {2, 7, 5, 6}, {3, 1, 1, 0}, 2), 1e-5);
  const Tensor turned = transpose(x, {0, 3, 1, 2});
  const Tensor y = conv2d(turned, w, {.layout = ImageLayout::nchw});
  EXPECT_EQ(y.shape(), (Shape{2, 5, 7, 5}));
  EXPECT_TRUE(identical(transpose(y, {0, 2, 3, 1}), conv2d(x, w)));
  EXPECT_TRUE(identical(conv2d(identity(turned), w, {.layout = ImageLayout::nchw}), y));
}

TEST(Pools, AreTheirFormulas) {
  const Tensor x = reshape(arange(0, 24, 1, DType::f32), {1, 4, 6, 1});
  EXPECT_EQ(max_pool(x).to_vector<int>(), (std::vector<int>{7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(avg_pool(x).to_vector<float>(), (std::vector<float>{3.5, 5.5, 7.5, 15.5, 17.5, 19.5}));
  EXPECT_EQ(max_pool(x, {.size = {3, 3}, .strides = {{1, 2}}}).to_vector<int>(),
            (std::vector<int>{14, 16, 20, 22}));
  // Padding counts neither as a largest element nor in an average.
  const Tensor low = -ones({1, 3, 3, 1});
  const Tensor same = max_pool(low, {.padding = Padding::same});
  EXPECT_EQ(same.to_vector<int>(), (std::vector<int>{-1, -1, -1, -1}));
  EXPECT_EQ(avg_pool(low, {.padding = Padding::same}).to_vector<int>(),
            (std::vector<int>{-1, -1, -1, -1}));
  EXPECT_EQ(max_pool(cast(x, DType::i32)).dtype(), DType::i32);
  const Tensor turned = transpose(x, {0, 3, 1, 2});
  EXPECT_EQ(max_pool(turned, {.layout = ImageLayout::nchw}).shape(), (Shape{1, 1, 2, 3}));
}

// ---- shape --------------------------------------------------------------------------------------

TEST(Shapes, OpsMadeOfViewsAndPieces) {
  using Ints = std::vector<int>;
  const Tensor x = reshape(arange(6), {2, 3});
  EXPECT_EQ(tile(x, {2}).to_vector<int>(), (Ints{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(tile(x, {2, 1}).shape(), (Shape{4, 3}));
  EXPECT_EQ(tile(arange(2), {2, 2}).to_vector<int>(), (Ints{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(repeat(x, 2, 1).to_vector<int>(), (Ints{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(repeat(x, 2, 0).shape(), (Shape{4, 3}));
  EXPECT_EQ(repeat(arange(2), 3).to_vector<int>(), (Ints{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(repeat(x, 0, 0).shape(), (Shape{0, 3}));
  EXPECT_EQ(flip(x).to_vector<int>(), (Ints{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(flip(x, 1).to_vector<int>(), (Ints{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(stack({x, x}, -1).shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(unstack(x, 1)[2].to_vector<int>(), (Ints{2, 5}));
  EXPECT_EQ(split(x, {1, 2}, 1)[1].to_vector<int>(), (Ints{1, 2, 4, 5}));
  EXPECT_EQ(tril(ones({3, 3}, DType::i32)).to_vector<int>(), (Ints{1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(triu(ones({2, 3}, DType::i32), 1).to_vector<int>(), (Ints{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(tril(ones({2, 3}, DType::i32), -1).to_vector<int>(), (Ints{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(one_hot(constant({2, 0, 5, -1}), 3).to_vector<int>(),
            (Ints{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pad(arange(2), {{1, 2}}, 9).to_vector<int>(), (Ints{9, 0, 1, 9, 9}));
  EXPECT_EQ(outer(arange(2), arange(3)).to_vector<int>(), (Ints{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(tensordot(x, transpose(x), 1).to_vector<int>(), (Ints{5, 14, 14, 50}));
  EXPECT_EQ(tensordot(x, x).item<int>(), 55);
  EXPECT_EQ(tensordot(x, x, 0).shape(), (Shape{2, 3, 2, 3}));
}

TEST(Matmul, TakesVectorsBatchesAndTransposes) {
  const Tensor a = drawn({3, 4}, 14), b = drawn({4, 5}, 15), v = drawn({4}, 16);
  EXPECT_EQ(matmul(a, v).shape(), (Shape{3}));
  EXPECT_EQ(matmul(v, b).shape(), (Shape{5}));
  EXPECT_EQ(matmul(v, v).shape(), Shape{});
  EXPECT_TRUE(
      identical(matmul(transpose(a), transpose(b), {.transpose_a = true, .transpose_b = true}),
                matmul(a, b)));
  EXPECT_TRUE(identical(matmul(broadcast_to(a, {2, 3, 4}), b)[1], matmul(a, b)));
  EXPECT_TRUE(identical(reshape(matmul(a, expand_dims(v, 1)), {3}), matmul(a, v)));
}

// At 16 bits the squares of these would be infinite; in f32 they are not.
TEST(Composite, LowPrecisionIsComputedInF32AndRoundedOnce) {
  const Tensor same = full({4}, 300, DType::f16);
  EXPECT_EQ(rms_norm(same).to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  const Tensor apart = constant({-1000.0, 1000.0}, DType::f16);
  EXPECT_EQ(layer_norm(apart).to_vector<float>(), (std::vector<float>{-1, 1}));
  EXPECT_EQ(norm(apart).item<float>(), static_cast<float>(float16(1414.2135F)));
  EXPECT_EQ(tidemark::std(apart).item<float>(), 1000);
  EXPECT_EQ(mse(apart, apart * 0.5).dtype(), DType::f16);
  const double many = logsumexp(zeros({100000}, DType::f16)).item<double>();
  EXPECT_NEAR(many, std::log(100000.0), 0.01);
}

}  // namespace
}  // namespace tidemark

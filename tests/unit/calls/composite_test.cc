// Composites against plain loops in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

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

// The first and the second derivative of an elementwise function at one point, in eager code and in
// a function.
void expect_slopes_at(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                      const Doubles& first, const Doubles& second) {
  const auto total = [&](const Tensor& at) { return sum(f(at)); };
  const auto slopes = [&](const Tensor& at) { return grad(total)(at); };
  const auto curvatures = [&](const Tensor& at) { return hvp(total, at, ones_like(at)); };
  expect_near(slopes(x), first);
  expect_near(function(slopes)(x), first);
  expect_near(curvatures(x), second);
  expect_near(function(curvatures)(x), second);
}

TEST(Activations, HaveTheirSlopesWhereBranchesMeet) {
  const Tensor zero = constant({0.0F, -0.0F});
  expect_slopes_at(softplus, zero, {0.5, 0.5}, {0.25, 0.25});
  expect_slopes_at(silu, zero, {0.5, 0.5}, {0.5, 0.5});
  const double curvature = std::sqrt(2 / std::numbers::pi);
  expect_slopes_at(gelu, zero, {0.5, 0.5}, {curvature, curvature});
  expect_slopes_at(relu, zero, {0, 0}, {0, 0});
  expect_slopes_at(nn::Activation("elu"), zero, {1, 1}, {1, 1});
}

// 1 + erf(x) would be 0 there.
TEST(Activations, GeluKeepsItsDigitsWhereItIsSmall) {
  for (const double x : {-3.0, -6.0, -9.0, -12.0}) {
    const double want = x * 0.5 * std::erfc(-x / std::sqrt(2));
    EXPECT_NEAR(gelu(constant(x, td::f32)).item<double>(), want, -want * 1e-4) << x;
    EXPECT_NEAR(gelu(constant(x, td::f64)).item<double>(), want, -want * 1e-12) << x;
  }
}

TEST(Lengths, HaveNoSlopeWhereTheyAreZero) {
  const Tensor rows = constant({{0.0F, 0.0F}, {3.0F, 4.0F}});
  expect_slopes_at([](const Tensor& x) { return norm(x, 1); }, rows, {0, 0, 0.6, 0.8},
                   {0, 0, 0.032, -0.024});
  expect_slopes_at([](const Tensor& x) { return td::std(x, 1); }, constant({{2.0F, 2.0F}}), {0, 0},
                   {0, 0});
  EXPECT_EQ(norm(zeros({3})).item<float>(), 0);
}

// No division: the product of the others, whatever one is.
TEST(Product, HasDerivativesAtZerosInfinitiesAndBeyondItsRange) {
  const auto slopes = grad([](const Tensor& x) { return prod(x); });
  const auto hessian = [&](const Tensor& x, int64_t column) {
    return hvp([](const Tensor& at) { return prod(at); }, x,
               cast(arange(x.size()) == column, x.dtype()));
  };
  expect_near(slopes(constant({0.0F, 2.0F, 3.0F})), {6, 0, 0});
  expect_near(hessian(constant({0.0F, 2.0F, 3.0F}), 0), {0, 3, 2});
  expect_near(hessian(constant({0.0F, 2.0F, 3.0F}), 1), {3, 0, 0});
  expect_near(hessian(constant({0.0F, 2.0F, 0.0F, 5.0F, 7.0F}), 0), {0, 0, 70, 0, 0});
  EXPECT_EQ(slopes(constant({1e30F, 1e30F})).to_vector<float>(),
            (std::vector<float>{1e30F, 1e30F}));
  EXPECT_EQ(slopes(constant({1e-30F, 1e-30F})).to_vector<float>(),
            (std::vector<float>{1e-30F, 1e-30F}));
  EXPECT_EQ(slopes(constant({INFINITY, 2.0F})).to_vector<float>(),
            (std::vector<float>{2, INFINITY}));
  EXPECT_EQ(slopes(zeros({0})).size(), 0);
  const auto over_first_and_last = [](const Tensor& x) { return sum(prod(x, {0, 2})); };
  const Tensor x = reshape(arange(1, 13, 1, td::f64), {2, 2, 3});
  const Doubles rows = {1 * 2 * 3 * 7 * 8 * 9, 4 * 5 * 6 * 10 * 11 * 12};
  Doubles want;
  for (int i = 1; i <= 12; ++i) want.push_back(rows[static_cast<size_t>((i - 1) / 3 % 2)] / i);
  expect_near(grad(over_first_and_last)(x), want);
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

TEST(Reductions, MeansOfLargeIntegersDoNotWrap) {
  const uint64_t largest = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(td::mean(td::constant(std::vector<uint64_t>{largest, largest})).item<float>(), 0x1p64F);
  const int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(td::mean(td::constant(std::vector<int64_t>{large, large, large})).item<float>(),
            0x1p63F);
  EXPECT_EQ(td::mean(td::constant(std::vector<int64_t>{1, 2})).item<float>(), 1.5F);
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

// As where padding stands before the text and a token sees none but padding.
TEST(Attention, GivesZerosWithoutASlopeWhereNoKeyIsSeen) {
  const Tensor q = drawn({4, 8}, 6), k = drawn({4, 8}, 7), v = drawn({4, 3}, 8);
  const Tensor padded = arange(4) >= 2;  // Keys 0 and 1 are none, and so queries 0 and 1 see none.
  const AttentionOptions options{.causal = true, .mask = padded};
  const auto f = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return attention(a, b, c, options);
  };
  const Tensor y = f(q, k, v);
  Doubles want = attended(q, k, v, 1 / std::sqrt(8.0),
                          [](size_t i, size_t j) { return j <= i && (j >= 2 || i < 2); });
  std::fill(want.begin(), want.begin() + 6, 0);
  expect_near(y, want, 1e-5);
  const auto gradients = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    GradientTape tape;
    for (const Tensor* each : {&a, &b, &c}) tape.watch(*each);
    return tape.gradient(sum(square(f(a, b, c))), std::vector<Tensor>{a, b, c});
  };
  const std::vector<Tensor> slopes = gradients(q, k, v), seen = function(gradients)(q, k, v);
  EXPECT_TRUE(identical(function(f)(q, k, v), y));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(identical(slopes[i], seen[i])) << i;
    const Tensor rows = slopes[i][{Slice{.end = 2}}];
    EXPECT_TRUE(identical(rows, zeros(rows.shape()))) << slopes[i];
    EXPECT_TRUE(all(isfinite(slopes[i])).item<bool>());
  }
  // What sees a key is what it is without the others, to the bit.
  const Tensor whole = attention(q, k, v, {.mask = constant(true)});
  EXPECT_TRUE(identical(whole, attention(q, k, v)));
  EXPECT_TRUE(identical(attention(q, k, v, {.mask = constant(false)}), zeros({4, 3})));
  const Tensor halves = attention(cast(q, f16), cast(k, f16), cast(v, f16), options);
  EXPECT_EQ(halves.dtype(), f16);
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
  // 16-bit floats add up in f32.
  EXPECT_EQ(avg_pool(cast(full({1, 2, 2, 1}, 6e4), DType::f16)).item<float>(), 6e4F);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor thirds = cast(full({1, 32, 32, 1}, 1.0 / 3), dtype);
    const Tensor average = avg_pool(thirds, {.size = {32, 32}});
    EXPECT_EQ(average.dtype(), dtype);
    EXPECT_EQ(average.item<float>(), max(thirds).item<float>());
  }
  EXPECT_EQ(avg_pool(low, {.padding = Padding::same}).to_vector<int>(),
            (std::vector<int>{-1, -1, -1, -1}));
  EXPECT_EQ(max_pool(cast(x, DType::i32)).dtype(), DType::i32);
  const Tensor turned = transpose(x, {0, 3, 1, 2});
  EXPECT_EQ(max_pool(turned, {.layout = ImageLayout::nchw}).shape(), (Shape{1, 1, 2, 3}));
}

// By its definition: each window's gradient goes to its first largest element. One channel.
Doubles to_largest(const Doubles& x, const Doubles& g, int64_t edge, const PoolOptions& options,
                   int64_t low, int64_t out) {
  Doubles slopes(x.size());
  const std::array<int64_t, 2> strides = options.strides.value_or(options.size);
  for (int64_t window = 0; window < out * out; ++window) {
    int64_t best = -1;
    for (int64_t tap = 0; tap < options.size[0] * options.size[1]; ++tap) {
      const int64_t row = window / out * strides[0] + tap / options.size[1] - low;
      const int64_t column = window % out * strides[1] + tap % options.size[1] - low;
      if (row < 0 || row >= edge || column < 0 || column >= edge) continue;
      const int64_t at = row * edge + column;
      if (best < 0 || x[static_cast<size_t>(at)] > x[static_cast<size_t>(best)]) best = at;
    }
    slopes[static_cast<size_t>(best)] += g[static_cast<size_t>(window)];
  }
  return slopes;
}

TEST(Pools, GiveTheirGradientToTheFirstLargestElement) {
  struct Case {
    PoolOptions options;
    int64_t low, out;
  };
  const Case cases[] = {{{}, 0, 3},
                        {{.size = {3, 3}}, 0, 2},
                        {{.size = {3, 3}, .strides = {{2, 2}}}, 0, 3},
                        {{.size = {2, 2}, .strides = {{1, 1}}}, 0, 6},
                        {{.size = {2, 2}, .strides = {{3, 3}}}, 0, 2},
                        {{.size = {3, 3}, .strides = {{1, 1}}, .padding = Padding::same}, 1, 7}};
  const Tensor drawn_image = drawn({1, 7, 7, 1}, 31);
  const Tensor ties = round(drawn_image * 0.7);  // Mostly -1, 0 and 1.
  for (const Case& each : cases) {
    const Tensor weights = drawn({1, each.out, each.out, 1}, 32);
    const auto slopes = [&](const Tensor& image) {
      GradientTape tape;
      tape.watch(image);
      return tape.gradient(sum(max_pool(image, each.options) * weights), image);
    };
    const auto compiled = function(slopes);
    for (const Tensor& image : {drawn_image, ties}) {
      const Tensor got = slopes(image);
      expect_near(got, to_largest(image.to_vector<double>(), weights.to_vector<double>(), 7,
                                  each.options, each.low, each.out));
      EXPECT_TRUE(identical(compiled(image), got));
    }
    // The gradient is linear in what comes in: its own gradient picks the places it was put.
    GradientTape outer;
    outer.watch(weights);
    const auto by_image = [&] {
      GradientTape tape;
      tape.watch(ties);
      return tape.gradient(sum(max_pool(ties, each.options) * weights), ties);
    };
    const Tensor total = sum(by_image() * drawn_image);
    const Tensor picked = outer.gradient(total, weights);
    Doubles want;
    for (int64_t window = 0; window < each.out * each.out; ++window) {
      Doubles one(static_cast<size_t>(each.out * each.out));
      one[static_cast<size_t>(window)] = 1;
      const Doubles place =
          to_largest(ties.to_vector<double>(), one, 7, each.options, each.low, each.out);
      double sum = 0;
      for (size_t i = 0; i < place.size(); ++i)
        sum += place[i] * drawn_image.to_vector<double>()[i];
      want.push_back(sum);
    }
    expect_near(picked, want);
  }
}

TEST(Pools, HoldNoPaddedCopiesForTheirGradient) {
  const MachineCode machine;
  const auto f = function([](const Tensor& image) {
    GradientTape tape;
    tape.watch(image);
    return tape.gradient(sum(square(max_pool(image))), image);
  });
  constexpr int64_t image = 8 * 64 * 64 * 32 * 4;
  const Plan plan = f.plan(spec({8, 64, 64, 32}));
  // The gradient, the windows' results and what their taps get: 17 MiB as the sum of padded arrays.
  EXPECT_LE(plan.peak().count, 2 * image + image * 3 / 4) << plan.explain();
  const Tensor x = drawn({8, 64, 64, 32}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = max_pool(x);
  EXPECT_EQ(tape.saved_bytes().count, image + image / 4);  // The image, and the largest of it.
  const auto pause = tape.stop_recording();
  const auto [result, profile] = f.profile(x);
  EXPECT_EQ(profile.touched, profile.planned);
  EXPECT_EQ(profile.planned, plan.peak());
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

TEST(Shapes, RollMovesAlongSeveralAxes) {
  using Ints = std::vector<int>;
  const Tensor x = reshape(arange(6), {2, 3});
  EXPECT_EQ(roll(x, {1, -1}, {0, 1}).to_vector<int>(), (Ints{4, 5, 3, 1, 2, 0}));
  EXPECT_EQ(roll(x, {-1, 7}, {-1, -2}).to_vector<int>(), (Ints{4, 5, 3, 1, 2, 0}));
  EXPECT_EQ(roll(x, {1}, {0, 1}).to_vector<int>(), (Ints{5, 3, 4, 2, 0, 1}));
  EXPECT_EQ(roll(x, {1, 1}, {1, 1}).to_vector<int>(), (Ints{1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(roll(zeros({0, 3}), {1, 1}, {0, 1}).shape(), (Shape{0, 3}));
  const Variable v(arange(6.0));
  GradientTape tape;
  const Tensor moved = roll(reshape(v, {2, 3}), {1, 1}, {0, 1});
  const Tensor slope = tape.gradient(sum(moved * x), v);
  EXPECT_EQ(slope.to_vector<int>(), (Ints{4, 5, 3, 1, 2, 0}));
}

// x[i, j, k] = 100i + 10j + k, so that each product names its elements.
TEST(Shapes, TensordotPairsTheAxesInTheOrderGiven) {
  using Ints = std::vector<int>;
  const Tensor i = reshape(arange(2), {2, 1, 1}), j = reshape(arange(3), {3, 1}), k = arange(2);
  const Tensor x = 100 * i + 10 * j + k, y = constant({{1, 2}, {0, 1}, {3, 0}});
  // The sum over j and k of x[i, j, k] * y[j, k].
  EXPECT_EQ(tensordot(x, y, {.axes_a = {2, 1}, .axes_b = {-1, 0}}).to_vector<int>(),
            (Ints{73, 773}));
  // z[j, l] is the sum over i and k of x[i, j, k] * x[k, l, i].
  const Tensor z = tensordot(x, x, {.axes_a = {2, 0}, .axes_b = {0, 2}});
  EXPECT_EQ(z.shape(), (Shape{3, 3}));
  EXPECT_EQ((z[{1, 2}].item<int>()), 10 * 20 + 11 * 120 + 110 * 21 + 111 * 121);
  EXPECT_EQ(tensordot(x, y, TensordotAxes{}).shape(), (Shape{2, 3, 2, 3, 2}));
  EXPECT_EQ(tensordot(k, k, {.axes_a = {0}, .axes_b = {0}}).item<int>(), 1);
  EXPECT_EQ(tensordot(zeros({0, 2}), zeros({0, 3}), {.axes_a = {0}, .axes_b = {0}}).shape(),
            (Shape{2, 3}));
}

TEST(Shapes, TheGradientOfTensordotIsTensordot) {
  Variable x(reshape(arange(12.0), {2, 3, 2}));
  const Tensor y = constant({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  GradientTape tape;
  const Tensor sums = tensordot(x, y, {.axes_a = {0, 1}, .axes_b = {0, 1}});
  const Tensor slope = tape.gradient(sum(sums * constant({1.0, 10.0})), x);
  EXPECT_EQ(slope.to_vector<double>(),
            (std::vector<double>{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}));
}

// Rows a power of two apart, few columns, and sizes that no block divides: each has loops of its
// own.
TEST(Shapes, TransposedCopiesHaveTheElementsOfTheirViews) {
  const Shape shapes[] = {{67, 1024}, {67, 4096}, {9, 8192}, {3, 37},
                          {2, 100},   {130, 70},  {5, 4099}};
  for (const DType dtype : {f64, f32, i16, u8}) {
    for (const Shape& shape : shapes) {
      const Tensor whole = cast(reshape(arange(shape[0] * shape[1]) % 251, shape), dtype);
      for (const Tensor& x : {whole, whole[{Slice{}, Slice{.begin = 5}}]}) {
        const int64_t m = x.shape()[0], n = x.shape()[1];
        const Doubles from = cast(x, f64).to_vector<double>(),
                      to = cast(identity(transpose(x)), f64).to_vector<double>();
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(to[size_t(j * m + i)], from[size_t(i * n + j)]) << dtype << x.shape();
      }
    }
  }
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

// The gradient of the sum of all weighted distances between points of three coordinates.
Doubles slopes_of_distances(const Tensor& a, const Tensor& b, const Tensor& weights) {
  const Doubles x = a.to_vector<double>(), y = b.to_vector<double>(),
                w = weights.to_vector<double>();
  Doubles slopes(x.size(), 0);
  const size_t rows = x.size() / 3, columns = y.size() / 3;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const auto apart = [&](size_t k) { return x[3 * i + k] - y[3 * j + k]; };
      const double distance = std::hypot(apart(0), apart(1), apart(2));
      for (size_t k = 0; distance > 0 && k < 3; ++k)
        slopes[3 * i + k] += w[i * columns + j] * apart(k) / distance;
    }
  }
  return slopes;
}

void expect_slopes_of_distances(const Tensor& a, const Tensor& b, double relative) {
  const Tensor weights = cast(drawn({a.shape()[0], b.shape()[0]}, 9), a.dtype());
  const auto slopes = [&](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    const auto [by_a, by_b] = tape.gradient(sum(cdist(a, b) * weights), std::pair{a, b});
    return std::array{by_a, by_b};
  };
  const std::array<Tensor, 2> eager = slopes(a, b), compiled = function(slopes)(a, b);
  expect_near(eager[0], slopes_of_distances(a, b, weights), relative);
  expect_near(eager[1], slopes_of_distances(b, a, transpose(weights)), relative);
  EXPECT_TRUE(identical(eager[0], compiled[0]) && identical(eager[1], compiled[1]));
}

// A sum of differences must not become a difference of sums in the dtype of the points.
TEST(Cdist, ClosePointsHaveExactSlopes) {
  const Tensor x = drawn({40, 3}, 1), beside = drawn({40, 3}, 2);
  for (const double apart : {1.0, 1e-2, 1e-4, 1e-6})
    expect_slopes_of_distances(x, x + apart * beside, 2e-5);
  const Tensor clusters = concat({x, x + 1000.0});
  expect_slopes_of_distances(clusters, clusters + concat({beside, beside}) * 0.5, 2e-5);
}

// There is no wider dtype to compute these in.
TEST(Cdist, CloseDoublesHaveExactSlopes) {
  const Tensor x = cast(drawn({300, 3}, 1), DType::f64),
               beside = cast(drawn({300, 3}, 2), DType::f64);
  for (const double apart : {1.0, 1e-4, 1e-8, 1e-12})
    expect_slopes_of_distances(x, x + apart * beside, 1e-13);
}

// Distances among the denormals have few digits, and so have the slopes.
TEST(Cdist, SlopesOfCloseHalfFloatsAreFinite) {
  const Tensor x = cast(drawn({20, 3}, 1) * 1e-4, DType::f16);
  expect_slopes_of_distances(x, x + cast(drawn({20, 3}, 2) * 1e-6, DType::f16), 0.2);
  expect_slopes_of_distances(cast(x, DType::bf16), cast(x * 1.01, DType::bf16), 5e-2);
}

// Kernels split an angle in one of three ways, by the largest angle of a vector.
TEST(Composite, AVectorMayHoldAnglesOfAllSizes) {
  std::vector<float> angles;
  for (int i = 0; i < 4000; ++i) {
    // Vectors of near angles, of near and moderate ones, and of all.
    const int sizes = i / 64 % 3 == 0 ? 18 : i / 64 % 3 == 1 ? 30 : 127;
    angles.push_back(
        std::ldexp(static_cast<float>(i % 2 == 0 ? i + 4096 : -i - 4096), i * 7919 % sizes - 12));
  }
  const Tensor x = td::constant(angles);
  const auto functions = [&] { return std::array{td::sin(x), td::cos(x), td::tan(x)}; };
  const MachineCode machine;
  compile::set_emitter(compile::Emitter::tile);
  const auto expected = functions();
  compile::set_emitter(compile::Emitter::llvm);
  const auto got = functions();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << i;
}

// Rows of 160,004 bytes begin in the middle of a line, those of 160,000 do not; together they are
// larger than the last cache of most machines, so that they are stored past it.
TEST(Composite, LargeResultsAfterSweepsHaveTheBitsOfEagerCode) {
  for (const int64_t columns : {40'000, 40'001}) {
    const Tensor x = random::normal({300, columns}, {.key = random::Key(3)});
    const auto body = [](const Tensor& x) { return log_softmax(x * 3.0); };
    const Tensor expected = body(x);
    const MachineCode machine;
    EXPECT_TRUE(identical(function(body)(x), expected)) << columns;
  }
}

}  // namespace
}  // namespace tidemark

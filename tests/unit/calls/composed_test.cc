// Functions of several ops that eager code has called often run as one program.
#include "tidemark/tensor/composed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

struct Composite {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& y)> call;
};

const std::vector<Composite>& composites() {
  static const std::vector<Composite> all = {
      {"nextafter", [](const Tensor& x, const Tensor& y) { return nextafter(x, y); }},
      {"nan_to_num", [](const Tensor& x, const Tensor&) { return nan_to_num(x, {.nan = 3}); }},
      {"leaky_relu", [](const Tensor& x, const Tensor&) { return leaky_relu(x, 0.3); }},
      {"isclose", [](const Tensor& x, const Tensor& y) { return isclose(x, y, {.rtol = 0.4}); }},
      {"allclose", [](const Tensor& x, const Tensor& y) { return allclose(x, y); }},
      {"mean", [](const Tensor& x, const Tensor&) { return mean(x, 0); }},
      {"var", [](const Tensor& x, const Tensor&) { return var(x, -1, keepdims); }},
      {"std", [](const Tensor& x, const Tensor&) { return std(x); }},
      {"logsumexp", [](const Tensor& x, const Tensor&) { return logsumexp(x, -1); }},
      {"norm", [](const Tensor& x, const Tensor&) { return norm(x, -1); }},
      {"layer_norm", [](const Tensor& x,
                        const Tensor& y) { return layer_norm(x, {.scale = y[0], .bias = y[1]}); }},
      {"rms_norm", [](const Tensor& x, const Tensor&) { return rms_norm(x); }},
      {"mse", [](const Tensor& x, const Tensor& y) { return mse(x, y); }},
      {"cumlogsumexp",
       [](const Tensor& x, const Tensor&) { return cumlogsumexp(x, 1, {.exclusive = true}); }},
      {"complex product",
       [](const Tensor& x, const Tensor& y) {
         return view_as_real(complex(x, y) * complex(y, x));
       }},
      {"dropout", [](const Tensor& x,
                     const Tensor&) { return dropout(x, {.rate = 0.25, .key = random::Key(3)}); }},
      {"exponential",
       [](const Tensor& x, const Tensor&) {
         return random::exponential(x.shape(), {.rate = 3, .key = random::Key(1)});
       }},
      {"laplace",
       [](const Tensor& x, const Tensor&) {
         return random::laplace(x.shape(), {.mean = 3, .key = random::Key(1)});
       }},
      {"truncated_normal", [](const Tensor& x, const Tensor&) {
         return random::truncated_normal(x.shape(), {.low = 6, .high = 7, .key = random::Key(1)});
       }}};
  return all;
}

Tensor draws(const Shape& shape, uint64_t seed) {
  return random::uniform(shape, {.low = -2, .high = 2, .key = random::Key(seed)});
}

// More calls than it takes until there is a program.
constexpr int kMany = 5000;

TEST(Composed, HasTheSameBitsFromTheFirstCallToTheLast) {
  for (const Composite& each : composites()) {
    SCOPED_TRACE(each.name);
    const Tensor x = draws({5, 7}, 1), y = draws({5, 7}, 2);
    const Tensor first = each.call(x, y);
    for (int i = 0; i < kMany; ++i) each.call(x, y);
    EXPECT_TRUE(identical(first, each.call(x, y)));
    const Tensor x2 = draws({5, 7}, 3), y2 = draws({5, 7}, 4);
    EXPECT_TRUE(identical(each.call(x2, y2), function([&](const Tensor& a, const Tensor& b) {
                            return each.call(a, b);
                          })(x2, y2)));
  }
}

TEST(Composed, TakesOperandsInAnyOrderAndOfAnyType) {
  const Tensor x = draws({40, 30}, 1);
  for (const Tensor& given : {transpose(x), flip(x, 0), cast(x, f64), cast(x, bf16), x[3]}) {
    const Tensor first = norm(given, -1), next = nextafter(given, zeros_like(given));
    for (int i = 0; i < kMany; ++i) {
      norm(given, -1);
      nextafter(given, zeros_like(given));
    }
    EXPECT_TRUE(identical(first, norm(given, -1)));
    EXPECT_TRUE(identical(next, nextafter(given, zeros_like(given))));
  }
}

// Options are part of what a program depends on.
TEST(Composed, KeepsOptionsApart) {
  const Tensor x = draws({6}, 1);
  for (int i = 0; i < kMany; ++i) leaky_relu(x, 0.25);
  EXPECT_TRUE(identical(leaky_relu(x, 0.5), where(x >= 0, x, x * 0.5)));
  EXPECT_TRUE(identical(leaky_relu(x, 0.25), where(x >= 0, x, x * 0.25)));
}

TEST(Composed, IsRecordedOpByOp) {
  const Tensor x = draws({6}, 1);
  for (int i = 0; i < kMany; ++i) mean(x);
  GradientTape tape;
  tape.watch(x);
  EXPECT_TRUE(identical(tape.gradient(mean(x), x), ones_like(x) / 6));
}

// Of operands and gradients that are zeros of both signs, infinite or no numbers.
TEST(Composed, GradientsOfLeakyReluHaveTheBitsOfItsOps) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {0, -0.0F, 2, -3, infinity, -infinity, std::nanf("")};
  const int64_t count = static_cast<int64_t>(edges.size());
  const Tensor all = constant(edges);
  const Tensor x = reshape(repeat(all, count), {count, count});
  const Tensor g = reshape(tile(all, {count}), {count, count});
  const auto slope_of = [&](const auto& call) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = call(x);
    return tape.gradient(y, x, {.output_gradients = g});
  };
  const auto by_ops = [](const Tensor& of) { return where(of >= 0, of, of * 0.25); };
  const auto at_once = [](const Tensor& of) { return leaky_relu(of, 0.25); };
  const Tensor expected = slope_of(by_ops);
  for (int i = 0; i < kMany; ++i) slope_of(at_once);
  EXPECT_TRUE(identical(slope_of(at_once), expected));
}

// Composites that a tape records as a whole, ops whose gradient rules are several ops, and pooling.
const std::vector<Composite>& with_gradients() {
  static const std::vector<Composite> all = {
      {"layer_norm", [](const Tensor& x,
                        const Tensor& y) { return layer_norm(x, {.scale = y[0], .bias = y[1]}); }},
      {"rms_norm", [](const Tensor& x, const Tensor& y) { return rms_norm(x, {.scale = y}) + x; }},
      {"cross entropy",
       [](const Tensor& x, const Tensor&) {
         return sparse_softmax_cross_entropy(arange(x.shape()[0]) % 7, x);
       }},
      {"gelu", [](const Tensor& x, const Tensor& y) { return gelu(x) * y; }},
      {"leaky_relu", [](const Tensor& x, const Tensor& y) { return leaky_relu(x * y, 0.3) * y; }},
      {"silu", [](const Tensor& x, const Tensor&) { return silu(x); }},
      {"sigmoid", [](const Tensor& x, const Tensor& y) { return sigmoid(x + y); }},
      {"softmax", [](const Tensor& x, const Tensor& y) { return softmax(x, 0) * y; }},
      {"log_softmax", [](const Tensor& x, const Tensor& y) { return log_softmax(x) * y; }},
      {"pow", [](const Tensor& x, const Tensor& y) { return pow(abs(x) + 1, y); }},
      {"divide", [](const Tensor& x, const Tensor& y) { return divide(x, y[0]); }},
      {"max", [](const Tensor& x, const Tensor&) { return max(x, 0); }},
      {"max_pool",
       [](const Tensor& x, const Tensor&) {
         return max_pool(reshape(x, {2, 4, 6, 32}), {.size = {3, 3}, .strides = {{1, 2}}});
       }},
      {"avg_pool",
       [](const Tensor& x, const Tensor&) {
         return square(avg_pool(reshape(x, {2, 4, 6, 32}), {.size = {3, 2}}));
       }},
      {"avg_pool of windows that overlap", [](const Tensor& x, const Tensor&) {
         return square(avg_pool(reshape(x, {2, 4, 6, 32}),
                                {.size = {2, 2}, .strides = {{1, 1}}, .padding = Padding::same}));
       }}};
  return all;
}

using Both = std::vector<Tensor>;
Both slopes_of(const Composite& each, const Tensor& x, const Tensor& y) {
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  return tape.gradient(each.call(x, y), Both{x, y});
}
// The gradients of what a first gradient adds up to.
Both curvatures_of(const Composite& each, const Tensor& x, const Tensor& y) {
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  const Both slopes = slopes_of(each, x, y);
  return tape.gradient(sum(sin(slopes[0])) + sum(cos(slopes[1])), Both{x, y});
}

void expect_identical(const Both& a, const Both& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(identical(a[i], b[i])) << i;
}

TEST(Composed, GradientsHaveTheSameBitsFromTheFirstCallToTheLast) {
  constexpr int kManyGradients = 700;
  for (const DType dtype : {f32, bf16, f64}) {
    const Tensor x = cast(draws({24, 64}, 1), dtype), y = cast(draws({24, 64}, 2), dtype);
    for (const Composite& each : with_gradients()) {
      SCOPED_TRACE(each.name);
      const Both first = slopes_of(each, x, y), second = curvatures_of(each, x, y);
      const int calls = dtype == f32 ? kManyGradients : 1;
      for (int i = 0; i < calls; ++i) slopes_of(each, x, y);
      expect_identical(first, slopes_of(each, x, y));
      expect_identical(second, curvatures_of(each, x, y));
      expect_identical(first, function([&](const Tensor& a, const Tensor& b) {
                         return slopes_of(each, a, b);
                       })(x, y));
      expect_identical(second, function([&](const Tensor& a, const Tensor& b) {
                         return curvatures_of(each, a, b);
                       })(x, y));
    }
  }
}

TEST(Composed, GradientsByAnOperandThatIsGivenTwiceAddUpInOneOrder) {
  const Tensor x = draws({24, 64}, 1);
  const auto slope = [](const Tensor& of) {
    GradientTape tape;
    tape.watch(of);
    return tape.gradient(layer_norm(of, {.scale = of, .bias = of}) * of, of);
  };
  EXPECT_TRUE(identical(slope(x), function(slope)(x)));
}

// A gradient of -0 is added up over taps.
TEST(Composed, GradientsOfMeansHaveNoNegativeZeros) {
  const Tensor x = draws({1, 4, 4, 1}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = avg_pool(x);
  const Tensor slope = tape.gradient(y, x, {.output_gradients = full({1, 2, 2, 1}, -0.0)});
  EXPECT_TRUE(identical(slope, zeros({1, 4, 4, 1})));
}

TEST(Composed, GradientsNeedNoBytesBesideTheirResult) {
  const Tensor x = draws({1 << 10, 1 << 10}, 1), g = draws({1 << 10, 1 << 10}, 2);
  for (const auto& f : {std::function([](const Tensor& of) { return layer_norm(of); }),
                        std::function([](const Tensor& of) { return gelu(of); })}) {
    for (int i = 0; i < 8; ++i) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = f(x);
      memory::reset_peak();
      const Bytes before = memory::current();
      const Tensor slope = tape.gradient(y, x, {.output_gradients = g});
      if (i < 7) continue;
      EXPECT_LE(memory::peak(), before + Bytes(4 << 20) + 64_KiB);
    }
  }
}

// One pass over memory has no values in between.
TEST(Composed, NeedsNoBytesBesideItsResult) {
  const Tensor x = draws({1 << 20}, 1), y = draws({1 << 20}, 2);
  for (int i = 0; i < 8; ++i) nextafter(x, y);
  memory::reset_peak();
  const Bytes before = memory::current();
  const Tensor result = nextafter(x, y);
  EXPECT_LE(memory::peak(), before + Bytes(4 << 20) + 64_KiB);
}

}  // namespace
}  // namespace tidemark

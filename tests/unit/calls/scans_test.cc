// Running products, extrema and log-sum-exps, recurrences, scatters and segments, against plain
// loops and slopes by differences.
#include "tidemark/calls/scans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark {
namespace {

using Doubles = std::vector<double>;

Tensor drawn(const Shape& shape, uint64_t seed) {
  return random::uniform(shape, {.low = -1, .dtype = f64, .key = random::Key(seed)});
}

Tensor list(const Doubles& values) { return constant(values); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Scans, InBothDirectionsAndExclusive) {
  const Tensor x = list({2, 3, 4});
  EXPECT_EQ(cumprod(x).to_vector<double>(), (Doubles{2, 6, 24}));
  EXPECT_EQ(cumprod(x, 0, {.reverse = true}).to_vector<double>(), (Doubles{24, 12, 4}));
  EXPECT_EQ(cumprod(x, 0, {.exclusive = true}).to_vector<double>(), (Doubles{1, 2, 6}));
  EXPECT_EQ(cumprod(x, 0, {true, true}).to_vector<double>(), (Doubles{12, 4, 1}));
  EXPECT_EQ(cumsum(x, 0, {.exclusive = true}).to_vector<double>(), (Doubles{0, 2, 5}));
  EXPECT_EQ(cumsum(x, 0, {true, true}).to_vector<double>(), (Doubles{7, 4, 0}));
  EXPECT_EQ(cumprod(constant({2, 3}, u8)).dtype(), i64);
  EXPECT_EQ(cummax(list({1, 3, 2, NAN, 5})).to_vector<double>().at(2), 3);
  EXPECT_TRUE(std::isnan(cummax(list({1, 3, 2, NAN, 5})).to_vector<double>().at(4)));
  EXPECT_EQ(cummin(list({1, 3, 0}), 0, {.reverse = true}).to_vector<double>(), (Doubles{0, 0, 0}));
  EXPECT_EQ(linear_scan(list({9, 2, 3}), 1).to_vector<double>(), (Doubles{1, 3, 10}));
  EXPECT_EQ(linear_scan(list({2, 3, 9}), 1, 0, {.reverse = true}).to_vector<double>(),
            (Doubles{9, 4, 1}));
}

// Rows are scanned several at a time, short ones in another way than long ones.
TEST(Scans, OfRowsOfEveryLengthAreThoseOfColumns) {
  for (const DType dtype : {f32, f64, bf16, i32}) {
    for (const int64_t length : {1, 2, 4, 10, 16, 17, 64, 67}) {
      for (const int64_t rows : {1, 3, 4, 7, 8, 21}) {
        SCOPED_TRACE(testing::Message() << dtype << ' ' << rows << " x " << length);
        const Tensor x = cast(
            random::uniform({rows, length}, {.low = -3, .high = 3, .key = random::Key(1)}), dtype);
        const Tensor columns = identity(transpose(x));
        for (const bool reverse : {false, true}) {
          const RunningOptions how = {.reverse = reverse};
          EXPECT_TRUE(identical(cumsum(x, 1, how), transpose(cumsum(columns, 0, how))));
          EXPECT_TRUE(identical(cumprod(x, 1, how), transpose(cumprod(columns, 0, how))));
        }
      }
    }
  }
}

TEST(Scans, LogsumexpDoesNotOverflow) {
  const Tensor x = drawn({3, 50}, 1) * 3;
  EXPECT_TRUE(allclose(cumlogsumexp(x, 1), log(cumsum(exp(x), 1)), {.rtol = 1e-13}).item<bool>());
  const Doubles far = cumlogsumexp(list({-1000, 1000, 0, 1001})).to_vector<double>();
  EXPECT_EQ(far[0], -1000);
  EXPECT_EQ(far[1], 1000);
  EXPECT_NEAR(far[3], 1001 + std::log1p(std::exp(-1.0)), 1e-12);
  const Doubles edges =
      cumlogsumexp(list({-kInfinity, -kInfinity, -800, kInfinity, 1, NAN})).to_vector<double>();
  EXPECT_EQ(edges[1], -kInfinity);
  EXPECT_EQ(edges[2], -800);
  EXPECT_EQ(edges[3], kInfinity);
  EXPECT_EQ(edges[4], kInfinity);
  EXPECT_TRUE(std::isnan(edges[5]));
  EXPECT_EQ(cumlogsumexp(list({1, 2}), 0, {.exclusive = true}).to_vector<double>(),
            (Doubles{-kInfinity, 1}));
}

// The slope of `f` at x in a direction, by differences and by its gradient, and so for the gradient
// itself.
using Loss = std::function<Tensor(const Tensor&)>;
void expect_slopes(const Loss& f, const Tensor& x, const char* what) {
  const auto slopes = grad(f);
  const Tensor way = drawn(x.shape(), 77);
  const Loss along = [&](const Tensor& at) { return sum(slopes(at) * way); };
  const double step = 1e-5;
  const auto apart = [&](const Loss& g) {
    return ((g(x + way * step) - g(x - way * step)) / (2 * step)).item<double>();
  };
  EXPECT_NEAR(along(x).item<double>(), apart(f), 1e-7) << what;
  EXPECT_NEAR(sum(grad(along)(x) * way).item<double>(), apart(along), 1e-6) << what;
}

TEST(Scans, SlopesAreRightAlsoAtZeros) {
  const Tensor weights = drawn({6}, 5);
  const Tensor inputs[] = {drawn({6}, 6), list({0.5, 0, 0.25, 0, -1, 2}), list({0, 1, 2, 3, 0, 0})};
  for (const Tensor& x : inputs) {
    for (const bool reverse : {false, true}) {
      for (const bool exclusive : {false, true}) {
        const RunningOptions how{exclusive, reverse};
        expect_slopes([&](const Tensor& a) { return sum(cumprod(a, 0, how) * weights); }, x,
                      "cumprod");
        expect_slopes(
            [&](const Tensor& a) {
              const Tensor y = cumlogsumexp(a, 0, how);
              return sum(where(isfinite(y), y, 0) * weights);
            },
            x, "cumlogsumexp");
      }
      expect_slopes(
          [&](const Tensor& a) { return sum(linear_scan(a, sin(a), 0, {reverse}) * weights); }, x,
          "linear_scan");
    }
  }
  const Tensor apart = drawn({40}, 8), many = drawn({40}, 9);
  expect_slopes([&](const Tensor& a) { return sum(cummax(square(a)) * many); }, apart, "cummax");
}

TEST(Scans, AreBatchedAndTakeOpenSizes) {
  const Tensor x = drawn({4, 7}, 10);
  const auto both = [](const Tensor& row) { return cumlogsumexp(cumprod(row)); };
  EXPECT_TRUE(identical(vectorized_map(both, x), cumlogsumexp(cumprod(x, 1), 1)));
  EXPECT_TRUE(identical(map_fn(both, x), cumlogsumexp(cumprod(x, 1), 1)));
  const auto f = function([](const Tensor& a) { return cummax(cumprod(a, 1), 0); },
                          {.input_signature = {spec({open, open}, f64)}});
  EXPECT_TRUE(identical(f(x), cummax(cumprod(x, 1), 0)));
  EXPECT_TRUE(identical(f(transpose(x)), cummax(cumprod(transpose(x), 1), 0)));
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(Scatters, CombineInOrder) {
  const Tensor x = list({1, 1, 1}), index = constant({0, 2, 0}), u = list({3, -2, 5});
  EXPECT_EQ(scatter_max(x, index, u).to_vector<double>(), (Doubles{5, 1, 1}));
  EXPECT_EQ(scatter_min(x, index, u).to_vector<double>(), (Doubles{1, 1, -2}));
  EXPECT_EQ(scatter_mul(x, index, u).to_vector<double>(), (Doubles{15, 1, -2}));
  const Tensor where_to = constant({{0, 1}, {1, 0}, {0, 1}});
  EXPECT_EQ(scatter_nd(where_to, u, {2, 2}).to_vector<double>(), (Doubles{0, 8, -2, 0}));
  EXPECT_EQ(scatter_nd(constant({{1}, {-1}}), ones({2, 3}), {2, 3}).to_vector<double>(),
            (Doubles{0, 0, 0, 2, 2, 2}));
}

TEST(Scatters, HaveSlopes) {
  const Tensor index = constant({0, 2, 0, 1, 2}), x = drawn({3}, 11), weights = drawn({3}, 12);
  const Tensor plain = drawn({5}, 13);
  expect_slopes([&](const Tensor& a) { return sum(scatter_mul(x, index, a) * weights); }, plain,
                "scatter_mul");
  // With one zero among the factors of an element, and with two.
  const auto by_update =
      grad([&](const Tensor& a) { return sum(scatter_mul(list({1, 2, 3}), index, a)); });
  EXPECT_EQ(by_update(list({0, 0, 5, 7, 0})).to_vector<double>(), (Doubles{5, 0, 0, 2, 0}));
  for (const Tensor& u : {plain, list({0, 1, 2, 0, 0}), list({0, 0, 0, 2, 3})}) {
    const auto slope =
        grad([&](const Tensor& a) { return sum(scatter_mul(a, index, u) * weights); });
    const Tensor others = scatter_mul(ones({3}, f64), index, u) * weights;
    EXPECT_TRUE(allclose(slope(x), others).item<bool>());
  }
  // Equal elements share.
  const auto shares =
      grad([&](const Tensor& a) { return sum(scatter_max(list({1, 0, 0}), index, a)); });
  EXPECT_EQ(shares(list({1, 5, 1, -1, 5})).to_vector<double>(),
            (Doubles{1.0 / 3, 0.5, 1.0 / 3, 0, 0.5}));
}

TEST(Segments, AreCombined) {
  const Tensor data = constant({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}), ids = constant({2, 0, 2});
  EXPECT_EQ(segment_sum(data, ids).to_vector<double>(), (Doubles{3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(segment_mean(data, ids).to_vector<double>(), (Doubles{3, 4, 0, 0, 3, 4}));
  EXPECT_EQ(segment_prod(data, ids).to_vector<double>(), (Doubles{3, 4, 1, 1, 5, 12}));
  EXPECT_EQ(segment_max(data, ids, 3).to_vector<double>(),
            (Doubles{3, 4, -kInfinity, -kInfinity, 5, 6}));
  EXPECT_EQ(segment_min(cast(data, i32), ids, 2).to_vector<int64_t>(),
            (std::vector<int64_t>{3, 4, INT32_MAX, INT32_MAX}));
  // Other numbers are left out, and axes of ids are merged.
  EXPECT_EQ(segment_sum(data, constant({-1, 0, 7}), 2).to_vector<double>(), (Doubles{3, 4, 0, 0}));
  EXPECT_EQ(segment_sum(data, constant({{0, 1}, {0, 1}, {0, 1}})).to_vector<double>(),
            (Doubles{9, 12}));
  const auto f = function([](const Tensor& d, const Tensor& i) { return segment_mean(d, i, 3); });
  EXPECT_TRUE(identical(f(data, ids), segment_mean(data, ids)));
}

}  // namespace
}  // namespace tidemark

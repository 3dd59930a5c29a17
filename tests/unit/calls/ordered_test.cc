// Searches, counts, quantiles and distinct elements, against plain loops and known values.
#include "tidemark/calls/ordered.h"

#include <gtest/gtest.h>

#include <limits>

#include <algorithm>
#include <cmath>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark {
namespace {

using Doubles = std::vector<double>;
using Wholes = std::vector<int64_t>;

Tensor drawn(const Shape& shape, uint64_t seed) {
  return random::uniform(shape, {.low = -1, .dtype = f64, .key = random::Key(seed)});
}

TEST(Median, OfTheLargestNumbersIsFinite) {
  for (const DType dtype : {f32, f64}) {
    const Tensor largest = nan_to_num(constant(std::numeric_limits<double>::infinity(), dtype));
    const Tensor rows = stack({stack({largest, largest}), stack({largest, -largest})});
    EXPECT_TRUE(identical(median(rows, 1), stack({largest, largest * 0})));
    EXPECT_TRUE(identical(median(rows[{all, Slice{.end = 1}}], 1), stack({largest, largest})));
  }
}

TEST(Ordered, SearchsortedCountsWhatComesBefore) {
  const Tensor row = constant({1.0, 2.0, 2.0, 5.0}), values = constant({{0.0, 2.0}, {5.0, 9.0}});
  EXPECT_EQ(searchsorted(row, values).to_vector<int64_t>(), (Wholes{0, 1, 3, 4}));
  EXPECT_EQ(searchsorted(row, values, {.right = true}).to_vector<int64_t>(), (Wholes{0, 3, 4, 4}));
  EXPECT_EQ(searchsorted(row, values).shape(), (Shape{2, 2}));
  EXPECT_EQ(searchsorted(constant({{1, 3}, {2, 4}}), constant({{2}, {2}})).to_vector<int64_t>(),
            (Wholes{1, 0}));
  EXPECT_EQ(searchsorted(constant({1, 3}), 2.5).item<int64_t>(), 1);
  // One row serves all slices of a map.
  const Tensor mapped =
      vectorized_map([&](const Tensor& v) { return searchsorted(row, v); }, values);
  EXPECT_EQ(mapped.to_vector<int64_t>(), (Wholes{0, 1, 3, 4}));
}

TEST(Ordered, BincountCounts) {
  const Tensor x = constant({3, 0, 3, 1, 3}, i32);
  EXPECT_EQ(bincount(x).to_vector<int64_t>(), (Wholes{1, 1, 0, 3}));
  EXPECT_EQ(bincount(x, {.length = 2}).to_vector<int64_t>(), (Wholes{1, 1}));
  EXPECT_EQ(bincount(x, {.length = 6}).to_vector<int64_t>(), (Wholes{1, 1, 0, 3, 0, 0}));
  EXPECT_EQ(bincount(constant({-1, 2}), {.length = 3}).to_vector<int64_t>(), (Wholes{0, 0, 1}));
  const Tensor weights = constant({0.5, 1.0, 2.0, 4.0, 8.0});
  EXPECT_EQ(bincount(x, {.weights = weights}).to_vector<double>(), (Doubles{1, 4, 0, 10.5}));
  EXPECT_EQ(bincount(zeros({0}, i64)).shape(), (Shape{0}));
  const auto traced = function([](const Tensor& i) { return bincount(i, {.length = 4}); });
  EXPECT_EQ(traced(x).to_vector<int64_t>(), (Wholes{1, 1, 0, 3}));
  const auto slopes = grad([&](const Tensor& w) {
    return sum(bincount(x, {.weights = w, .length = 4}) * constant({1.0, 2.0, 3.0, 4.0}));
  });
  EXPECT_EQ(slopes(weights).to_vector<double>(), (Doubles{4, 1, 4, 2, 4}));
}

TEST(Ordered, HistogramHasClosedLastBins) {
  const Tensor x = constant({0.0, 0.5, 1.0, 1.5, 2.0, 2.0, NAN, 7.0});
  const Histogram named = histogram(x, {.bins = 2, .low = 0, .high = 2});
  EXPECT_EQ(named.counts.to_vector<int64_t>(), (Wholes{2, 4}));
  EXPECT_EQ(named.edges.to_vector<double>(), (Doubles{0, 1, 2}));
  const Histogram flat = histogram(constant({3.0, 3.0}), {.bins = 2});
  EXPECT_EQ(flat.edges.to_vector<double>(), (Doubles{2.5, 3, 3.5}));
  EXPECT_EQ(flat.counts.to_vector<int64_t>(), (Wholes{0, 2}));
  EXPECT_EQ(sum(histogram(zeros({0})).counts).item<int64_t>(), 0);
  const auto traced = function([](const Tensor& a) { return histogram(a, {.bins = 3}).counts; });
  EXPECT_EQ(traced(drawn({1000}, 1)).to_vector<int64_t>(),
            histogram(drawn({1000}, 1), {.bins = 3}).counts.to_vector<int64_t>());
}

TEST(Ordered, MedianIsInTheMiddle) {
  EXPECT_EQ(median(constant({3.0, 1.0, 2.0})).item<double>(), 2);
  EXPECT_EQ(median(constant({3, 1, 2, 10})).item<double>(), 2.5);
  EXPECT_TRUE(std::isnan(median(constant({3.0, double(NAN), 2.0})).item<double>()));
  const Tensor x = drawn({4, 5, 6}, 2);
  EXPECT_EQ(median(x, {0, 2}).shape(), (Shape{5}));
  EXPECT_EQ(median(x, {0, 2}, keepdims).shape(), (Shape{1, 5, 1}));
  const Tensor flat = reshape(transpose(x, {1, 0, 2}), {5, 24});
  EXPECT_TRUE(identical(median(x, {0, 2}), median(flat, 1)));
  EXPECT_TRUE(allclose(median(x, 1), quantile(x, 0.5, 1), {.rtol = 1e-14}).item<bool>());
  const auto slopes = grad([](const Tensor& a) { return median(a); });
  EXPECT_EQ(slopes(constant({3.0, 1.0, 2.0, 10.0})).to_vector<double>(), (Doubles{0.5, 0, 0.5, 0}));
}

TEST(Ordered, QuantilesOfEveryMethod) {
  const Tensor x = constant({10.0, 0.0, 30.0, 20.0}), q = constant({0.0, 0.5, 0.6, 1.0}, f64);
  const struct {
    Interpolation method;
    Doubles want;
  } cases[] = {{Interpolation::linear, {0, 15, 18, 30}},
               {Interpolation::lower, {0, 10, 10, 30}},
               {Interpolation::higher, {0, 20, 20, 30}},
               {Interpolation::midpoint, {0, 15, 15, 30}},
               {Interpolation::nearest, {0, 20, 20, 30}}};
  for (const auto& each : cases) {
    const Doubles got = quantile(x, q, 0, {each.method}).to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], each.want[i], 1e-5);
  }
  EXPECT_EQ(quantile(drawn({3, 4}, 3), q, 1).shape(), (Shape{4, 3}));
  EXPECT_EQ(quantile(drawn({3, 4}, 3), 0.25, 0).shape(), (Shape{4}));
  EXPECT_EQ(quantile(drawn({3, 4}, 3), zeros({2, 5}, f64)).shape(), (Shape{2, 5}));
  const auto traced = function([&](const Tensor& a) { return quantile(a, 0.3, 1); },
                               {.input_signature = {spec({open, open}, f64)}});
  EXPECT_TRUE(identical(traced(drawn({3, 9}, 4)), quantile(drawn({3, 9}, 4), 0.3, 1)));
  EXPECT_TRUE(identical(traced(drawn({5, 2}, 5)), quantile(drawn({5, 2}, 5), 0.3, 1)));
  const auto slopes = grad([&](const Tensor& a) { return quantile(a, 0.5); });
  EXPECT_EQ(slopes(x).to_vector<double>(), (Doubles{0.5, 0, 0, 0.5}));
}

TEST(Ordered, UniqueOfValues) {
  const Tensor x = constant({{5, 2, 5}, {7, 2, 2}});
  const Unique all = unique(x);
  EXPECT_EQ(all.values.to_vector<int64_t>(), (Wholes{2, 5, 7}));
  EXPECT_EQ(all.counts.to_vector<int64_t>(), (Wholes{3, 2, 1}));
  EXPECT_EQ(all.inverse.to_vector<int64_t>(), (Wholes{1, 0, 1, 2, 0, 0}));
  EXPECT_EQ(all.inverse.shape(), x.shape());
  EXPECT_EQ(all.size.item<int64_t>(), 3);
  EXPECT_EQ(unique(constant({double(NAN), 1.0, double(NAN)})).size.item<int64_t>(), 2);
  EXPECT_EQ(unique(zeros({0})).values.shape(), (Shape{0}));
  for (const int64_t room : {2, 3, 5}) {
    const auto traced = function([&](const Tensor& a) {
      const Unique found = unique(a, {.max_size = room});
      return std::pair(found.values, found.size);
    });
    const auto [values, size] = traced(x);
    Wholes want = {2, 5, 7, 0, 0};
    want.resize(static_cast<size_t>(room));
    EXPECT_EQ(values.to_vector<int64_t>(), want);
    EXPECT_EQ(size.item<int64_t>(), 3);
  }
}

TEST(Ordered, NonzeroNamesElements) {
  const Tensor x = constant({{0, 3, 0}, {4, 0, 5}});
  const Nonzero all = nonzero(x);
  EXPECT_EQ(all.indices.to_vector<int64_t>(), (Wholes{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(all.indices.shape(), (Shape{3, 2}));
  EXPECT_EQ(all.size.item<int64_t>(), 3);
  EXPECT_EQ(nonzero(constant(7)).indices.shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(zeros({4, 0})).indices.shape(), (Shape{0, 2}));
  EXPECT_EQ(nonzero(drawn({3, 4, 5}, 6) > 2).indices.shape(), (Shape{0, 3}));
  const auto traced = function([](const Tensor& a) { return nonzero(a, {.max_size = 2}).indices; });
  EXPECT_EQ(traced(x).to_vector<int64_t>(), (Wholes{0, 1, 1, 0}));
}

}  // namespace
}  // namespace tidemark

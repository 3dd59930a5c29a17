#include "tidemark/calls/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using random::Key;

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "distributions_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

struct Draw {
  const char* name;
  std::function<Tensor(const Shape& shape, std::optional<Key> key)> draw;
};

const std::vector<Draw>& draws() {
  static const std::vector<Draw> all = {
      {"exponential",
       [](const Shape& s, auto key) { return random::exponential(s, {.key = key}); }},
      {"gumbel", [](const Shape& s, auto key) { return random::gumbel(s, {.key = key}); }},
      {"laplace", [](const Shape& s, auto key) { return random::laplace(s, {.key = key}); }},
      {"truncated_normal",
       [](const Shape& s, auto key) { return random::truncated_normal(s, {.key = key}); }},
      {"gamma", [](const Shape& s, auto key) { return random::gamma(0.7, s, {.key = key}); }},
      {"beta", [](const Shape& s, auto key) { return random::beta(2, 0.5, s, {.key = key}); }},
      {"poisson",
       [](const Shape& s, auto key) { return random::poisson(full(s, 20.0), s, {.key = key}); }},
      {"categorical",
       [](const Shape& s, auto key) {
         return random::categorical(broadcast_to(constant({0.5, -1.0, 2.0}), {s[0], 3}),
                                    {.key = key});
       }},
      {"multinomial",
       [](const Shape& s, auto key) {
         return random::multinomial(10, ones({s[0], 3}), {.key = key});
       }},
      {"integers",
       [](const Shape& s, auto key) {
         return random::integers(arange(s[0]), arange(s[0]) + 5, s, {.key = key});
       }},
      {"bernoulli",
       [](const Shape& s, auto key) { return random::bernoulli(full(s, 0.4), s, {.key = key}); }},
      {"permutation",
       [](const Shape& s, auto key) { return random::permutation(arange(s[0]), {.key = key}); }}};
  return all;
}

// The key alone decides: eager or compiled, on one thread or several.
TEST(Distributions, HaveTheSameBitsForAKeyHoweverTheyRun) {
  for (const Draw& each : draws()) {
    SCOPED_TRACE(each.name);
    const auto draw = [&] { return each.draw({5000}, Key(3)); };
    const Tensor first = draw();
    EXPECT_TRUE(identical(first, draw()));
    EXPECT_FALSE(identical(first, each.draw({5000}, Key(4))));
    EXPECT_TRUE(identical(first, function(draw)()));
    const int before = num_threads();
    set_num_threads(before == 1 ? 2 : 1);
    EXPECT_TRUE(identical(first, draw()));
    EXPECT_TRUE(identical(first, function(draw)()));
    set_num_threads(before);
  }
}

TEST(Distributions, WithoutAKeyTakeTheGeneratorsNext) {
  for (const Draw& each : draws()) {
    SCOPED_TRACE(each.name);
    random::seed(9);
    const Tensor first = each.draw({500}, {}), second = each.draw({500}, {});
    EXPECT_FALSE(identical(first, second));
    random::seed(9);
    EXPECT_TRUE(identical(first, each.draw({500}, {})));
    EXPECT_TRUE(identical(second, each.draw({500}, {})));
  }
}

// Pearson's statistic of counts; with c - 1 degrees of freedom it is above c + 5 sqrt(2 c) in less
// than one of a million.
double chi_square(const std::vector<int64_t>& seen, const std::vector<double>& expected) {
  double total = 0;
  for (size_t i = 0; i < seen.size(); ++i)
    total += (static_cast<double>(seen[i]) - expected[i]) *
             (static_cast<double>(seen[i]) - expected[i]) / expected[i];
  return total;
}

TEST(Distributions, CategoricalAndPoissonHaveTheirFrequencies) {
  constexpr int64_t count = 60'000;
  const std::vector<double> p = {0.5, 0.25, 0.125, 0.125};
  const auto bins = [](const Tensor& drawn, size_t most) {
    std::vector<int64_t> seen(most);
    for (const int64_t each : drawn.to_vector<int64_t>())
      ++seen[std::min(static_cast<size_t>(each), most - 1)];
    return seen;
  };
  std::vector<double> expected;
  for (const double each : p) expected.push_back(each * count);
  EXPECT_LE(
      chi_square(bins(random::categorical(log(constant(p)), {.count = count, .key = Key(1)}), 4),
                 expected),
      4 + 5 * std::sqrt(8.0));
  for (const double rate : {3.0, 12.0}) {
    expected.clear();
    double mass = std::exp(-rate), rest = 1;
    const size_t most = rate < 10 ? 11 : 25;
    for (size_t k = 0; k + 1 < most; ++k) {
      expected.push_back(mass * count);
      rest -= mass;
      mass *= rate / static_cast<double>(k + 1);
    }
    expected.push_back(rest * count);
    EXPECT_LE(chi_square(bins(random::poisson(rate, {count}, {.key = Key(2)}), most), expected),
              static_cast<double>(most) + 5 * std::sqrt(2.0 * static_cast<double>(most)));
  }
}

// The largest distance of the distribution functions; above 2.7 / sqrt(n) in one of a million.
double kolmogorov_smirnov(const Tensor& drawn, const std::function<double(double)>& cdf) {
  const std::vector<double> sorted = sort(cast(drawn, f64)).to_vector<double>();
  const auto count = static_cast<double>(sorted.size());
  double most = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double p = cdf(sorted[i]);
    most = std::max({most, std::abs(p - static_cast<double>(i) / count),
                     std::abs(p - static_cast<double>(i + 1) / count)});
  }
  return most * std::sqrt(count);
}

TEST(Distributions, HaveTheirDistributionFunctions) {
  const Shape many{20'000};
  EXPECT_LE(kolmogorov_smirnov(random::exponential(many, {.rate = 2, .key = Key(1)}),
                               [](double x) { return 1 - std::exp(-2 * x); }),
            2.7);
  EXPECT_LE(kolmogorov_smirnov(random::gumbel(many, {.key = Key(2)}),
                               [](double x) { return std::exp(-std::exp(-x)); }),
            2.7);
  EXPECT_LE(kolmogorov_smirnov(random::gamma(2, many, {.dtype = f64, .key = Key(3)}),
                               [](double x) { return 1 - std::exp(-x) * (1 + x); }),
            2.7);
  EXPECT_LE(kolmogorov_smirnov(random::gamma(0.5, many, {.dtype = f64, .key = Key(6)}),
                               [](double x) { return std::erf(std::sqrt(x)); }),
            2.7);
  EXPECT_LE(kolmogorov_smirnov(random::beta(0.5, 0.5, many, {.dtype = f64, .key = Key(4)}),
                               [](double x) { return 2 / M_PI * std::asin(std::sqrt(x)); }),
            2.7);
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_LE(
      kolmogorov_smirnov(random::truncated_normal(many, {.low = 1, .high = 3, .key = Key(5)}),
                         [&](double x) { return (below(x) - below(1)) / (below(3) - below(1)); }),
      2.7);
  // Too far from the middle for numbers of f32, and in f64.
  EXPECT_LE(
      kolmogorov_smirnov(random::truncated_normal(many, {.low = -9, .high = -5, .key = Key(7)}),
                         [&](double x) { return below(x) / below(-5); }),
      2.7);
  EXPECT_LE(kolmogorov_smirnov(
                random::truncated_normal(many, {.low = -2, .high = 2, .dtype = f64, .key = Key(8)}),
                [&](double x) { return (below(x) - below(-2)) / (below(2) - below(-2)); }),
            2.7);
  // Without a bound on one side.
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_LE(
      kolmogorov_smirnov(random::truncated_normal(many, {.low = -1, .high = inf, .key = Key(9)}),
                         [&](double x) { return (below(x) - below(-1)) / below(1); }),
      2.7);
  EXPECT_LE(
      kolmogorov_smirnov(random::truncated_normal(many, {.low = -inf, .high = -3, .key = Key(9)}),
                         [&](double x) { return below(x) / below(-3); }),
      2.7);
}

TEST(Distributions, TakeBoundsAndParametersByElement) {
  const Tensor low = constant({0, 10, -5}), high = constant({1, 20, -4});
  const Tensor drawn = random::integers(low, high, {1000, 3}, {.key = Key(1)});
  EXPECT_EQ(min(drawn, 0).to_vector<int>(), (std::vector<int>{0, 10, -5}));
  EXPECT_EQ(max(drawn, 0).to_vector<int>(), (std::vector<int>{0, 19, -5}));
  const Tensor bits = random::bernoulli(constant({0.0, 1.0}), {100, 2}, {.key = Key(1)});
  EXPECT_EQ(sum(cast(bits, i32), 0).to_vector<int>(), (std::vector<int>{0, 100}));
  const Tensor counts = random::poisson(constant({0.0, 1000.0}), {100, 2}, {.key = Key(1)});
  EXPECT_EQ(max(counts, 0)[0].item<int>(), 0);
  EXPECT_NEAR(mean(cast(counts, f64), 0)[1].item<double>(), 1000, 20);
  const Tensor x = reshape(arange(12), {3, 4});
  const Tensor order = random::permutation(x, {.axis = 1, .key = Key(2)});
  EXPECT_TRUE(identical(sort(order, 1), x));
}

// Where a method has no answer it must still end.
TEST(Distributions, EndForParametersThatMakeNoSense) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor odd = constant({0.0, -1.0, infinity, std::nan(""), 1e300, 1e-300}, f64);
  const auto gamma = random::gamma(odd, {6}, {.dtype = f64, .key = Key(1)}).to_vector<double>();
  EXPECT_EQ(gamma[0], 0);
  EXPECT_EQ(gamma[2], infinity);
  EXPECT_TRUE(std::isnan(gamma[3]));
  EXPECT_NEAR(gamma[4] / 1e300, 1, 1e-9);
  EXPECT_EQ(gamma[5], 0);
  const auto counts = random::poisson(odd, {6}, {.key = Key(1)}).to_vector<int64_t>();
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[5], 0);
}

TEST(Distributions, CategoricalKeepsOneTableOfDraws) {
  const MachineCode machine;
  const auto f =
      function([](const Tensor& logits) { return random::categorical(logits, {.key = Key(1)}); });
  const Plan plan = f.plan(spec({64, 50'000}));
  EXPECT_LE(plan.peak(), Bytes(64 * 50'000 * 4) + 512_KiB) << plan.explain();
}

TEST(Distributions, ManyDrawsOfARowTakeNoTableOfClasses) {
  const MachineCode machine;
  const auto f = function([](const Tensor& logits) {
    return random::categorical(logits, {.count = 10'000, .key = Key(1)});
  });
  const Plan plan = f.plan(spec({5'000}));
  EXPECT_LE(plan.peak(), Bytes(10'000 * 8 * 4) + 512_KiB) << plan.explain();
}

TEST(Distributions, ManyDrawsLeaveOutWhatIsImpossible) {
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor logits =
      constant({{never, 0.0, never, 1.0, never}, {0.0, never, never, never, never}});
  const Tensor drawn = random::categorical(logits, {.count = 5000, .key = Key(2)});
  const Tensor first = drawn[0];
  EXPECT_TRUE(all(logical_or(first == 1, first == 3)).item<bool>());
  EXPECT_TRUE(all(drawn[1] == 0).item<bool>());
  EXPECT_NEAR(mean(cast(first == 3, f64)).item<double>(), std::exp(1) / (1 + std::exp(1)), 0.03);
}

TEST(Distributions, SayWhatTheyCannotDraw) {
  const std::string at = "\n  at distributions_test.cc:\n  ";
  EXPECT_EQ(said([] { random::exponential({2}, {.rate = 0}); }),
            "random::exponential: .rate must be positive, got 0" + at + "give a number above 0");
  EXPECT_EQ(said([] { random::gumbel({2}, {.dtype = i32}); }),
            "random::gumbel: draws floats, not i32" + at + "name one: {.dtype = td::f32}");
  EXPECT_EQ(said([] { random::poisson(1.0, {2}, {.dtype = f32}); }),
            "random::poisson: draws integers, not f32" + at + "name one: {.dtype = td::i64}");
  EXPECT_EQ(said([] { random::truncated_normal({2}, {.low = 2, .high = 1}); }),
            "random::truncated_normal: cannot draw from [2, 1] standard deviations" + at +
                "low must be less than high, and within 36.9 standard deviations");
  EXPECT_EQ(said([] { random::categorical(constant({1, 2})); }),
            "random::categorical: logits are i32[2], not floats [..., classes]" + at +
                "give the logarithms of probabilities: td::log(p)");
  EXPECT_EQ(said([] { random::categorical(ones({2}), {.count = -1}); }),
            "random::categorical: .count is -1" + at + "give the number of draws of each row");
  EXPECT_EQ(said([] { random::multinomial(-1, ones({2})); }),
            "random::multinomial: cannot make -1 trials" + at + "give 0 or more");
  EXPECT_EQ(said([] { random::permutation(ones({2, 3}), {.axis = 2}); }),
            "random::permutation: axis 2 of [2, 3]" + at + "axes go from 0 to 1");
  EXPECT_EQ(
      said([] { random::permutation(ones({})); }),
      "random::permutation: a scalar has no axis to permute" + at + "give a tensor with an axis");
}

}  // namespace
}  // namespace tidemark

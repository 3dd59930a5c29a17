// Every seed is fixed, so a statistic either passes always or never. Limits are about four standard
// deviations of the statistic under the null hypothesis.
#include "tidemark/emit/library/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "tidemark/emit/library/random_kernels.h"

namespace tidemark::library {
namespace {

constexpr RandomKey kKey = {0x0123456789abcdefU};

// Philox4x32-10 as its definition reads: a bijection of the counter by multiplications whose high
// halves are mixed with the key, ten times, the key moving on by a Weyl sequence between rounds.
std::array<uint32_t, 4> philox_by_definition(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  const auto high = [](uint64_t a, uint64_t b) { return static_cast<uint32_t>((a * b) >> 32); };
  const auto low = [](uint64_t a, uint64_t b) { return static_cast<uint32_t>(a * b); };
  for (int round = 0; round < 10; ++round) {
    if (round > 0) k = {k[0] + 0x9E3779B9U, k[1] + 0xBB67AE85U};
    const std::array<uint32_t, 4> old = c;
    c[0] = high(0xCD9E8D57U, old[2]) ^ old[1] ^ k[0];
    c[1] = low(0xCD9E8D57U, old[2]);
    c[2] = high(0xD2511F53U, old[0]) ^ old[3] ^ k[1];
    c[3] = low(0xD2511F53U, old[0]);
  }
  return c;
}

uint32_t word_at(RandomKey key, int64_t position) {
  const auto counter = static_cast<uint64_t>(position / 64 * 16 + position % 16);
  const auto words = philox_by_definition(
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
      {static_cast<uint32_t>(key.value), static_cast<uint32_t>(key.value >> 32)});
  return words[static_cast<size_t>(position / 16 % 4)];
}

TEST(Philox, GivesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~uint64_t{0}}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0x299f31d0a4093822U}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AgreesWithItsDefinition) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const std::array<uint32_t, 4> counter = {i * 2654435761U, ~i, i << 20, i * i};
    const RandomKey key = {i * 0x9E3779B97F4A7C15U};
    EXPECT_EQ(philox(counter, key),
              philox_by_definition(counter, {static_cast<uint32_t>(key.value),
                                             static_cast<uint32_t>(key.value >> 32)}));
  }
}

TEST(Random, BitsAreTheWordsThatThePositionNames) {
  std::vector<uint32_t> out(1000);
  // The second range has counters above 32 bits.
  for (const int64_t begin : {int64_t{0}, (int64_t{1} << 34) - 500, int64_t{77}}) {
    fill_bits(kKey, begin, std::ssize(out), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], word_at(kKey, begin + static_cast<int64_t>(i))) << begin << " + " << i;
    }
  }
}

// Draws [0, n) whole and in odd pieces.
template <class T>
void expect_pieces_agree(const std::function<void(int64_t, int64_t, T*)>& fill) {
  constexpr int64_t kCount = 1000;
  std::vector<T> whole(kCount), pieces(kCount);
  fill(0, kCount, whole.data());
  int64_t begin = 0;
  for (int64_t step = 1; begin < kCount; step = step * 5 % 131 + 1) {
    const int64_t count = std::min(step, kCount - begin);
    fill(begin, count, pieces.data() + begin);
    begin += count;
  }
  EXPECT_EQ(whole, pieces);
  T guard[3] = {T(7), T(7), T(7)};
  fill(40, 1, guard + 1);
  EXPECT_EQ(guard[0], T(7));
  EXPECT_EQ(guard[1], whole[40]);
  EXPECT_EQ(guard[2], T(7));
  fill(64, 0, guard);
  EXPECT_EQ(guard[0], T(7));
}

TEST(Random, PiecesAreThoseOfTheWhole) {
  expect_pieces_agree<uint32_t>(
      [](auto begin, auto n, auto* out) { fill_bits(kKey, begin, n, out); });
  expect_pieces_agree<float>(
      [](auto begin, auto n, auto* out) { fill_uniform(kKey, begin, n, out, -1.0F, 2.0F); });
  expect_pieces_agree<double>(
      [](auto begin, auto n, auto* out) { fill_uniform(kKey, begin, n, out, -1.0, 2.0); });
  expect_pieces_agree<float>(
      [](auto begin, auto n, auto* out) { fill_normal(kKey, begin, n, out, 1.0F, 2.0F); });
  expect_pieces_agree<double>(
      [](auto begin, auto n, auto* out) { fill_normal(kKey, begin, n, out, 1.0, 2.0); });
  expect_pieces_agree<int32_t>(
      [](auto begin, auto n, auto* out) { fill_integers(kKey, begin, n, out, -5, 1000); });
  expect_pieces_agree<int64_t>([](auto begin, auto n, auto* out) {
    fill_integers(kKey, begin, n, out, int64_t{-5}, int64_t{1} << 60);
  });
  expect_pieces_agree<uint8_t>(
      [](auto begin, auto n, auto* out) { fill_bernoulli(kKey, begin, n, out, 0.3F); });
}

std::vector<const RandomKernels*> all_kernels() {
  std::vector<const RandomKernels*> found = {&baseline::random_kernels};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back(&avx2::random_kernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      found.push_back(&avx512::random_kernels);
    }
  }
  return found;
}

template <class T, class Fill>
void expect_same_bits(Fill fill) {
  constexpr int64_t kCount = 20'000;
  std::vector<T> want(kCount), got(kCount);
  for (const RandomKernels* kernels : all_kernels()) {
    fill(*kernels, kCount, kernels == &baseline::random_kernels ? want.data() : got.data());
    if (kernels == &baseline::random_kernels) got = want;
    EXPECT_EQ(got, want);
  }
}

TEST(Random, HasTheSameBitsOnEveryInstructionSet) {
  const uint64_t key = kKey.value;
  expect_same_bits<uint32_t>([=](auto& k, int64_t n, auto* out) { k.bits(key, 3, n, out); });
  expect_same_bits<uint64_t>([=](auto& k, int64_t n, auto* out) { k.bits64(key, 3, n, out); });
  expect_same_bits<float>(
      [=](auto& k, int64_t n, auto* out) { k.uniform_f32(key, 3, n, out, -1, 3); });
  expect_same_bits<double>(
      [=](auto& k, int64_t n, auto* out) { k.uniform_f64(key, 3, n, out, -1, 3); });
  expect_same_bits<float>(
      [=](auto& k, int64_t n, auto* out) { k.normal_f32(key, 3, n, out, 0, 1); });
  expect_same_bits<double>(
      [=](auto& k, int64_t n, auto* out) { k.normal_f64(key, 3, n, out, 0, 1); });
  expect_same_bits<int32_t>(
      [=](auto& k, int64_t n, auto* out) { k.integers_i32(key, 3, n, out, -7, 4000000000U); });
  expect_same_bits<int64_t>(
      [=](auto& k, int64_t n, auto* out) { k.integers_i64(key, 3, n, out, -7, ~uint64_t{0}); });
  expect_same_bits<uint8_t>(
      [=](auto& k, int64_t n, auto* out) { k.bernoulli(key, 3, n, out, 1U << 30); });
}

// Pearson's statistic against equal counts, less its mean, in standard deviations.
double chi_square_deviations(const std::vector<int64_t>& counts) {
  const double total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

template <class T>
void expect_uniform() {
  std::vector<T> out(1 << 20);
  fill_uniform(kKey, 0, std::ssize(out), out.data(), T(-2), T(6));
  std::vector<int64_t> counts(1024);
  for (const T value : out) {
    ASSERT_GE(value, T(-2));
    ASSERT_LT(value, T(6));
    ++counts[static_cast<size_t>((value + 2) / 8 * 1024)];
  }
  EXPECT_LT(std::abs(chi_square_deviations(counts)), 4);
}

TEST(Uniform, FillsEqualPartsEqually) {
  expect_uniform<float>();
  expect_uniform<double>();
}

TEST(Uniform, NeverGivesTheUpperEnd) {
  // One step apart at this size, so half of all values would round up.
  std::vector<float> out(10'000);
  const float low = 0x1p24F;
  fill_uniform(kKey, 0, std::ssize(out), out.data(), low, low + 2);
  EXPECT_EQ(*std::max_element(out.begin(), out.end()), low);
  fill_uniform(kKey, 0, std::ssize(out), out.data(), -1.0F, 0.0F);
  EXPECT_LT(*std::max_element(out.begin(), out.end()), 0);
}

template <class T>
std::vector<double> standard_normals(RandomKey key, int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  fill_normal(key, 0, count, out.data(), T(0), T(1));
  return {out.begin(), out.end()};
}

double mean_power(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

template <class T>
void expect_normal() {
  const int64_t count = 1 << 20;
  std::vector<double> z = standard_normals<T>(kKey, count);
  const double root = std::sqrt(static_cast<double>(count));
  // Moments of order 1 to 4; the factors are the standard deviations of z, z^2, z^3 and z^4.
  EXPECT_LT(std::abs(mean_power(z, 1) - 0) * root, 4);
  EXPECT_LT(std::abs(mean_power(z, 2) - 1) * root, 4 * std::sqrt(2));
  EXPECT_LT(std::abs(mean_power(z, 3) - 0) * root, 4 * std::sqrt(15));
  EXPECT_LT(std::abs(mean_power(z, 4) - 3) * root, 4 * std::sqrt(96));
  // Kolmogorov and Smirnov: the distance exceeds 2 / sqrt(n) once in 1500 times.
  std::sort(z.begin(), z.end());
  double distance = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double below = 0.5 * std::erfc(-z[i] / std::sqrt(2.0));
    distance = std::max({distance, std::abs(below - static_cast<double>(i) / count),
                         std::abs(below - static_cast<double>(i + 1) / count)});
  }
  EXPECT_LT(distance * root, 2);
  // The tails: a million draws reach 4.5 and hardly 6.
  EXPECT_GT(z.back(), 4.3);
  EXPECT_LT(z.front(), -4.3);
  EXPECT_LT(z.back(), 6);
}

TEST(Normal, HasTheRightDistribution) {
  expect_normal<float>();
  expect_normal<double>();
}

TEST(Normal, TailsReachBeyondFiveAndAHalf) {
  // 2^28 draws have ten beyond 5.5 on average; one million blocks at a time, until one is found.
  std::vector<float> out(1 << 20);
  float largest = 0;
  for (int64_t block = 0; block < 256 && largest < 5.5F; ++block) {
    fill_normal(kKey, block << 20, std::ssize(out), out.data(), 0.0F, 1.0F);
    for (const float value : out) largest = std::max(largest, std::abs(value));
  }
  EXPECT_GE(largest, 5.5F);
}

TEST(Normal, ScalesAndShifts) {
  std::vector<float> standard(100), moved(100);
  fill_normal(kKey, 0, 100, standard.data(), 0.0F, 1.0F);
  fill_normal(kKey, 0, 100, moved.data(), 10.0F, 0.5F);
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(moved[i], 10 + 0.5 * standard[i], 2e-6);
}

double correlation(const std::vector<double>& a, const std::vector<double>& b, size_t offset) {
  double sum = 0;
  const size_t count = a.size() - offset;
  for (size_t i = 0; i < count; ++i) sum += a[i] * b[i + offset];
  return sum / std::sqrt(static_cast<double>(count));
}

TEST(Random, PositionsAndKeysAreUncorrelated) {
  const int64_t count = 1 << 18;
  const std::vector<double> z = standard_normals<float>(kKey, count);
  // 16 and 64 are where the layout of words and groups would show.
  for (const size_t offset : {1U, 2U, 15U, 16U, 17U, 32U, 48U, 64U, 1024U}) {
    EXPECT_LT(std::abs(correlation(z, z, offset)), 4) << offset;
  }
  std::vector<double> squares(z.size());
  std::transform(z.begin(), z.end(), squares.begin(),
                 [](double x) { return (x * x - 1) / std::sqrt(2.0); });
  for (const size_t offset : {1U, 16U, 32U, 64U}) {
    EXPECT_LT(std::abs(correlation(squares, squares, offset)), 4) << offset;
  }
  for (const RandomKey other :
       {RandomKey{kKey.value + 1}, RandomKey{kKey.value ^ (uint64_t{1} << 63)}, fold_in(kKey, 0),
        fold_in(kKey, 1)}) {
    EXPECT_LT(std::abs(correlation(z, standard_normals<float>(other, count), 0)), 4);
  }
}

TEST(FoldIn, GivesDifferentKeys) {
  std::vector<uint64_t> keys = {kKey.value};
  for (uint64_t data = 0; data < 1000; ++data) {
    keys.push_back(fold_in(kKey, data).value);
    keys.push_back(fold_in(kKey, data << 32 | uint64_t{1} << 63).value);
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  EXPECT_EQ(fold_in(kKey, 5), fold_in(kKey, 5));
}

TEST(Integers, FillTheRangeEquallyInBothWidths) {
  const int64_t count = 1 << 20;
  std::vector<int32_t> narrow(count);
  std::vector<int64_t> wide(count);
  fill_integers(kKey, 0, count, narrow.data(), -3, 997);
  fill_integers(kKey, 0, count, wide.data(), int64_t{-3}, int64_t{997});
  std::vector<int64_t> counts(1000);
  for (size_t i = 0; i < narrow.size(); ++i) {
    ASSERT_EQ(narrow[i], wide[i]);
    ASSERT_GE(narrow[i], -3);
    ASSERT_LT(narrow[i], 997);
    ++counts[static_cast<size_t>(wide[i] + 3)];
  }
  EXPECT_LT(std::abs(chi_square_deviations(counts)), 4);
}

TEST(Integers, ReachAcrossTheWholeType) {
  std::vector<int32_t> narrow(1000);
  fill_integers(kKey, 0, 1000, narrow.data(), INT32_MIN, INT32_MAX);
  EXPECT_LT(*std::min_element(narrow.begin(), narrow.end()), -2'100'000'000);
  EXPECT_GT(*std::max_element(narrow.begin(), narrow.end()), 2'100'000'000);
  std::vector<int64_t> wide(1000);
  fill_integers(kKey, 0, 1000, wide.data(), INT64_MIN, INT64_MAX);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), INT64_MIN / 100 * 98);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), INT64_MAX / 100 * 98);
  fill_integers(kKey, 0, 1000, narrow.data(), 8, 9);
  EXPECT_EQ(narrow, std::vector<int32_t>(1000, 8));
}

TEST(Bernoulli, GivesOnesWithTheProbabilityAsked) {
  const int64_t count = 1 << 20;
  std::vector<uint8_t> out(count);
  for (const float p : {0.01F, 0.3F, 0.5F, 0.9F}) {
    fill_bernoulli(kKey, 0, count, out.data(), p);
    const double ones = std::accumulate(out.begin(), out.end(), 0.0);
    EXPECT_LT(std::abs(ones - count * p) / std::sqrt(count * p * (1 - p)), 4) << p;
  }
  fill_bernoulli(kKey, 0, count, out.data(), 0.0F);
  EXPECT_EQ(*std::max_element(out.begin(), out.end()), 0);
  fill_bernoulli(kKey, 0, count, out.data(), 1.0F);
  EXPECT_EQ(*std::min_element(out.begin(), out.end()), 1);
}

TEST(Permutation, HoldsEachNumberOnce) {
  for (const int64_t n : {0, 1, 31, 512, 513, 5000}) {
    std::vector<int64_t> out(static_cast<size_t>(n));
    permutation(kKey, n, out.data());
    std::vector<int64_t> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
    EXPECT_EQ(out == sorted, n < 2) << n;
  }
}

TEST(Permutation, GivesEachOrderEquallyOften) {
  std::vector<int64_t> counts(24);
  for (uint64_t trial = 0; trial < 24'000; ++trial) {
    std::array<int64_t, 4> order;
    permutation(fold_in(kKey, trial), 4, order.data());
    size_t rank = 0;
    for (size_t i = 0; i < 4; ++i) {
      size_t smaller = 0;
      for (size_t j = i + 1; j < 4; ++j) smaller += order[j] < order[i] ? 1 : 0;
      rank = rank * (4 - i) + smaller;
    }
    ++counts[rank];
  }
  EXPECT_LT(std::abs(chi_square_deviations(counts)), 4);
}

}  // namespace
}  // namespace tidemark::library

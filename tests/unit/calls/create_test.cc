#include "tidemark/api/create.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/error_of.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/device/threads.h"

namespace tidemark {
namespace {

namespace td = tidemark;
using Floats = std::vector<float>;

TEST(Constant, TakesBracesToAnyDepth) {
  const Tensor x = constant({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}});
  EXPECT_EQ(x.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(x.dtype(), DType::i32);
  EXPECT_EQ((x[{1, 0, 1}].item<int>()), 6);
  EXPECT_EQ(constant({1, 2.5}).dtype(), DType::f32);
  EXPECT_EQ(constant({true}).dtype(), DType::boolean);
  EXPECT_EQ(constant({1, 2}, DType::u8).dtype(), DType::u8);
  EXPECT_EQ(constant(3.0).shape(), Shape{});
  EXPECT_EQ(constant({0.1}, DType::f64).item<double>(), 0.1);
  EXPECT_EQ(constant({int64_t{1} << 62}, DType::i64).item<int64_t>(), int64_t{1} << 62);
}

TEST(Constant, KeepsTheElementTypeOfTypedMemory) {
  EXPECT_EQ(constant(std::vector<double>{1}).dtype(), DType::f64);
  EXPECT_EQ(constant(std::vector<int64_t>{1}).dtype(), DType::i64);
  EXPECT_EQ(constant(std::array<uint8_t, 2>{1, 2}).dtype(), DType::u8);
  EXPECT_EQ(constant(std::vector<bool>{true, false}).dtype(), DType::boolean);
  EXPECT_EQ(constant(std::vector<float>(6), {2, 3}).shape(), (Shape{2, 3}));
  std::vector<float> source = {1, 2};
  const Tensor x = constant(source);
  source[0] = 9;
  EXPECT_EQ(x[0].item<float>(), 1) << "constant copies";
}

TEST(Create, RangesAndFillings) {
  EXPECT_EQ(arange(4).to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(arange(4).dtype(), DType::i32);
  EXPECT_EQ(arange(5, 0, -2).to_vector<int>(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(arange(0, 1, 0.25).to_vector<float>(), (Floats{0, 0.25F, 0.5F, 0.75F}));
  EXPECT_EQ(arange(3, 1).size(), 0);
  EXPECT_EQ(arange(0, 3, 1, DType::i64).dtype(), DType::i64);
  EXPECT_EQ(linspace(0, 1, 5).to_vector<float>(), (Floats{0, 0.25F, 0.5F, 0.75F, 1}));
  EXPECT_EQ(linspace(2, 3, 1).to_vector<float>(), (Floats{2}));
  EXPECT_EQ(linspace(2, 3, 0).size(), 0);
  EXPECT_EQ(linspace(0, 0.1, 7)[6].item<float>(), 0.1F);
  EXPECT_EQ(eye(2, 3).to_vector<int>(), (std::vector<int>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(full({2}, 7).dtype(), DType::i32);
  EXPECT_EQ(full({2}, 7.5, DType::f64)[1].item<double>(), 7.5);
  const Tensor n = constant({1, 2});
  EXPECT_EQ(zeros_like(n).to_vector<int>(), (std::vector<int>{0, 0}));
  EXPECT_EQ(ones_like(n).dtype(), DType::i32);
  EXPECT_EQ(full_like(n, 3).to_vector<int>(), (std::vector<int>{3, 3}));
}

TEST(Create, IntegersAreExactUpToTheEndsOfI64) {
  using Wholes = std::vector<int64_t>;
  EXPECT_EQ(arange(INT64_MAX - 2, INT64_MAX, 1, DType::i64).to_vector<int64_t>(),
            (Wholes{INT64_MAX - 2, INT64_MAX - 1}));
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, INT64_MAX, DType::i64).to_vector<int64_t>(),
            (Wholes{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(arange(INT64_MAX, INT64_MIN, INT64_MIN, DType::i64).to_vector<int64_t>(),
            (Wholes{INT64_MAX, -1}));
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(arange(constant(odd, DType::i64), odd + 3, 2, DType::i64).to_vector<int64_t>(),
            (Wholes{odd, odd + 2}));
  EXPECT_EQ(arange(250, 256, 1, DType::u8).to_vector<int>(),
            (std::vector<int>{250, 251, 252, 253, 254, 255}));
  EXPECT_EQ(arange(0.5, 3, 0.5, DType::i32).to_vector<int>(), (std::vector<int>{0, 1, 1, 2, 2}));
  EXPECT_EQ(arange(5, 5, -1, DType::i64).size(), 0);
  EXPECT_EQ(pad(constant({1}, DType::i64), {{1, 0}}, odd).to_vector<int64_t>(), (Wholes{odd, 1}));
  EXPECT_EQ(pad(constant({1}, DType::i64), {{0, 1}}, INT64_MIN).to_vector<int64_t>(),
            (Wholes{1, INT64_MIN}));
}

TEST(Create, FloatsSaturateIntoIntegers) {
  EXPECT_EQ(full({}, 1e30, DType::i64).item<int64_t>(), INT64_MAX);
  EXPECT_EQ(full({}, -1e30, DType::i64).item<int64_t>(), INT64_MIN);
  EXPECT_EQ(full({}, NAN, DType::i32).item<int32_t>(), 0);
  EXPECT_EQ(full({}, 3e9, DType::i32).item<int32_t>(), INT32_MAX);
  EXPECT_EQ(full({}, -2.5, DType::u8).item<int>(), 0);
  EXPECT_EQ(full({}, 255.9, DType::u8).item<int>(), 255);
  EXPECT_EQ(full({}, -7.9, DType::i32).item<int>(), -7);
  EXPECT_TRUE(full({}, 0.5, DType::boolean).item<bool>());
}

TEST(Borrow, SeesTheCallersMemoryAndReleasesItOnce) {
  std::vector<float> memory = {1, 2, 3, 4};
  int released = 0;
  const int64_t before = memory::current().count;
  {
    Tensor x = borrow(std::span(memory), {2, 2}, [&] { ++released; });
    EXPECT_EQ(memory::current().count, before) << "borrowed bytes are not charged";
    memory[3] = 9;
    EXPECT_EQ((x[{1, 1}].item<float>()), 9);
    const Tensor row = x[1];
    // Never written to, not even by the last handle.
    x += 1;
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(x[0][0].item<float>(), 2);
    EXPECT_EQ(released, 0) << "the view still sees it";
  }
  EXPECT_EQ(released, 1);
  const Tensor y = td::square(borrow(std::span(memory), {4}, [&] { ++released; }));
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(released, 2);
}

TEST(Borrow, ReleasesAsTheUsersCode) {
  float number = 1;
  Tensor kept;
  Tensor x = borrow(std::span(&number, 1), {1}, [&] { kept = ones({1000}); });
  {
    const SourceScope library(Source::here("library.cc", 5));
    x = {};
  }
  const auto rows = memory::live().rows;
  const auto has = [&](const std::string& file) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return row.line.starts_with(file); });
  };
  EXPECT_TRUE(has("create_test.cc:"));
  EXPECT_FALSE(has("library.cc:"));
}

// ---- draws --------------------------------------------------------------------------------------

class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(num_threads()) { set_num_threads(count); }
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int before_;
};

TEST(Random, TheSameKeyGivesTheSameBitsForAnyNumberOfThreads) {
  const random::Key key(42);
  const auto draw = [&] {
    return std::vector<Tensor>{random::normal({70001}, {.key = key}),
                               random::normal({70001}, {.dtype = DType::f64, .key = key}),
                               random::uniform({70001}, {.dtype = DType::bf16, .key = key}),
                               random::integers({70001}, {.low = -3, .high = 1000, .key = key}),
                               random::bernoulli({70001}, {.p = 0.3, .key = key}),
                               random::permutation(70001, {.key = key}),
                               dropout(ones({70001}), {.rate = 0.25, .key = key})};
  };
  std::vector<Tensor> alone;
  for (const int count : {1, 2, 5}) {
    const ThreadCount threads(count);
    const std::vector<Tensor> drawn = draw();
    if (alone.empty()) alone = drawn;
    for (size_t i = 0; i < drawn.size(); ++i)
      EXPECT_TRUE(identical(drawn[i], alone[i])) << "draw " << i << ", " << count << " threads";
  }
}

TEST(Random, KeysSplitIntoDifferentOnes) {
  const random::Key key(1);
  const std::vector<random::Key> keys = key.split(3);
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_NE(keys[0].value(), keys[1].value());
  EXPECT_NE(keys[1].value(), keys[2].value());
  EXPECT_EQ(key.fold_in(7).value(), key.fold_in(constant({7})[0]).value());
  EXPECT_NE(key.fold_in(7).value(), key.fold_in(8).value());
  EXPECT_FALSE(
      identical(random::normal({8}, {.key = keys[0]}), random::normal({8}, {.key = keys[1]})));
}

// Else a program that uses both would have the same numbers twice.
TEST(Random, TheGeneratorDrawsOtherNumbersThanTheKeysOfItsSeed) {
  for (const uint64_t seed : {0, 1, 7}) {
    random::seed(seed);
    const random::Key key(seed);
    std::vector<random::Key> keys = key.split(4);
    keys.push_back(key);
    for (int draw = 0; draw < 4; ++draw) {
      const auto drawn = random::uniform({}).item<float>();
      for (const random::Key& one : keys)
        EXPECT_NE(drawn, random::uniform({}, {.key = one}).item<float>());
    }
  }
}

TEST(Random, TheGlobalSeedRepeatsASequence) {
  random::seed(5);
  const Tensor a = random::normal({8}), b = random::normal({8});
  random::seed(5);
  EXPECT_TRUE(identical(random::normal({8}), a));
  EXPECT_TRUE(identical(random::normal({8}), b));
  EXPECT_FALSE(identical(a, b));
}

// Five standard errors of the estimate: the draw is fixed, so this cannot fail by chance.
TEST(Random, DrawsHaveTheirDistribution) {
  const random::Key key(3);
  const int64_t n = 1000000;
  const Tensor x = random::normal({n}, {.mean = 2, .stddev = 3, .dtype = DType::f64, .key = key});
  EXPECT_NEAR(mean(x).item<double>(), 2, 5 * 3 / 1e3);
  EXPECT_NEAR(td::std(x).item<double>(), 3, 5 * 3 / 1.4e3);
  const Tensor u = random::uniform({n}, {.low = -1, .high = 3, .key = key});
  EXPECT_GE(min(u).item<float>(), -1);
  EXPECT_LT(max(u).item<float>(), 3);
  EXPECT_NEAR(mean(u).item<double>(), 1, 5 * 1.155 / 1e3);
  const Tensor coin = random::bernoulli({n}, {.p = 0.3, .key = key});
  EXPECT_NEAR(static_cast<double>(sum(coin).item<int64_t>()) / n, 0.3, 5 * 0.46 / 1e3);
  const Tensor dice = random::integers({n}, {.low = 1, .high = 7, .key = key});
  for (int face = 1; face <= 6; ++face)
    EXPECT_NEAR(sum(dice == face).item<double>() / n, 1.0 / 6, 5 * 0.373 / 1e3);
  EXPECT_EQ(min(dice).item<int>(), 1);
  EXPECT_EQ(max(dice).item<int>(), 6);
  std::vector<int64_t> order = random::permutation(1000, {.key = key}).to_vector<int64_t>();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Random, UniformNeverGivesItsUpperBound) {
  const random::Key key(5);
  struct Bounds {
    double low, high;
  };
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Bounds b : {Bounds{0, 1}, Bounds{-1, 0}, Bounds{-3, -2}, Bounds{7, 8}}) {
      const Tensor x =
          random::uniform({200000}, {.low = b.low, .high = b.high, .dtype = dtype, .key = key});
      EXPECT_LT(max(x).item<double>(), b.high) << dtype << " in [" << b.low << ", " << b.high;
      EXPECT_GE(min(x).item<double>(), b.low) << dtype << " in [" << b.low << ", " << b.high;
    }
  }
  const Tensor huge = random::uniform({100000}, {.high = 1e6, .dtype = DType::f16, .key = key});
  EXPECT_EQ(max(huge).item<double>(), 65504);
}

TEST(Random, IntegersAreTheSameInEveryDType) {
  const random::Key key(6);
  const int64_t n = 40001;
  const random::IntegersOptions options{.low = 3, .high = 250, .dtype = DType::i64, .key = key};
  const Tensor wide = random::integers({n}, options);
  for (const DType dtype : {DType::i16, DType::i32, DType::u8, DType::u32, DType::u64}) {
    random::IntegersOptions narrow = options;
    narrow.dtype = dtype;
    EXPECT_TRUE(identical(cast(random::integers({n}, narrow), DType::i64), wide)) << dtype;
  }
  // The upper bound of every i32 is none itself.
  const int64_t past = int64_t{INT32_MAX} + 1;
  const auto all_of = [&](DType dtype) {
    return random::integers({n}, {.low = INT32_MIN, .high = past, .dtype = dtype, .key = key});
  };
  EXPECT_TRUE(identical(cast(all_of(DType::i32), DType::i64), all_of(DType::i64)));
}

TEST(Random, IntegersTakeNoMemoryButTheResultAndTheKey) {
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::u16, DType::u64}) {
    memory::reset_peak();
    const int64_t before = memory::current().count;
    const Tensor x = random::integers({100000}, {.low = 0, .high = 9, .dtype = dtype});
    EXPECT_EQ(memory::peak().count - before, memory::current().count - before + 64) << dtype;
  }
}

TEST(Random, ADrawIsAFunctionOfPosition) {
  const random::Key key(9);
  const Tensor few = random::normal({100}, {.key = key});
  const Tensor many = random::normal({10, 1000}, {.key = key});
  EXPECT_TRUE(identical(few, reshape(many, {-1})[Slice{.end = 100}]));
}

TEST(Random, BernoulliTakesAProbabilityForEachElement) {
  random::seed(9);
  const Tensor p = constant({0.0F, 1.0F, 0.5F});
  const Tensor drawn = random::bernoulli(p, {10000, 3});
  EXPECT_EQ(drawn.dtype(), DType::boolean);
  const std::vector<int64_t> hits = sum(drawn, 0).to_vector<int64_t>();
  EXPECT_EQ(hits[0], 0);
  EXPECT_EQ(hits[1], 10000);
  // Five standard deviations of 10,000 fair coins are 250.
  EXPECT_NEAR(static_cast<double>(hits[2]), 5000, 250);
  EXPECT_EQ(random::bernoulli(1, {4}).to_vector<bool>(),
            (std::vector<bool>{true, true, true, true}));
}

TEST(Random, GoesOnFromAState) {
  random::seed(11);
  (void)random::normal({3});
  const Tensor state = random::state();
  const Tensor first = random::normal({5}), second = random::normal({5});
  EXPECT_FALSE(identical(first, second));
  random::set_state(state);
  EXPECT_TRUE(identical(random::normal({5}), first));
  EXPECT_TRUE(identical(random::normal({5}), second));
  // The same as having drawn as often from the seed.
  random::seed(11);
  (void)random::normal({3});
  EXPECT_TRUE(identical(random::normal({5}), first));
}

TEST(Random, RefusesAStateOfAnotherType) {
  const std::string text = error_of([] { random::set_state(zeros({2})); });
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "random::set_state: the state is i64[3], this is f32[2]");
  EXPECT_EQ(text.substr(text.rfind('\n')), "\n  give a value that td::random::state() returned");
}

TEST(FromCallback, IsWhatTheCallbackWrites) {
  const int64_t before = memory::current().count;
  memory::reset_peak();
  const Tensor x = from_callback({2, 32}, DType::f32, [](std::span<std::byte> bytes) {
    ASSERT_EQ(bytes.size(), 256U);
    auto* const elements = reinterpret_cast<float*>(bytes.data());
    for (int i = 0; i < 64; ++i) elements[i] = static_cast<float>(i);
  });
  EXPECT_EQ(memory::peak().count, before + 256);
  EXPECT_TRUE(identical(x, reshape(arange(0, 64, 1, DType::f32), {2, 32})));
}

TEST(FromCallback, GivesItsBytesBackWhereTheCallbackThrows) {
  const int64_t before = memory::current().count;
  const auto fails = [] {
    (void)from_callback({1000}, DType::f32,
                        [](std::span<std::byte>) { throw UserError("no bytes"); });
  };
  EXPECT_EQ(error_of(fails), "no bytes");
  EXPECT_EQ(memory::current().count, before);
}

}  // namespace
}  // namespace tidemark

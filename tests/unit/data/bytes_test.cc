// What a dataset holds while it is walked: stated before, and measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/over_budget.h"
#include "tidemark/api/random.h"
#include "tidemark/data/dataset.h"
#include "tidemark/device/threads.h"

namespace tidemark {
namespace {

// The most that a walk adds to what is held before it.
template <class E>
Bytes peak_of(const data::Dataset<E>& dataset) {
  const Bytes before = memory::current();
  memory::reset_peak();
  for ([[maybe_unused]] const E& element : dataset) continue;
  EXPECT_EQ(memory::current(), before);
  return memory::peak() - before;
}
template <class E>
Bytes planned(const data::Dataset<E>& dataset) {
  return dataset.plan().total();
}

// As peak_of, by a scope around the walk.
template <class E>
Bytes peak_in_scope(const data::Dataset<E>& dataset) {
  const MemoryScope scope("walk");
  for ([[maybe_unused]] const E& element : dataset) continue;
  EXPECT_EQ(scope.current(), Bytes(0));
  return scope.peak();
}

// A generator of so many elements of so many bytes.
auto elements_of(std::vector<int64_t> sizes) {
  return data::from_generator([sizes, i = size_t{0}]() mutable -> std::optional<Tensor> {
    if (i == sizes.size()) return std::nullopt;
    return zeros({sizes[i++]}, u8);
  });
}

TEST(DataBytes, AWalkHoldsWhatItsPlanSays) {
  const MachineCode machine;
  const Tensor x = ones({100, 1000}), y = arange(100);
  const auto rows = data::from_tensor_slices(std::tuple{x, y});
  const auto scale = [](const Tensor& a, const Tensor& b) { return std::tuple{a * 2, b}; };
  EXPECT_EQ(planned(rows), 0_B);
  EXPECT_EQ(peak_of(rows), 0_B);
  EXPECT_EQ(planned(rows.batch(10)), 0_B);
  EXPECT_EQ(peak_of(rows.batch(10)), 0_B);
  const auto shuffled = rows.shuffle({.seed = 1}).batch(10);
  EXPECT_EQ(planned(shuffled), 40'000_B + 64_B);  // The labels are 40 bytes.
  EXPECT_EQ(peak_of(shuffled), planned(shuffled));
  const auto scaled = rows.map(scale);
  EXPECT_EQ(planned(scaled), 4'032_B);
  EXPECT_EQ(peak_of(scaled), planned(scaled));
  EXPECT_EQ(planned(scaled.batch(10)), 4'032_B + 40'064_B);
  EXPECT_EQ(peak_of(scaled.batch(10)), planned(scaled.batch(10)));
  const auto numbers = data::range(10).map([](const Tensor& i) { return i + 1; });
  EXPECT_EQ(planned(numbers), 128_B);
  EXPECT_LE(peak_of(numbers), planned(numbers));
}

TEST(DataBytes, ThreadsHoldNoMoreThanThePlanSays) {
  const MachineCode machine;
  const Tensor x = ones({200, 1000});
  const auto rows = data::from_tensor_slices(x).shuffle({.seed = 1});
  const auto work = [](const Tensor& a) { return sum(repeat(a, 8)) + a; };
  for (const int parallel : {2, 3, 8}) {
    const auto mapped = rows.map(work, {.parallel = parallel});
    EXPECT_LE(peak_of(mapped), planned(mapped));
    const auto ahead = mapped.batch(16).prefetch(2);
    EXPECT_LE(peak_of(ahead), planned(ahead));
  }
  const auto ahead = rows.batch(20).prefetch(3);
  EXPECT_EQ(planned(ahead), 320'000_B);
  const Bytes before = memory::current();
  memory::reset_peak();
  for ([[maybe_unused]] const Tensor& batch : ahead)
    while (memory::current() - before < 320'000_B && ahead.position().element < 6)
      std::this_thread::yield();  // Until all that may be ahead is.
  EXPECT_EQ(memory::peak() - before, planned(ahead));
}

// What is stated after a walk is what a walk holds, up to one element that a stage counts while the
// next one has it already.
TEST(DataBytes, StagesOfSeveralElementsHoldWhatTheirPlanSays) {
  const MachineCode machine;
  std::vector<int64_t> sizes(24);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = 6400 * static_cast<int64_t>(i % 4 + 1);
  const auto rows = elements_of(sizes);
  const auto even = elements_of(std::vector<int64_t>(24, 6400));
  const auto length = [](const Tensor& x) { return int64_t{x.shape()[0]}; };
  for (const auto& stage :
       {rows.padded_batch(4), rows.padded_batch(4, {.shapes = {{32000}}}),
        even.window(4, {.shift = 2}), even.window(3, {.stride = 2}), even.shard(3, 1),
        data::range(4).interleave([even](const Tensor&) { return even; }, {.cycle = 2}),
        data::sample_from(std::vector{even, even})}) {
    const Bytes first = peak_of(stage);
    EXPECT_EQ(peak_of(stage), first);
    EXPECT_LE(first, stage.plan().total()) << stage.plan();
    EXPECT_LE(stage.plan().total(), first + 64'000_B) << stage.plan();
  }
  // The largest element may wait in every bucket.
  const auto buckets = rows.bucket_by_length(length, {{10000, 20000}, {2, 4, 2}});
  const Bytes most = peak_of(buckets);
  EXPECT_LE(most, planned(buckets));
  EXPECT_THROW(peak_of(rows.padded_batch(4).within(50'000_B)), OverBudget);
  const auto slices = data::from_tensor_slices(ones({100, 1000}));
  EXPECT_EQ(planned(slices.window(10, {.shift = 5})), 0_B);
  EXPECT_EQ(peak_of(slices.window(10, {.shift = 5})), 0_B);
  EXPECT_EQ(planned(slices.window(10, {.stride = 2})), 40'000_B);
  EXPECT_EQ(peak_of(slices.window(10, {.stride = 2})), 40'000_B);
}

TEST(DataBytes, AMemoryScopeCountsWhatThreadsMakeForItsWalk) {
  const auto batches = data::from_tensor_slices(ones({64, 1024})).shuffle({.seed = 1}).batch(8);
  const Bytes one(8 * 1024 * 4);
  EXPECT_EQ(peak_in_scope(batches), one);
  const auto ahead = batches.prefetch(2);
  EXPECT_GE(peak_in_scope(ahead), one);
  EXPECT_LE(peak_in_scope(ahead), planned(ahead));
  const auto twice = batches.map([](const Tensor& x) { return x + x; }, {.parallel = 2});
  EXPECT_GE(peak_in_scope(twice), one + one);
  EXPECT_LE(peak_in_scope(twice), planned(twice));
}

TEST(DataBytes, AHundredEpochsAreFlatToTheByte) {
  const MachineCode machine;
  const Tensor x = random::normal({256, 100}), y = arange(256);
  const auto batches =
      data::from_tensor_slices(std::tuple{x, y})
          .shuffle({.seed = 1})
          .map([](const Tensor& a, const Tensor& b) { return std::tuple{a * 2 + 1, b}; })
          .batch(32);
  const Bytes first = peak_of(batches), cached = memory::cached();
  for (int epoch = 0; epoch < 100; ++epoch) ASSERT_EQ(peak_of(batches), first);
  EXPECT_EQ(memory::cached(), cached);
  EXPECT_EQ(first, planned(batches));
}

TEST(DataBytes, BatchesUseTheSameBytesAgain) {
  const auto batches = data::from_tensor_slices(ones({64, 4096})).shuffle().batch(8);
  std::vector<const float*> places;
  for (const Tensor& batch : batches) places.push_back(batch.span<const float>().data());
  EXPECT_EQ(std::count(places.begin(), places.end(), places.front()), 8);
}

TEST(DataBytes, MappingARepeatAndASumHoldsOneElementsIntermediates) {
  const MachineCode machine;
  const auto sums = data::range(1000).map([](const Tensor& e) { return sum(repeat(e, 10'000)); });
  // One repeated element of i64, the number itself and the sum.
  EXPECT_LE(peak_of(sums), 80'000_B + 192_B);
  EXPECT_LE(peak_of(sums), planned(sums));
  int64_t total = 0;
  for (const Tensor& each : sums) total += each.item<int64_t>();
  EXPECT_EQ(total, int64_t{10'000} * 999 * 1000 / 2);
  const auto traced =
      data::range(1000).map(function([](const Tensor& e) { return sum(repeat(e, 10'000)); }));
  EXPECT_LE(peak_of(traced), 80'000_B + 192_B);
}

TEST(DataBytes, FiftyMillionRowsAreShuffledInNoBytes) {
  constexpr int64_t kRows = 50'000'000;
  const auto batches = data::range(kRows).shuffle({.seed = 1}).batch(1000).take(100);
  EXPECT_EQ(planned(batches), 8'000_B + 64_B);
  EXPECT_EQ(peak_of(batches), 8'000_B + 64_B);
  int64_t sum_of_halves = 0;
  for (const Tensor& batch : batches)
    for (const int64_t row : batch.to_vector<int64_t>()) sum_of_halves += row < kRows / 2;
  // Of 100,000 rows about half are in the first half: ten deviations of 158.
  EXPECT_NEAR(static_cast<double>(sum_of_halves), 50'000, 1'580);
}

TEST(DataBytes, AGeneratorIsKnownAfterItsFirstElement) {
  const auto batches = elements_of({100, 100, 100}).batch(2);
  EXPECT_FALSE(batches.plan().is_known());
  auto walk = batches.begin();
  EXPECT_TRUE(batches.plan().is_known());
  EXPECT_EQ(planned(batches), 128_B + 256_B);
}

TEST(DataBytes, TheCapIsForAllStages) {
  const auto rows = data::from_tensor_slices(ones({100, 1024}));
  const auto batches = rows.shuffle().batch(16);  // 64 KiB each.
  EXPECT_EQ(peak_of(batches.within(64_KiB)), 64_KiB);
  EXPECT_EQ(error_of([&] { batches.prefetch(2).within(191_KiB, Source::here("a.cc", 7, "")); }),
            "data: this dataset holds 192.0 KiB during an iteration, its cap is 191.0 KiB\n"
            "  at a.cc:7\n"
            "  from_tensor_slices 0 B, shuffle 0 B, batch(16) 64.0 KiB, prefetch(2) 128.0 KiB\n"
            "  raise the cap, or make one of these hold less");
  try {
    batches.within(10_KiB);
    FAIL();
  } catch (const OverBudget& error) {
    EXPECT_EQ(error.budget(), 10_KiB);
    EXPECT_EQ(error.floor(), 64_KiB);
  }
  // Stages that come later count too.
  const auto later = batches.within(100_KiB, Source::here("a.cc", 8, "")).prefetch(1);
  EXPECT_EQ(error_of([&] { later.begin(); }),
            "data: this dataset holds 128.0 KiB during an iteration, its cap is 100.0 KiB\n"
            "  at a.cc:8\n"
            "  from_tensor_slices 0 B, shuffle 0 B, batch(16) 64.0 KiB, prefetch(1) 64.0 KiB\n"
            "  raise the cap, or make one of these hold less");
}

TEST(DataBytes, TheCapHoldsForWhatIsKnownLate) {
  const Bytes before = memory::current();
  const auto batches =
      elements_of({1024, 1024}).batch(100).within(64_KiB, Source::here("a.cc", 9, ""));
  memory::reset_peak();
  EXPECT_EQ(error_of([&] { batches.begin(); }),
            "data: this dataset holds 101.0 KiB during an iteration, its cap is 64.0 KiB\n"
            "  at a.cc:9\n"
            "  from_generator 1.0 KiB, batch(100) 100.0 KiB\n"
            "  raise the cap, or make one of these hold less");
  EXPECT_EQ(memory::peak() - before, 1024_B);  // No batch was made.
  const auto growing = elements_of({1024, 4096}).within(2_KiB, Source::here("a.cc", 9, ""));
  auto walk = growing.begin();
  EXPECT_EQ(error_of([&] { ++walk; }),
            "data: this dataset holds 4.0 KiB during an iteration, its cap is 2.0 KiB\n"
            "  at a.cc:9\n"
            "  from_generator 4.0 KiB\n"
            "  raise the cap, or make one of these hold less");
}

TEST(DataBytes, ACacheStatesItsBytesBeforeItIsFilled) {
  const MachineCode machine;
  const auto cached = data::from_tensor_slices(ones({100, 1024}))
                          .map([](const Tensor& x) { return x + 1; })
                          .cache();
  EXPECT_EQ(planned(cached), 4_KiB + 400_KiB);
  const Bytes before = memory::current();
  memory::reset_peak();
  for (int walk = 0; walk < 3; ++walk)
    for (const Tensor& x : cached) ASSERT_EQ(x[0].item<float>(), 2);
  EXPECT_EQ(memory::peak() - before, planned(cached));
  EXPECT_EQ(memory::current() - before, 400_KiB);
  const auto refused = data::range(1000)
                           .map([](const Tensor&) { return ones({256}); })
                           .cache(Source::here("a.cc", 3, ""));
  EXPECT_EQ(error_of([&] { refused.within(100_KiB, Source::here("a.cc", 4, "")); }),
            "data: this dataset holds 1001.1 KiB during an iteration, its cap is 100.0 KiB\n"
            "  at a.cc:4\n"
            "  range 64 B, map 1.0 KiB, cache 1000.0 KiB\n"
            "  raise the cap, or make one of these hold less");
}

TEST(DataBytes, ACacheOfUnknownLengthStopsAtTheCap) {
  const Bytes before = memory::current();
  const auto cached = elements_of(std::vector<int64_t>(1000, 1024)).cache().within(100_KiB);
  EXPECT_FALSE(cached.plan().is_known());
  memory::reset_peak();
  EXPECT_THROW(cached.begin(), UserError);
  EXPECT_LE(memory::peak() - before, 100_KiB);
  EXPECT_EQ(memory::current(), before);
  const auto small = elements_of(std::vector<int64_t>(50, 1024)).cache().within(100_KiB);
  EXPECT_EQ(std::distance(small.begin()->span<const uint8_t>().begin(),
                          small.begin()->span<const uint8_t>().end()),
            1024);
  EXPECT_EQ(planned(small), 1_KiB + 63_KiB);  // Blocks of 1, 2, 4, ... 32 elements.
}

TEST(DataBytes, APlanPrintsATable) {
  const MachineCode machine;
  const auto batches =
      data::from_tensor_slices(ones({100, 256}), Source::here("a.cc", 1, ""))
          .shuffle({}, Source::here("a.cc", 2, ""))
          .map([](const Tensor& x) { return x + 1; }, {}, Source::here("a.cc", 30, ""))
          .batch(16, {}, Source::here("a.cc", 4, ""))
          .prefetch(2, Source::here("a.cc", 5, ""));
  EXPECT_EQ(batches.plan().to_text(),
            "stage               line            bytes\n"
            "from_tensor_slices  a.cc:1            0 B  views of your tensors, 100.0 KiB\n"
            "shuffle             a.cc:2            0 B  by index, without a buffer\n"
            "map                 a.cc:30       1.0 KiB  1 element being computed\n"
            "batch(16)           a.cc:4       16.0 KiB  1 batch f32[16, 256]\n"
            "prefetch(2)         a.cc:5       32.0 KiB  2 elements f32[16, 256]\n"
            "total                            49.0 KiB\n");
  const auto unknown =
      data::from_generator([] { return std::optional<Tensor>(); }, Source::here("a.cc", 1, ""));
  EXPECT_EQ(unknown.plan().to_text(),
            "stage           line           bytes\n"
            "from_generator  a.cc:1       unknown  known after the first element\n"
            "total                        unknown\n");
  EXPECT_EQ(error_of([&] { unknown.plan().total(Source::here("a.cc", 2, "")); }),
            "data: the bytes of from_generator (a.cc:1) are known after the first element\n"
            "  at a.cc:2\n"
            "  ask is_known() first, or known_bytes() for the rest");
}

TEST(DataBytes, NothingStaysWhenAWalkIsLeftOrFails) {
  const Bytes before = memory::current();
  {
    const auto ahead = data::range(1000)
                           .map(
                               [](const Tensor& i) {
                                 if (i.item<int>() == 50) throw std::runtime_error("enough");
                                 return ones({1000}) * i;
                               },
                               {.parallel = 4})
                           .batch(4)
                           .prefetch(3);
    for (int walk = 0; walk < 10; ++walk)
      for (const Tensor& batch : ahead)
        if (batch[{3, 0}].item<int>() > 20) break;
    EXPECT_EQ(memory::current(), before);
    EXPECT_THROW(for ([[maybe_unused]] const Tensor& batch : ahead) continue, UserError);
    EXPECT_EQ(memory::current(), before);
  }
  EXPECT_EQ(memory::current(), before);
}

}  // namespace
}  // namespace tidemark

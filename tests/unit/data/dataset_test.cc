// Values and order: what each stage gives, whatever runs at once.
#include "tidemark/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "tests/unit/error_of.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/ops.h"

namespace tidemark {
namespace {

using Numbers = std::vector<int64_t>;

struct Batch {
  Tensor image, label;
};

// All elements of one walk, as numbers.
Numbers numbers_of(const data::Dataset<Tensor>& dataset) {
  Numbers list;
  for (const Tensor& x : dataset)
    for (const int64_t number : x.to_vector<int64_t>()) list.push_back(number);
  return list;
}
Numbers sorted(Numbers list) {
  std::sort(list.begin(), list.end());
  return list;
}
Numbers counted(int64_t count) {
  Numbers list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}
data::Dataset<Tensor> rows(int64_t count) { return data::from_tensor_slices(arange(count)); }

TEST(Dataset, GivesRowsOfTensors) {
  const Tensor x = constant({{1, 2}, {3, 4}, {5, 6}});
  int64_t row = 0;
  for (const Tensor& each : data::from_tensor_slices(x)) EXPECT_TRUE(identical(each, x[row++]));
  EXPECT_EQ(row, 3);
}

TEST(Dataset, GivesRowsOfViewsThatAreNotDense) {
  const Tensor x = transpose(reshape(arange(12), {4, 3}));
  const auto shuffled = data::from_tensor_slices(x).shuffle({.seed = 3}).batch(3);
  for (const Tensor& batch : shuffled)
    EXPECT_EQ(sorted(sum(batch, 1).to_vector<int64_t>()), (Numbers{18, 22, 26}));
}

TEST(Dataset, KeepsTheStructureOfItsElements) {
  const Tensor x = arange(6), y = x * 10;
  for (const auto& [a, b] : data::from_tensor_slices(std::pair{x, y}))
    EXPECT_TRUE(identical(a * 10, b));
  for (const Batch& batch : data::from_tensor_slices(Batch{x, y}).batch(4))
    EXPECT_TRUE(identical(batch.image * 10, batch.label));
  const auto named = data::from_tensor_slices(std::map<std::string, Tensor>{{"x", x}, {"y", y}});
  for (const auto& each : named) EXPECT_TRUE(identical(each.at("x") * 10, each.at("y")));
  const auto lists = data::from_tensor_slices(std::vector{x, y}).shuffle().batch(3);
  for (const std::vector<Tensor>& each : lists) EXPECT_TRUE(identical(each[0] * 10, each[1]));
}

TEST(Dataset, ExampleOfItsPage) {
  auto [images, labels] = std::pair{zeros({600, 784}), zeros({600}, i32)};
  auto batches =
      data::from_tensor_slices(std::tuple{images, labels})
          .shuffle({.seed = 1})
          .map([](const Tensor& x, const Tensor& y) { return std::tuple{cast(x, f32) / 255, y}; },
               {.parallel = 2})
          .batch(64, {.drop_remainder = true})
          .prefetch(2);
  int64_t count = 0;
  for (const auto& [x, y] : batches) {
    EXPECT_EQ(x.shape(), (Shape{64, 784}));
    EXPECT_EQ(y.shape(), (Shape{64}));
    ++count;
  }
  EXPECT_EQ(count, 9);
  EXPECT_EQ(batches.count(), 9);
}

TEST(Dataset, RangesCount) {
  EXPECT_EQ(numbers_of(data::range(4)), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(numbers_of(data::range(3, 9, 2)), (Numbers{3, 5, 7}));
  EXPECT_EQ(numbers_of(data::range(3, -4, -3)), (Numbers{3, 0, -3}));
  EXPECT_EQ(numbers_of(data::range(5, 5)), Numbers{});
}

TEST(Dataset, RepeatsTakesAndSkips) {
  EXPECT_EQ(numbers_of(rows(3).repeat(2)), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(numbers_of(rows(3).repeat().take(7)), (Numbers{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(numbers_of(rows(5).skip(2)), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers_of(rows(5).take(9)), counted(5));
  EXPECT_EQ(numbers_of(rows(5).skip(9)), Numbers{});
  EXPECT_EQ(numbers_of(rows(9).skip(2).take(3)), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers_of(rows(9).take(5).skip(2)), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers_of(rows(0).repeat()), Numbers{});
  EXPECT_EQ(numbers_of(rows(3).repeat(0)), Numbers{});
}

TEST(Dataset, BatchesWithAndWithoutARemainder) {
  std::vector<int64_t> sizes;
  for (const Tensor& x : rows(7).batch(3)) sizes.push_back(x.shape()[0]);
  EXPECT_EQ(sizes, (Numbers{3, 3, 1}));
  EXPECT_EQ(numbers_of(rows(7).batch(3)), counted(7));
  EXPECT_EQ(numbers_of(rows(7).batch(3, {.drop_remainder = true})), counted(6));
  EXPECT_EQ(numbers_of(rows(2).batch(3, {.drop_remainder = true})), Numbers{});
  EXPECT_EQ(numbers_of(data::range(7).batch(3)), counted(7));
  EXPECT_EQ(numbers_of(rows(4).repeat(2).batch(3)), (Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
}

// Every order of a few elements, by seed, as often as any other: 120 orders, 100 times each. The
// sum of squared deviations has a mean of 119 and a standard deviation of 15.
TEST(Shuffle, MakesEveryOrderOfFewElementsEquallyLikely) {
  constexpr int kOrders = 120, kEach = 100;
  std::map<Numbers, int> seen;
  for (int seed = 0; seed < kOrders * kEach; ++seed)
    ++seen[numbers_of(data::range(5).shuffle({.seed = seed}))];
  EXPECT_EQ(seen.size(), kOrders);
  double squares = 0;
  for (const auto& [order, count] : seen) squares += (count - kEach) * (count - kEach) / 100.0;
  EXPECT_NEAR(squares, kOrders - 1, 75);
}

TEST(Dataset, ShuffleIsAPermutationThatTheSeedAndThePassDecide) {
  for (const int64_t count : {1, 2, 3, 5, 64, 100, 1000}) {
    const auto shuffled = rows(count).shuffle({.seed = 7});
    const Numbers first = numbers_of(shuffled), second = numbers_of(shuffled);
    EXPECT_EQ(sorted(first), counted(count));
    EXPECT_EQ(sorted(second), counted(count));
    EXPECT_EQ(numbers_of(rows(count).shuffle({.seed = 7})), first);
    if (count >= 64) {
      EXPECT_NE(first, second);
      EXPECT_NE(first, counted(count));
      EXPECT_NE(numbers_of(rows(count).shuffle({.seed = 8})), first);
    }
    const auto same = rows(count).shuffle({.seed = 7, .reshuffle = false});
    EXPECT_EQ(numbers_of(same), numbers_of(same));
  }
}

TEST(Dataset, ShuffleBringsEachElementToEachPlaceAboutAsOften) {
  constexpr int64_t kCount = 8, kPasses = 8000, kExpected = kPasses / kCount;
  const auto shuffled = rows(kCount).shuffle({.seed = 11});
  std::vector<int64_t> seen(kCount * kCount);
  for (int64_t pass = 0; pass < kPasses; ++pass) {
    int64_t place = 0;
    for (const int64_t number : numbers_of(shuffled))
      ++seen[static_cast<size_t>(number * kCount + place++)];
  }
  double chi_square = 0;
  for (const int64_t times : seen)
    chi_square += static_cast<double>((times - kExpected) * (times - kExpected)) / kExpected;
  // 49 degrees of freedom: 85.4 is passed once in a thousand.
  EXPECT_LT(chi_square, 85.4);
}

TEST(Dataset, ShuffleByBufferGivesEachElementOnce) {
  const auto shuffled = rows(100).shuffle({.buffer = 10, .seed = 1});
  const Numbers first = numbers_of(shuffled);
  EXPECT_EQ(sorted(first), counted(100));
  EXPECT_NE(first, counted(100));
  EXPECT_NE(numbers_of(shuffled), first);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_LE(first[i], static_cast<int64_t>(i) + 9);
}

TEST(Dataset, RepetitionsAreShuffledAnew) {
  const Numbers twice = numbers_of(rows(50).shuffle({.seed = 2}).repeat(2));
  const Numbers first(twice.begin(), twice.begin() + 50), second(twice.begin() + 50, twice.end());
  EXPECT_EQ(sorted(first), counted(50));
  EXPECT_EQ(sorted(second), counted(50));
  EXPECT_NE(first, second);
}

TEST(Dataset, OrderIsTheSameForAnyNumberOfThreads) {
  const auto made = [](int parallel) {
    return numbers_of(rows(200)
                          .shuffle({.seed = 5})
                          .map(
                              [](const Tensor& x) {
                                if (x.item<int>() % 7 == 0) std::this_thread::yield();
                                return x * 3 + 1;
                              },
                              {.parallel = parallel})
                          .batch(8)
                          .prefetch(3));
  };
  const Numbers one = made(1);
  EXPECT_EQ(one.size(), 200u);
  for (const int parallel : {2, 3, 8}) EXPECT_EQ(made(parallel), one);
}

TEST(Dataset, MapTakesFunctionsOpsAndWholeStructs) {
  const Tensor x = linspace(0, 1, 8);
  const auto twice = function([](const Tensor& a) { return a * 2; });
  for (const int parallel : {1, 4}) {
    int64_t row = 0;
    for (const Tensor& y : data::from_tensor_slices(x).map(twice, {.parallel = parallel}))
      EXPECT_TRUE(identical(y, x[row++] * 2));
    EXPECT_EQ(row, 8);
  }
  int64_t row = 0;
  for (const Tensor& y : data::from_tensor_slices(x).map(exp))
    EXPECT_TRUE(identical(y, exp(x[row++])));
  const auto sums =
      data::from_tensor_slices(Batch{x, x}).map([](const Batch& b) { return b.image + b.label; });
  row = 0;
  for (const Tensor& y : sums) EXPECT_TRUE(identical(y, x[row++] * 2));
  const auto wholes =
      data::from_tensor_slices(std::tuple{x, x}).map([](const std::tuple<Tensor, Tensor>& both) {
        return std::get<0>(both) - std::get<1>(both);
      });
  for (const Tensor& y : wholes) EXPECT_EQ(y.item<float>(), 0);
  const auto plain = data::range(3).map([](const Tensor& i) { return std::pair{i, 0.5}; });
  for (const auto& [i, half] : plain.batch(3))
    EXPECT_EQ(half.to_vector<float>(), (std::vector<float>{.5, .5, .5}));
}

TEST(Dataset, FilterKeepsWhatIsTrue) {
  const auto even = rows(10).filter([](const Tensor& x) { return x % 2 == 0; });
  EXPECT_EQ(numbers_of(even), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(numbers_of(even.batch(2)), (Numbers{0, 2, 4, 6, 8}));
  const auto pairs =
      data::from_tensor_slices(std::tuple{arange(4), arange(4) * 2})
          .filter([](const Tensor& a, const Tensor& b) { return (a + b).item<int>() > 3; });
  int64_t count = 0;
  for ([[maybe_unused]] const auto& each : pairs) ++count;
  EXPECT_EQ(count, 2);
}

TEST(Dataset, ZipEndsWithTheShortest) {
  const auto both = data::zip(rows(5), data::range(3));
  int64_t count = 0;
  for (const auto& [a, b] : both) EXPECT_EQ(a.item<int>() + b.item<int>(), 2 * count++);
  EXPECT_EQ(count, 3);
  for (const auto& [a, b] : data::zip(rows(5).shuffle({.seed = 1}), data::range(9)).batch(4))
    EXPECT_EQ(a.shape(), b.shape());
  const auto lists =
      data::zip(data::from_tensor_slices(std::vector{arange(4), arange(4)}), rows(9));
  for (const auto& [list, x] : lists.batch(2)) {
    EXPECT_EQ(list.size(), 2u);
    EXPECT_TRUE(identical(list[0], x));
  }
}

TEST(Dataset, ZipOfThree) {
  int64_t count = 0;
  for (const auto& [a, b, c] : data::zip(rows(5), data::range(4), rows(5).shuffle()).batch(2)) {
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(b.shape(), c.shape());
    ++count;
  }
  EXPECT_EQ(count, 2);
}

TEST(Dataset, IsReadWhileAFunctionIsTraced) {
  const auto batches =
      rows(6).shuffle({.seed = 2}).map([](const Tensor& x) { return x * x; }).batch(4);
  const auto total = function([batches](const Tensor& scale) {
    Tensor all = 0;
    for (const Tensor& batch : batches) all = all + sum(batch) * scale;
    return all;
  });
  EXPECT_EQ(total(2).item<int>(), 2 * (1 + 4 + 9 + 16 + 25));
}

TEST(Dataset, GeneratorsBeginAnewInEachWalk) {
  const auto three = data::from_generator([i = 0]() mutable -> std::optional<Tensor> {
    if (i == 3) return std::nullopt;
    return constant(i++);
  });
  EXPECT_EQ(numbers_of(three), counted(3));
  EXPECT_EQ(numbers_of(three), counted(3));
  EXPECT_EQ(numbers_of(three.repeat(2).batch(4)), (Numbers{0, 1, 2, 0, 1, 2}));
  int made = 0;
  const auto factory = data::from_generator([&made] {
    ++made;
    return [i = 0]() mutable {
      return i < 2 ? std::optional(std::pair{Tensor(i++), 1.5}) : std::nullopt;
    };
  });
  for (const auto& [i, number] : factory) EXPECT_EQ(number.item<float>(), 1.5);
  for (const auto& [i, number] : factory) EXPECT_LT(i.item<int>(), 2);
  EXPECT_EQ(made, 2);
}

TEST(Dataset, BatchesCanBeShuffled) {
  const Numbers all = numbers_of(rows(10).batch(2).shuffle({.seed = 4}));
  EXPECT_EQ(sorted(all), counted(10));
  for (size_t i = 0; i < all.size(); i += 2) EXPECT_EQ(all[i] + 1, all[i + 1]);
  EXPECT_EQ(sorted(numbers_of(data::range(9).batch(4).shuffle({.seed = 4}))), counted(9));
}

TEST(Dataset, SeveralWalksGoOnAtOnce) {
  const auto batches =
      rows(100).map([](const Tensor& x) { return x + 1; }, {.parallel = 2}).batch(10).prefetch(2);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> threads;
  for (int64_t& sum : sums)
    threads.emplace_back([&] {
      for (const int64_t number : numbers_of(batches)) sum += number;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (Numbers{5050, 5050, 5050, 5050}));
}

TEST(Dataset, IsLeftEarlyWithoutHarm) {
  const auto endless =
      rows(10).repeat().map([](const Tensor& x) { return x + 1; }, {.parallel = 3}).prefetch(4);
  for (int i = 0; i < 20; ++i)
    for (const Tensor& x : endless)
      if (x.item<int>() == 3) break;
  auto walk = endless.begin();
  ++walk;
  EXPECT_EQ(walk->item<int>(), 2);
}

// ---- sizes that differ, windows, several datasets -----------------------------------------------

// 0, 0 1, 0 1 2, ...: as many elements as their length.
data::Dataset<Tensor> stairs(int64_t count) {
  return data::range(1, count + 1).map([](const Tensor& n) { return arange(n.item<int64_t>()); });
}
std::vector<Shape> shapes_of(const data::Dataset<Tensor>& dataset) {
  std::vector<Shape> list;
  for (const Tensor& x : dataset) list.push_back(x.shape());
  return list;
}
std::string said(const std::function<void()>& f) {
  const std::string text = error_of(f);
  return text.substr(0, text.find("\n  at ")) +
         text.substr(text.find('\n', text.find(":", text.find("\n  at "))));
}

TEST(Dataset, PadsBatchesToTheirLongest) {
  const auto batches = stairs(5).padded_batch(2);
  EXPECT_EQ(numbers_of(batches), (Numbers{0, 0, 0, 1, 0, 1, 2, 0, 0, 1, 2, 3, 0, 1, 2, 3, 4}));
  EXPECT_EQ(shapes_of(batches), (std::vector<Shape>{{2, 2}, {2, 4}, {1, 5}}));
  EXPECT_EQ(batches.count(), 3);
  EXPECT_EQ(shapes_of(stairs(5).padded_batch(2, {.drop_remainder = true})).size(), 2U);
  const auto wide = stairs(2).padded_batch(2, {.shapes = {{3}}, .values = {-1}});
  EXPECT_EQ(numbers_of(wide), (Numbers{0, -1, -1, 0, 1, -1}));
}

TEST(Dataset, PadsEachTensorOfAnElement) {
  const auto pairs = stairs(3).map(
      [](const Tensor& x) { return std::tuple{cast(x, f32), reshape(x, {1, x.shape()[0]})}; });
  for (const auto& [x, y] :
       pairs.padded_batch(3, {.shapes = {{-1}, {2, -1}}, .values = {0.5, 9}})) {
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0.5, 0.5, 0, 1, 0.5, 0, 1, 2}));
    EXPECT_EQ(y.shape(), Shape({3, 2, 3}));
    EXPECT_EQ((y[{1, 0}].to_vector<int64_t>()), (Numbers{0, 1, 9}));
    EXPECT_EQ((y[{1, 1}].to_vector<int64_t>()), (Numbers{9, 9, 9}));
  }
}

TEST(Dataset, RefusesPaddingThatDoesNotFit) {
  const auto walk = [](const auto& dataset) { return [=] { shapes_of(dataset); }; };
  EXPECT_EQ(said(walk(stairs(4).padded_batch(4, {.shapes = {{2}}}))),
            "data: padded_batch: row 2 is i32[3], which does not fit into [2]\n  pad to a larger "
            "shape, or remove the element with filter");
  EXPECT_EQ(said(walk(stairs(4).padded_batch(2, {.shapes = {{2, 2}}}))),
            "data: padded_batch: shapes has 2 sizes for a tensor i32[1]\n  give one size for each "
            "axis, -1 for the longest of the batch");
  EXPECT_EQ(said(walk(stairs(4).padded_batch(2, {.values = {1, 2}}))),
            "padded_batch: 2 values for elements of 1 tensors\n  give one for each tensor of an "
            "element");
  const auto mixed =
      stairs(2).map([](const Tensor& x) { return x.shape()[0] == 1 ? x : cast(x, f32); });
  EXPECT_EQ(
      said(walk(mixed.padded_batch(2))),
      "data: padded_batch pads sizes, but row 0 is i32[1], row 1 is f32[2]\n  make them alike "
      "with map first, or remove the others with filter");
  EXPECT_EQ(said([] { stairs(2).padded_batch(0); }),
            "padded_batch: a batch cannot have 0 elements\n  give 1 or more");
  EXPECT_EQ(said([] { stairs(2).padded_batch(2, {.shapes = {{-2}}}); }),
            "padded_batch: a size of -2 in shapes\n  give sizes of 0 or more, and -1 for the "
            "longest of the batch");
}

TEST(Dataset, CollectsBatchesByLength) {
  const auto length = [](const Tensor& x) { return int64_t{x.shape()[0]}; };
  // Lengths 1 2 | 3 4 5 | 6 7, in batches of 2, 2 and 1.
  const auto batches = stairs(7).bucket_by_length(length, {{3, 6}, {2, 2, 1}});
  EXPECT_EQ(shapes_of(batches), (std::vector<Shape>{{2, 2}, {2, 4}, {1, 6}, {1, 7}, {1, 5}}));
  const auto wide = stairs(5).bucket_by_length([](const Tensor& x) { return sum(x * 0 + 1); },
                                               {{3, 6}, {2}}, {{.drop_remainder = true}, true});
  EXPECT_EQ(shapes_of(wide), (std::vector<Shape>{{2, 2}, {2, 5}}));
  EXPECT_EQ(shapes_of(batches), shapes_of(batches));
}

TEST(Dataset, RefusesBucketsThatAreNone) {
  const auto length = [](const Tensor& x) { return int64_t{x.shape()[0]}; };
  EXPECT_EQ(
      said([&] { stairs(2).bucket_by_length(length, {{3, 3}, {2}}); }),
      "bucket_by_length: the boundaries must be positive and grow\n  give the first length of "
      "each bucket but the first, such as {16, 32, 64}");
  EXPECT_EQ(
      said([&] { stairs(2).bucket_by_length(length, {{3}, {1, 2, 3}}); }),
      "bucket_by_length: 3 batch sizes for 2 buckets\n  give one more than boundaries, or one "
      "for all");
  const auto far = stairs(4).bucket_by_length(length, {{3}, {2}}, {{}, true});
  const std::string text = error_of([&] { shapes_of(far); });
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "data: bucket_by_length failed at element 2: a length of 3 is not below the last "
            "boundary, 3, to which it would be padded");
}

TEST(Dataset, GivesWindows) {
  for (const auto& input : {rows(6), rows(6).map([](const Tensor& x) { return x + 0; }),
                            rows(6).filter([](const Tensor&) { return true; })}) {
    EXPECT_EQ(numbers_of(input.window(2)), counted(6));
    EXPECT_EQ(numbers_of(input.window(3, {.shift = 2})), (Numbers{0, 1, 2, 2, 3, 4, 4, 5}));
    EXPECT_EQ(numbers_of(input.window(3, {.shift = 1, .stride = 2, .drop_remainder = true})),
              (Numbers{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(numbers_of(input.window(2, {.shift = 4})), (Numbers{0, 1, 4, 5}));
    EXPECT_EQ(numbers_of(input.window(8, {.drop_remainder = true})), (Numbers{}));
  }
  EXPECT_EQ(rows(6).window(3, {.shift = 2}).count(), 3);
  EXPECT_EQ(rows(6).window(3, {.shift = 1, .stride = 2, .drop_remainder = true}).count(), 2);
  EXPECT_EQ(sorted(numbers_of(rows(6).window(2).shuffle({.seed = 1}))), counted(6));
  EXPECT_EQ(said([] { rows(3).window(2, {.shift = 0}); }),
            "window: the shift cannot be 0\n  give 1 or more");
}

TEST(Dataset, GivesShards) {
  for (const auto& input : {rows(7), rows(7).filter([](const Tensor&) { return true; })}) {
    EXPECT_EQ(numbers_of(input.shard(3, 0)), (Numbers{0, 3, 6}));
    EXPECT_EQ(numbers_of(input.shard(3, 2)), (Numbers{2, 5}));
    EXPECT_EQ(numbers_of(input.shard(9, 8)), (Numbers{}));
    EXPECT_EQ(numbers_of(input.shard(3, 1).batch(2)), (Numbers{1, 4}));
  }
  EXPECT_EQ(rows(7).shard(3, 0).count(), 3);
  EXPECT_EQ(sorted(numbers_of(rows(7).shard(3, 0).shuffle({.seed = 1}))), (Numbers{0, 3, 6}));
  const auto shard = rows(7).filter([](const Tensor&) { return true; }).shard(2, 1);
  shard.restore({0, 2});
  EXPECT_EQ(numbers_of(shard), (Numbers{5}));
  EXPECT_EQ(said([] { rows(3).shard(2, 2); }),
            "shard: there is no shard 2 of 2\n  shards are numbered from 0 to their number less 1");
}

TEST(Dataset, InterleavesDatasets) {
  const auto tens = [](const Tensor& n) {
    const int64_t first = 10 * n.item<int64_t>();
    return data::range(first, first + n.item<int64_t>());
  };
  // As tf.data gives them.
  EXPECT_EQ(numbers_of(data::range(6).interleave(tens, {.cycle = 2})),
            (Numbers{10, 20, 21, 30, 31, 40, 32, 41, 42, 50, 43, 51, 52, 53, 54}));
  EXPECT_EQ(numbers_of(data::range(6).interleave(tens, {.cycle = 3, .block = 2})),
            (Numbers{10, 20, 21, 30, 31, 40, 41, 32, 42, 43, 50, 51, 52, 53, 54}));
  EXPECT_EQ(numbers_of(data::range(4).flat_map(tens)), (Numbers{10, 20, 21, 30, 31, 32}));
  const auto failing = data::range(3).interleave([](const Tensor& n) {
    if (n.item<int64_t>() == 2) throw UserError("two");
    return data::range(1);
  });
  const std::string text = error_of([&] { numbers_of(failing); });
  EXPECT_EQ(text.substr(0, text.find('\n')), "data: interleave failed at element 2: two");
  EXPECT_EQ(said([] {
              data::range(3).interleave([](const Tensor&) { return data::range(1); }, {.cycle = 0});
            }),
            "interleave: 0 datasets at once, 1 elements of each\n  give 1 or more of both");
}

TEST(Dataset, SamplesElementsByWeight) {
  const auto all = data::range(4).sample({.weights = {1, 0, 3, 0}, .count = 4000, .seed = 7});
  EXPECT_EQ(all.count(), 4000);
  const Numbers drawn = numbers_of(all.take(4000));
  const auto ones = std::count(drawn.begin(), drawn.end(), 0);
  EXPECT_EQ(ones + std::count(drawn.begin(), drawn.end(), 2), 4000);
  EXPECT_NEAR(static_cast<double>(ones), 1000, 4 * std::sqrt(4000 * 0.25 * 0.75));
  EXPECT_NE(numbers_of(all.take(100)), numbers_of(all.take(100).skip(1)));
  const auto same = data::range(4).sample({.weights = {1, 1, 1, 1}, .reshuffle = false});
  EXPECT_EQ(same.count(), 4);
  EXPECT_EQ(numbers_of(same), numbers_of(same));
  // In batches, rows are gathered.
  const auto batches = rows(4).sample({.weights = {0, 0, 0, 2}, .count = 3}).batch(3);
  EXPECT_TRUE(identical((*batches.begin()), concat({(*rows(4).skip(3).batch(1).begin()),
                                                    (*rows(4).skip(3).batch(1).begin()),
                                                    (*rows(4).skip(3).batch(1).begin())})));
  const auto cached = data::range(3).map([](const Tensor& x) { return x + 1; }).cache();
  EXPECT_EQ(numbers_of(cached.sample({.weights = {0, 1, 0}, .count = 2})), (Numbers{2, 2}));
  EXPECT_EQ(said([] { data::range(3).sample({.weights = {1, 2}}); }),
            "sample: 2 weights for 3 elements\n  give one for each");
  EXPECT_EQ(said([] { data::range(2).sample({.weights = {1, -2}}); }),
            "sample: weight 1 is -2\n  give finite weights of 0 or more");
  EXPECT_EQ(said([] { data::range(2).sample({.weights = {0, 0}}); }),
            "sample: all weights are 0\n  give a weight above 0 to some");
  EXPECT_EQ(said([] { data::range(1).sample({.weights = {1}, .count = -1}); }),
            "sample: -1 draws\n  give 0 or more");
  const std::string text = said([] {
    data::range(2).filter([](const Tensor&) { return true; }).sample({.weights = {1, 1}});
  });
  EXPECT_EQ(text.substr(0, 16), "sample: filter (");
  EXPECT_EQ(text.substr(text.find(')')),
            ") cannot be read by index\n  sample before that stage, or from several datasets: "
            "td::data::sample_from");
}

TEST(Dataset, SamplesFromDatasetsByWeight) {
  const auto part = [](int64_t number) { return data::range(number, number + 1).repeat(4000); };
  const auto all =
      data::sample_from(std::vector{part(0), part(1), part(2)}, {.weights = {1, 0, 3}, .seed = 7});
  EXPECT_EQ(all.count(), 8000);
  const Numbers drawn = numbers_of(all.take(4000));
  const auto ones = std::count(drawn.begin(), drawn.end(), 0);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1), 0);
  EXPECT_NEAR(static_cast<double>(ones), 1000, 4 * std::sqrt(4000 * 0.25 * 0.75));
  const auto some = all.take(100);
  EXPECT_NE(numbers_of(some), numbers_of(some));  // Drawn anew in each walk.
  EXPECT_EQ(sorted(numbers_of(data::sample_from(std::vector{rows(3), rows(2)}))),
            (Numbers{0, 0, 1, 1, 2}));
  const auto first = data::sample_from(std::vector{rows(1), part(5)}, {.stop_on_empty = true});
  EXPECT_EQ(first.count(), std::nullopt);
  EXPECT_LT(numbers_of(first).size(), 4001U);
  EXPECT_EQ(
      said([] { data::sample_from(std::vector{rows(1), rows(1)}, {.weights = {1, -1}}); }),
      "sample_from: 2 datasets with weights [1, -1]\n  give one finite weight of 0 or more for "
      "each, not all of them 0");
  EXPECT_EQ(said([] { data::sample_from(std::vector<data::Dataset<Tensor>>{}); }),
            "sample_from: there are no datasets\n  give one or more");
}

}  // namespace
}  // namespace tidemark

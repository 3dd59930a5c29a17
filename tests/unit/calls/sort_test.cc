// sort, argsort and top_k, as users call them. Values for every dtype, layout and axis are the
// sweep's business; here: the promises about ties, NaNs, gradients, functions and bytes.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

const float kNan = std::nanf("");

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }
std::vector<int64_t> wholes(const Tensor& x) { return x.to_vector<int64_t>(); }

TEST(Sort, PutsRowsInOrderAlongAnyAxis) {
  const Tensor x = td::constant({{3.0f, 1.0f, 2.0f}, {-1.0f, 5.0f, 0.0f}});
  EXPECT_EQ(floats(td::sort(x)), (std::vector<float>{1, 2, 3, -1, 0, 5}));
  EXPECT_EQ(floats(td::sort(x, 0)), (std::vector<float>{-1, 1, 0, 3, 5, 2}));
  EXPECT_EQ(floats(td::sort(x, 1, {.descending = true})), (std::vector<float>{3, 2, 1, 5, 0, -1}));
  EXPECT_EQ(wholes(td::argsort(x)), (std::vector<int64_t>{1, 2, 0, 0, 2, 1}));
  EXPECT_EQ(td::argsort(x).dtype(), td::i64);
}

TEST(Sort, EqualElementsKeepTheirOrderAlsoDescending) {
  const Tensor x = td::constant({1, 0, 1, 0, 1}, td::i32);
  EXPECT_EQ(wholes(td::argsort(x)), (std::vector<int64_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(wholes(td::argsort(x, 0, {.descending = true})), (std::vector<int64_t>{0, 2, 4, 1, 3}));
  const Tensor zeros = td::constant({0.0f, -0.0f, 0.0f});
  EXPECT_EQ(wholes(td::argsort(zeros)), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(std::signbit(floats(td::sort(zeros))[1]));
}

TEST(Sort, NansAreTheLargest) {
  const Tensor x = td::constant({kNan, 1.0f, -kNan, INFINITY, -INFINITY});
  EXPECT_EQ(wholes(td::argsort(x)), (std::vector<int64_t>{4, 1, 3, 0, 2}));
  EXPECT_EQ(wholes(td::argsort(x, 0, {.descending = true})), (std::vector<int64_t>{0, 2, 3, 1, 4}));
  EXPECT_EQ(wholes(td::top_k(x, 3).indices), (std::vector<int64_t>{0, 2, 3}));
}

// Long rows are sorted in another way than short ones.
TEST(Sort, LongRowsAreSortedAsTheLibraryOfTheLanguageDoes) {
  const int64_t length = 1000;
  const Tensor spread = td::random::normal({length}, {.dtype = td::f64, .key = td::random::Key(3)});
  // Many equal elements of both signs, zeros of both signs, and NaNs.
  const Tensor equal = td::round(spread * 3) * 1e3;
  const Tensor floats = td::where(equal == 2e3, td::constant(NAN, td::f64), equal);
  for (const td::DType dtype : {td::f64, td::f32, td::f16, td::i64, td::i32, td::i16, td::u8}) {
    const Tensor x = td::cast(td::is_float(dtype) ? floats : td::abs(equal) / 100, dtype);
    const std::vector<double> elements = td::cast(x, td::f64).to_vector<double>();
    for (const bool descending : {false, true}) {
      const auto comes_before = [&](int64_t i, int64_t j) {
        const double a = elements[size_t(descending ? j : i)],
                     b = elements[size_t(descending ? i : j)];
        return a < b || (std::isnan(b) && !std::isnan(a));
      };
      std::vector<int64_t> want(size_t{length});
      std::iota(want.begin(), want.end(), 0);
      std::stable_sort(want.begin(), want.end(), comes_before);
      EXPECT_EQ(wholes(td::argsort(x, 0, {.descending = descending})), want) << dtype;
      const Tensor sorted = td::sort(x, 0, {.descending = descending});
      EXPECT_TRUE(
          td::all(td::equal(td::isnan(sorted), td::isnan(td::gather(x, td::constant(want)))))
              .item<bool>());
      EXPECT_TRUE(td::allclose(sorted, td::gather(x, td::constant(want)),
                               {.rtol = 0, .atol = 0, .equal_nan = true})
                      .item<bool>());
      if (!descending) continue;
      want.resize(5);
      EXPECT_EQ(wholes(td::top_k(x, 5).indices), want) << dtype;
    }
  }
}

// Blocks of a long row in which nothing is better are passed over: ties, NaNs and zeros of both
// signs among them, and better elements at their ends.
TEST(TopK, OfLongRowsIsTheBeginOfTheSortedRow) {
  for (const int64_t length : {100, 1000, 5003}) {
    std::vector<double> list;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t draw = i * 7919 % 1009;
      list.push_back(draw == 5    ? NAN
                     : draw == 70 ? INFINITY
                     : draw < 300 ? (draw % 2 == 0 ? -0.0 : 0.0)
                                  : static_cast<double>(draw % 400) - 390);
    }
    for (const td::DType dtype : {td::f32, td::f64, td::i32, td::i16}) {
      const Tensor x = td::cast(td::constant(list), dtype);
      const std::vector<int64_t> sorted = wholes(td::argsort(x, 0, {.descending = true}));
      for (const int64_t k : {1, 4, 16, 40})
        EXPECT_EQ(wholes(td::top_k(x, k).indices),
                  std::vector<int64_t>(sorted.begin(), sorted.begin() + k))
            << dtype << " " << length << " " << k;
    }
  }
}

// Values of short rows are sorted many rows at a time, unless a row has a NaN or a negative zero.
TEST(Sort, ManyShortRowsAreSortedAsTheLibraryOfTheLanguageDoes) {
  for (const int64_t length : {1, 2, 3, 5, 10, 31, 64, 101, 127, 128, 129, 257}) {
    const int64_t rows = 37;
    const Tensor spread =
        td::random::normal({rows, length}, {.dtype = td::f64, .key = td::random::Key(length)});
    const Tensor numbers = td::abs(td::round(spread * 20)) - 7;  // Many of them equal.
    const Tensor row = td::reshape(td::arange(rows), {-1, 1});
    // Row 20 alone has negative zeros and NaNs.
    const Tensor strange =
        td::where(row == 20, td::where(numbers == 1, NAN, numbers * -0.5), numbers);
    for (const td::DType dtype : {td::f64, td::f32, td::f16, td::i64, td::i32, td::u32, td::u8}) {
      const Tensor x = td::cast(td::is_float(dtype) ? strange : td::abs(numbers), dtype);
      std::vector<double> elements = td::cast(x, td::f64).to_vector<double>();
      for (int64_t i = 0; i < rows; ++i)
        std::stable_sort(
            elements.begin() + i * length, elements.begin() + (i + 1) * length,
            [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
      const Tensor want = td::cast(td::reshape(td::constant(elements), x.shape()), dtype);
      EXPECT_TRUE(td::identical(td::sort(x), want)) << dtype << " " << length;
      const Tensor turned = td::transpose(x);
      EXPECT_TRUE(td::identical(td::sort(turned, 0), td::transpose(want))) << dtype << length;
      const Tensor down = td::take_along_axis(x, td::argsort(x, 1, {.descending = true}), 1);
      EXPECT_TRUE(td::identical(td::sort(x, 1, {.descending = true}), down)) << dtype << length;
    }
  }
}

TEST(Sort, DenormalsDifferAlsoWhereTheCallerFlushesThem) {
  const Tensor x = td::constant({3e-45f, 0.0f, 1e-45f, -1e-45f});
  const Tensor rows = td::broadcast_to(x, {20, 4});
  const Tensor want = td::constant({-1e-45f, 0.0f, 1e-45f, 3e-45f});
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);
  const Tensor sorted = td::sort(rows);
  _mm_setcsr(before);
  EXPECT_TRUE(td::identical(sorted, td::broadcast_to(want, {20, 4})));
}

TEST(TopK, GivesTheLargestFirstAndWhereTheyStand) {
  const Tensor x = td::constant({{3, 9, 1, 9}, {4, 4, 8, 0}}, td::i32);
  const auto [values, indices] = td::top_k(x, 2);
  EXPECT_EQ(values.to_vector<int32_t>(), (std::vector<int32_t>{9, 9, 8, 4}));
  EXPECT_EQ(wholes(indices), (std::vector<int64_t>{1, 3, 2, 0}));
  EXPECT_EQ(td::top_k(x, 1, 0).values.to_vector<int32_t>(), (std::vector<int32_t>{4, 9, 8, 9}));
  EXPECT_EQ(td::top_k(x, 0).values.shape(), (td::Shape{2, 0}));
  EXPECT_EQ(td::top_k(td::zeros({0, 5}), 5).indices.shape(), (td::Shape{0, 5}));
}

// ---- gradients ----------------------------------------------------------------------------------

Tensor weighted(const Tensor& x) {
  const Tensor sorted = td::sort(x * x, 1, {.descending = true});
  const auto [values, indices] = td::top_k(x, 2, 0);
  return td::sum(sorted * td::arange(0, 4, 1, td::f32)) + td::sum(values * values * values);
}

TEST(SortGradient, GoesBackToWhereEachElementWas) {
  const Tensor x = td::constant({{3.0f, 1.0f, 2.0f}});
  const auto f = [](const Tensor& each) {
    return td::sum(td::sort(each) * td::constant({10.0f, 20.0f, 30.0f}));
  };
  EXPECT_EQ(floats(td::grad(f)(x)), (std::vector<float>{30, 10, 20}));
  EXPECT_EQ(floats(td::function<Tensor(Tensor)>(td::grad(f))(x)), (std::vector<float>{30, 10, 20}));
}

TEST(SortGradient, IsTheSameEagerlyAndInFunctionsOfEveryOrder) {
  const Tensor x = td::random::normal({3, 4}, {.key = td::random::Key(3)});
  const Tensor dx = td::random::normal({3, 4}, {.key = td::random::Key(4)});
  const auto first = td::grad(weighted);
  EXPECT_TRUE(td::identical(td::function<Tensor(Tensor)>(first)(x), first(x)));
  const auto second = [&](const Tensor& at) { return td::hvp(weighted, at, dx); };
  EXPECT_TRUE(td::identical(td::function(second)(x), second(x)));
  const auto forward = [&](const Tensor& at) { return td::jvp(weighted, at, dx).second; };
  const double slope = td::sum(first(x) * dx).item<double>();
  EXPECT_NEAR(forward(x).item<double>(), slope, 1e-4 * (1 + std::fabs(slope)));
  EXPECT_TRUE(td::identical(td::function(forward)(x), forward(x)));
}

TEST(SortGradient, AnArgsortKeepsNothingOnATape) {
  const Tensor x = td::random::normal({3, 4}, {.key = td::random::Key(3)});
  td::GradientTape tape;
  tape.watch(x);
  const Tensor order = td::argsort(x);
  EXPECT_EQ(tape.saved_bytes().count, 0);
  const Tensor y = td::take_along_axis(x, order, 1);
  EXPECT_EQ(floats(tape.gradient(y, x)), std::vector<float>(12, 1.0f));
}

// Places have no number that tapes know; what has none either is not taken for them.
TEST(SortGradient, OtherTensorsThatNoTapeKnowsAreNotItsPlaces) {
  const Tensor x = td::constant({3.0f, 1.0f, 2.0f});
  td::GradientTape tape;
  tape.watch(x);
  const std::vector<Tensor> targets = {td::top_k(x, 2).values, td::ones({4}), td::ones({5})};
  EXPECT_EQ(floats(tape.gradient(targets, x)), (std::vector<float>{1, 0, 1}));
}

// ---- functions ----------------------------------------------------------------------------------

TEST(SortInFunctions, TakesOpenSizes) {
  const auto both = td::function([](const Tensor& x) {
    const auto [values, indices] = td::top_k(x, 2, 0);
    return std::vector<Tensor>{td::sort(x, 0), td::argsort(x, 0), values, indices};
  });
  for (const int64_t rows : {5, 3, 9}) {
    const Tensor x = td::random::normal({rows, 4}, {.key = td::random::Key(rows)});
    const std::vector<Tensor> got = both(x);
    EXPECT_TRUE(td::identical(got[0], td::sort(x, 0)));
    EXPECT_TRUE(td::identical(got[1], td::argsort(x, 0)));
    EXPECT_TRUE(td::identical(got[2], td::top_k(x, 2, 0).values));
    EXPECT_TRUE(td::identical(got[3], td::top_k(x, 2, 0).indices));
  }
}

// The workspace of a step is a buffer with its name.
TEST(SortInFunctions, ValuesAndIndicesComeFromOneStep) {
  const auto both = td::function(
      [](const Tensor& x) { return std::vector<Tensor>{td::sort(x), td::argsort(x)}; });
  const Tensor x = td::random::normal({16, 64}, {.key = td::random::Key(1)});
  int sorts = 0;
  for (const td::PlanBuffer& buffer : both.plan(x).buffers()) sorts += buffer.name == "sort";
  EXPECT_EQ(sorts, 1);
}

// A result that nobody reads takes no bytes: sort alone plans no indices.
TEST(SortInFunctions, UnreadResultsTakeNoBytes) {
  const Tensor x = td::random::normal({64, 1024}, {.key = td::random::Key(1)});
  const auto values = td::function([](const Tensor& each) { return td::sort(each); });
  const auto indices = td::function([](const Tensor& each) { return td::argsort(each); });
  const int64_t bytes = 64 * 1024 * 4;
  const int64_t of_a_row = 2 * 1024 * 8 * td::num_threads();  // Keys with places, from and to.
  EXPECT_LE(values.plan(x).peak().count, 2 * bytes + of_a_row);
  EXPECT_LE(indices.plan(x).peak().count, 3 * bytes + of_a_row);
}

// The table of logits never exists: products and their best classes go part by part.
TEST(SortInFunctions, TheBestClassesOfALargeTableAreFoundPartByPart) {
  const Tensor x = td::random::normal({512, 16}, {.key = td::random::Key(1)});
  const Tensor w = td::random::normal({16, 4096}, {.key = td::random::Key(2)});
  const auto best = [](const Tensor& rows, const Tensor& weights) {
    const auto [values, indices] = td::top_k(td::matmul(rows, weights), 5);
    return std::vector<Tensor>{values, indices};
  };
  const auto compiled = td::function(best);
  const std::vector<Tensor> got = compiled(x, w), want = best(x, w);
  EXPECT_TRUE(td::identical(got[0], want[0]));
  EXPECT_TRUE(td::identical(got[1], want[1]));
  const int64_t table = 512 * 4096 * 4;
  EXPECT_LT(compiled.plan(x, w).peak().count, table);
}

}  // namespace

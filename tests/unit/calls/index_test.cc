// tidemark/calls/index.cc
#include <gtest/gtest.h>

#include "tidemark/base/index_error.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

TEST(Index, OutOfRangeIsAnIndexError) {
  const td::Tensor x = td::zeros({2, 3});
  EXPECT_THROW(x[2], td::IndexError);
  EXPECT_THROW((x[{0, -4}]), td::IndexError);
  EXPECT_THROW((x[{0, 0, 0}]), td::IndexError);
}

TEST(Index, OtherMistakesAreNot) {
  const td::Tensor x = td::zeros({2, 3});
  try {
    (void)x[td::Slice{.step = 0}];
    FAIL();
  } catch (const td::IndexError&) {
    FAIL();
  } catch (const td::UserError&) {
  }
}

// tests/truth/edges_index.py compares all kinds of subscripts with NumPy.
TEST(Index, SeveralTensorsPickTogether) {
  const td::Tensor x = td::reshape(td::arange(12), {3, 4});
  const td::Tensor rows = td::constant({0, 2, -1}), columns = td::constant({1, -1, 0});
  EXPECT_EQ((x[{rows, columns}].to_vector<int>()), (std::vector<int>{1, 11, 8}));
  const td::Tensor grid = x[{td::reshape(rows, {3, 1}), columns}];
  EXPECT_EQ(grid.shape(), (td::Shape{3, 3}));
  EXPECT_EQ(grid[1].to_vector<int>(), (std::vector<int>{9, 11, 8}));
}

TEST(Index, SeveralTensorsInAFunctionOfAnOpenSize) {
  const auto f =
      td::function([](const td::Tensor& x, const td::Tensor& i,
                      const td::Tensor& j) { return x[{i, td::all, j}]; },
                   {.input_signature = {td::spec({td::open, 2, td::open}), td::spec({2}, td::i32),
                                        td::spec({2}, td::i64)}});
  const td::Tensor i = td::constant({1, -1}), j = td::constant({-2, 0}, td::i64);
  for (const int64_t n : {3, 5}) {
    const td::Tensor x = td::random::normal({n, 2, n + 1}, {.key = td::random::Key(n)});
    const td::Tensor got = f(x, i, j);
    EXPECT_TRUE(td::identical(got, td::stack({x[{1, td::all, -2}], x[{-1, td::all, 0}]})));
  }
  EXPECT_THROW(f(td::zeros({1, 2, 5}), i, j), td::UserError);
}

TEST(Index, AVariableSubscriptedByTensorsHasItsGradient) {
  td::Variable x(td::zeros({3, 4}));
  td::GradientTape tape;
  const td::Tensor y = td::sum(x.value()[{td::constant({0, 0, 2}), td::constant({1, 1, 3})}]);
  const td::Tensor slope = tape.gradient(y, x);
  EXPECT_EQ(slope.to_vector<float>(), (std::vector<float>{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Transpose, TakesAnOrderThatIsComputed) {
  std::vector<int64_t> order;
  for (int64_t axis = 2; axis >= 0; --axis) order.push_back((axis + 1) % 3);
  const td::Tensor x = td::zeros({2, 3, 4});
  EXPECT_EQ(td::transpose(x, order).shape(), (td::Shape{2, 4, 3}));
  EXPECT_EQ(td::transpose(x, {}).shape(), (td::Shape{4, 3, 2}));
}

// On one thread too, which has no other to share nothing with.
TEST(Scatter, IntoNothingWritesNothing) {
  const int before = td::num_threads();
  for (const int threads : {1, 2}) {
    td::set_num_threads(threads);
    const td::Tensor x =
        td::scatter_add(td::zeros({0, 5}), td::constant({3}), td::zeros({0, 1}), 1);
    EXPECT_EQ(x.shape(), (td::Shape{0, 5}));
  }
  td::set_num_threads(before);
}

// Rows of which most is read are fetched ahead.
TEST(Gather, PicksManyElementsOfEachRow) {
  constexpr int rows = 7, columns = 300, count = 100;
  const td::Tensor x = td::reshape(td::arange(rows * columns), {rows, columns});
  std::vector<int> wanted, places;
  for (int i = 0; i < count; ++i) places.push_back(i * 37 % columns - (i % 2 == 0 ? columns : 0));
  for (int row = 0; row < rows; ++row)
    for (const int at : places) wanted.push_back(row * columns + (at + columns) % columns);
  const td::Tensor list = td::constant(places);
  EXPECT_EQ(td::gather(x, list, 1).to_vector<int>(), wanted);
  const td::Tensor of_rows = td::identity(td::broadcast_to(list, {rows, count}));
  EXPECT_EQ(td::take_along_axis(x, of_rows, 1).to_vector<int>(), wanted);
}

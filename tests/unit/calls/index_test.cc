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

TEST(Transpose, TakesAnOrderThatIsComputed) {
  std::vector<int64_t> order;
  for (int64_t axis = 2; axis >= 0; --axis) order.push_back((axis + 1) % 3);
  const td::Tensor x = td::zeros({2, 3, 4});
  EXPECT_EQ(td::transpose(x, order).shape(), (td::Shape{2, 4, 3}));
  EXPECT_EQ(td::transpose(x, {}).shape(), (td::Shape{4, 3, 2}));
}

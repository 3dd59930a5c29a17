#include "tidemark/types/shape.h"

#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/types/array_ref.h"

namespace tidemark {
namespace {

TEST(Shape, CountsAxesFromBothEnds) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(cat(shape), "[2, 3, 4]");
  EXPECT_EQ(cat(Shape{open, 784}), "[?, 784]");
  EXPECT_EQ(cat(Shape{}), "[]");
}

TEST(Shape, HasNoAxisOutsideItsRank) {
  try {
    (void)Shape{2, 3}[2];
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "shape[2, 3] has no axis 2");
  }
}

TEST(Dim, IsANumberUnlessOpen) {
  const Dim dim = 6;
  EXPECT_EQ(dim * 2 + 1, 13);
  EXPECT_EQ(12 / dim, 2);
  EXPECT_THROW((void)int64_t{Dim(open)}, UserError);
}

TEST(SmallVec, GrowsBeyondItsOwnRoom) {
  SmallVec<int64_t, 2> list{1, 2};
  for (int64_t i = 3; i <= 9; ++i) list.push_back(i);
  list.insert(0, 0);
  list.erase(5);
  EXPECT_EQ(list, (SmallVec<int64_t, 2>{0, 1, 2, 3, 4, 6, 7, 8, 9}));
  SmallVec<int64_t, 2> moved = std::move(list);
  const SmallVec<int64_t, 2> copy = moved;
  EXPECT_EQ(copy.size(), 9U);
  moved = SmallVec<int64_t, 2>{5};
  EXPECT_EQ(moved.back(), 5);
}

TEST(ArrayRef, IsContiguousWhereSizeOneAxesHideTheirStrides) {
  ArrayRef ref{.data = nullptr, .dtype = DType::f32, .shape = {2, 1, 3}, .strides = {3, 99, 1}};
  EXPECT_TRUE(ref.is_contiguous());
  ref.strides = {6, 3, 2};
  EXPECT_FALSE(ref.is_contiguous());
}

}  // namespace
}  // namespace tidemark

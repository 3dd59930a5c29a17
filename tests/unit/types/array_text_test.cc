// tidemark/types/array_text.h
#include "tidemark/types/array_text.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tidemark {
namespace {

ArrayRef array_of(std::vector<float>& elements, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(elements.data()), DType::f32, shape,
          contiguous_strides(shape)};
}

TEST(ArrayText, SeparatesByCommasAndIndentsIfAsked) {
  std::vector<float> elements = {1, 2.5, 3, 4};
  const ArrayRef array = array_of(elements, {2, 2});
  EXPECT_EQ(array_text(array), "[[1.  2.5]\n [3.  4. ]]");
  EXPECT_EQ(array_text(array, {",", 7}), "[[1. , 2.5],\n        [3. , 4. ]]");
}

TEST(ArrayText, LinesEndWithTheSeparatorWithin75Columns) {
  std::vector<float> elements(30);
  std::iota(elements.begin(), elements.end(), 0.0F);
  const std::string text = array_text(array_of(elements, {30}), {",", 7});
  EXPECT_EQ(text,
            "[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.,\n"
            "        13., 14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25.,\n"
            "        26., 27., 28., 29.]");
}

}  // namespace
}  // namespace tidemark

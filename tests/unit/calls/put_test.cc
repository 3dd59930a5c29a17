#include <gtest/gtest.h>

#include "tidemark/api/create.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/variable.h"

namespace tidemark {
namespace {

TEST(Put, ReplacesOneSlice) {
  const Tensor x = constant({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(put(x, 1, constant({7, 8})).to_vector<int>(), (std::vector<int>{1, 2, 7, 8, 5, 6}));
  EXPECT_EQ(put(x, -1, constant({7, 8})).to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 7, 8}));
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(Put, TheLastOfEqualIndicesStays) {
  const Tensor x = zeros({3}, i32);
  EXPECT_EQ(put(x, constant({2, 0, 2}), constant({5, 6, 7})).to_vector<int>(),
            (std::vector<int>{6, 0, 7}));
}

TEST(Put, IsInPlaceWhenTheArrayIsGivenAway) {
  Tensor x = zeros({1000, 100});
  const Tensor row = ones({100});
  const void* data = x.span<const float>().data();
  const MemoryScope scope("put");
  for (int i = 0; i < 1000; ++i) x = put(std::move(x), i, row);
  EXPECT_EQ(scope.peak(), 64_B) << "the index";
  EXPECT_EQ(x.span<const float>().data(), data);
  EXPECT_EQ(sum(x).item<float>(), 1e5f);
}

TEST(Put, AnErrorLeavesTheArrayAsItWas) {
  Tensor x = zeros({3});
  EXPECT_THROW(put(std::move(x), 3, 1), UserError);
  EXPECT_TRUE(x.has_value());
}

TEST(Put, UpdatesAVariable) {
  const Variable table(zeros({4, 2}));
  const void* data = table.value().span<const float>().data();
  table.scatter_update(constant({3, 1}), constant({{1.0f, 2.0f}, {3.0f, 4.0f}}));
  EXPECT_EQ(table.value().to_vector<float>(), (std::vector<float>{0, 0, 3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(table.value().span<const float>().data(), data);
}

}  // namespace
}  // namespace tidemark

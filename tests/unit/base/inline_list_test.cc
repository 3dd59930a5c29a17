#include "tidemark/base/inline_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tidemark {
namespace {

using Texts = InlineList<std::string, 3>;

// Longer than a string holds in itself, so that a leak or a double free shows.
std::string text_of(size_t i) { return std::string(40, 'x') + std::to_string(i); }

Texts texts(size_t count) {
  Texts list;
  for (size_t i = 0; i < count; ++i) list.push_back(text_of(i));
  return list;
}

void expect_texts(const Texts& list, size_t count) {
  ASSERT_EQ(list.size(), count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(list[i], text_of(i));
}

TEST(InlineList, HoldsFewInsideAndManyOutside) {
  for (const size_t count : {0U, 1U, 3U, 4U, 9U}) {
    const Texts list = texts(count);
    expect_texts(list, count);
    EXPECT_EQ(list.empty(), count == 0);
    const auto* const at = reinterpret_cast<const std::byte*>(list.data());
    const auto* const self = reinterpret_cast<const std::byte*>(&list);
    EXPECT_EQ(at >= self && at < self + sizeof(list), count <= 3);
  }
}

TEST(InlineList, MovesWhatItHolds) {
  for (const size_t count : {0U, 2U, 3U, 4U, 9U}) {
    Texts list = texts(count);
    Texts moved = std::move(list);
    expect_texts(moved, count);
    for (const size_t before : {0U, 2U, 5U}) {
      Texts other = texts(before);
      other = std::move(moved);
      expect_texts(other, count);
      moved = std::move(other);
    }
    moved.clear();
    moved.push_back(text_of(0));
    expect_texts(moved, 1);
  }
}

TEST(InlineList, HoldsWhatCanOnlyBeMoved) {
  InlineList<std::unique_ptr<int>, 2> list;
  for (int i = 0; i < 5; ++i) list.push_back(std::make_unique<int>(i));
  EXPECT_EQ(*list[4], 4);
}

}  // namespace
}  // namespace tidemark

// Short rows that are moved, repeated and put beside each other have the elements that their
// indices say, for every size of a row and of an element.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

// Element (row, column) of the result, from those of the operand.
using At = std::function<int64_t(int64_t row, int64_t column)>;

std::vector<int64_t> listed(int64_t rows, int64_t columns, const At& at) {
  std::vector<int64_t> list;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) list.push_back(at(r, c) % 251);
  return list;
}
std::vector<int64_t> elements(const Tensor& x) { return cast(x, i64).to_vector<int64_t>(); }

void expect_moves(int64_t rows, int64_t columns, DType dtype) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " " + name(dtype));
  const std::vector<int64_t> list =
      listed(rows, columns, [&](int64_t r, int64_t c) { return r * columns + c; });
  const Tensor x = cast(reshape(constant(list), {rows, columns}), dtype);
  const At at = [&](int64_t r, int64_t c) { return r * columns + c; };
  EXPECT_EQ(elements(concat({x, x}, 1)),
            listed(rows, 2 * columns, [&](int64_t r, int64_t c) { return at(r, c % columns); }));
  EXPECT_EQ(elements(tile(x, {2, 3})), listed(2 * rows, 3 * columns, [&](int64_t r, int64_t c) {
              return at(r % rows, c % columns);
            }));
  for (const int64_t times : {2, 3, 5})
    EXPECT_EQ(
        elements(identity(repeat(x, times, 1))),
        listed(rows, columns * times, [&](int64_t r, int64_t c) { return at(r, c / times); }));
  if (columns == 1) return;
  EXPECT_EQ(elements(identity(x[{all, Slice{.begin = 1}}])),
            listed(rows, columns - 1, [&](int64_t r, int64_t c) { return at(r, c + 1); }));
}

TEST(Rows, OfEverySizeAreMovedWhole) {
  for (const int64_t columns : {1, 2, 3, 5, 8, 10, 17}) expect_moves(333, columns, f32);
  for (const DType dtype : {u8, i16, f64}) expect_moves(333, 3, dtype);
  for (const int64_t rows : {15, 16}) expect_moves(rows, 3, f32);
}

TEST(Rows, OfEverySizeAreGatheredWhole) {
  constexpr int64_t kRows = 37, kWanted = 50;
  const auto index = [](int64_t i) { return i * 11 % kRows; };
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < kWanted; ++i) indices.push_back(index(i));
  // Up to 15, 64, 4096 bytes, and beyond.
  for (const int64_t columns : {3, 4, 5, 10, 15, 16, 17, 300, 1024, 1025}) {
    const auto at = [&](int64_t r, int64_t c) { return r * columns + c; };
    const Tensor x = cast(reshape(constant(listed(kRows, columns, at)), {kRows, columns}), f32);
    EXPECT_EQ(elements(gather(x, constant(indices))),
              listed(kWanted, columns, [&](int64_t r, int64_t c) { return at(index(r), c); }))
        << columns;
  }
}

// Axes of 2, 3, 7 and 2 elements, in an order whose last ones are short on both sides.
TEST(Rows, OfFewElementsInAnotherOrder) {
  const int64_t sizes[] = {2, 3, 7, 2};
  for (const DType dtype : {u8, i16, f32, f64}) {
    const std::vector<int64_t> list =
        listed(1, 2 * 3 * 7 * 2, [](int64_t, int64_t place) { return place; });
    const Tensor x = cast(reshape(constant(list), {2, 3, 7, 2}), dtype);
    const std::vector<int64_t> want = listed(1, 2 * 3 * 7 * 2, [&](int64_t, int64_t place) {
      const int64_t b = place % sizes[1], a = place / sizes[1] % sizes[0];
      const int64_t d = place / sizes[1] / sizes[0] % sizes[3];
      const int64_t c = place / sizes[1] / sizes[0] / sizes[3];
      return ((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d;
    });
    EXPECT_EQ(elements(identity(transpose(x, {2, 3, 0, 1}))), want) << name(dtype);
  }
}

TEST(Rows, AreMovedWholeByAnyNumberOfThreads) {
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    expect_moves(9000, 10, f32);
    expect_moves(900, 64, u8);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace tidemark

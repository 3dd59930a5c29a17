#include "tidemark/compile/cpu/copy.h"

#include <algorithm>

#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/copy.h"

namespace tidemark::compile {
namespace {

// The least rows and columns of a transpose, the least rows of one with fewer columns, and the rows
// of a piece.
constexpr int64_t kLeastSide = 8, kLongSide = 32, kPieceRows = 64;
// Below this many bytes another thread is not worth waking.
constexpr int64_t kGrainBytes = 64 << 10;

constexpr int kFrom = 0, kTo = 1;

int64_t stride(const Frame& frame, int buffer, int64_t axis) {
  return frame.strides[static_cast<size_t>(buffer)][static_cast<size_t>(axis)];
}

// Calls f(from, to) for indices of the axes but two of them (which may be the same).
template <class F>
void for_each_outer(const Frame& frame, int64_t one, int64_t other, int64_t begin, int64_t end,
                    F f) {
  // Along the last of these axes, one step follows another without a division.
  int64_t inner = frame.axes() - 1;
  while (inner >= 0 && (inner == one || inner == other)) --inner;
  const int64_t run = inner < 0 ? 1 : frame.extents[static_cast<size_t>(inner)];
  const int64_t from_step = inner < 0 ? 0 : stride(frame, kFrom, inner);
  const int64_t to_step = inner < 0 ? 0 : stride(frame, kTo, inner);
  while (begin < end) {
    std::byte *from = frame.data[kFrom], *to = frame.data[kTo];
    for (int64_t axis = inner, rest = begin; axis >= 0; --axis) {
      if (axis == one || axis == other) continue;
      const int64_t extent = frame.extents[static_cast<size_t>(axis)];
      from += rest % extent * stride(frame, kFrom, axis);
      to += rest % extent * stride(frame, kTo, axis);
      rest /= extent;
    }
    const int64_t count = std::min(end - begin, run - begin % run);
    for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) f(from, to);
    begin += count;
  }
}

void turn(const Frame& frame, int64_t row_axis, int64_t element_bytes) {
  const int64_t column_axis = frame.axes() - 1;
  const int64_t rows = frame.extents[static_cast<size_t>(row_axis)];
  const int64_t columns = frame.extents[static_cast<size_t>(column_axis)];
  const int64_t outers = frame.size() / (rows * columns);
  const int64_t pieces = (rows + kPieceRows - 1) / kPieceRows;
  const int64_t bytes = std::min(rows, kPieceRows) * columns * element_bytes;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / bytes);
  device::parallel_for(outers * pieces, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t row = piece % pieces * kPieceRows, outer = piece / pieces;
      const int64_t to_row = stride(frame, kTo, row_axis);
      for_each_outer(frame, row_axis, column_axis, outer, outer + 1,
                     [&](const std::byte* from, std::byte* to) {
                       library::turn({.from = from + row * element_bytes,
                                      .from_column = stride(frame, kFrom, column_axis),
                                      .to = to + row * to_row,
                                      .to_row = to_row,
                                      .rows = std::min(kPieceRows, rows - row),
                                      .columns = columns},
                                     element_bytes);
                     });
    }
  });
}

void reverse(const Frame& frame, int64_t element_bytes) {
  const int64_t last = frame.axes() - 1, columns = frame.extents.back();
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (columns * element_bytes));
  device::parallel_for(frame.size() / columns, grain, [&](int64_t begin, int64_t end, int) {
    for_each_outer(frame, last, last, begin, end, [&](const std::byte* from, std::byte* to) {
      library::reverse(from, to, columns, element_bytes);
    });
  });
}

}  // namespace

bool copy_in_other_order(const Frame& frame, int64_t element_bytes) {
  const int64_t last = frame.axes() - 1;
  if (last < 0 || frame.size() == 0 || stride(frame, kTo, last) != element_bytes) return false;
  const int64_t step = stride(frame, kFrom, last), columns = frame.extents.back();
  if (step == -element_bytes && columns >= kLeastSide) {
    if (!WorkspacePart::preparing()) reverse(frame, element_bytes);
    return true;
  }
  if (step == element_bytes || step == 0) return false;
  const int64_t least_rows = columns < kLeastSide ? kLongSide : kLeastSide;
  for (int64_t axis = 0; axis < last; ++axis) {
    if (stride(frame, kFrom, axis) != element_bytes ||
        frame.extents[static_cast<size_t>(axis)] < least_rows)
      continue;
    if (!WorkspacePart::preparing()) turn(frame, axis, element_bytes);
    return true;
  }
  return false;
}

}  // namespace tidemark::compile

#include "tidemark/compile/cpu/copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/copy.h"

namespace tidemark::compile {
namespace {

// The least rows and columns of a transpose, the least rows of one with fewer columns, and the rows
// of a piece.
constexpr int64_t kLeastSide = 8, kLongSide = 32, kPieceRows = 64;
constexpr int64_t kFewRows = 4;  // Of a transpose in which several axes are its rows.
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
  // The next row, or what follows in a row too long to have the next one in the first cache.
  constexpr int64_t kAhead = -2048, kShort = 16 << 10;
  const int64_t row = last > 0 ? stride(frame, kFrom, last - 1) : 0;
  const int64_t next = columns * element_bytes <= kShort ? row : kAhead;
  device::parallel_for(frame.size() / columns, grain, [&](int64_t begin, int64_t end, int) {
    for_each_outer(frame, last, last, begin, end, [&](const std::byte* from, std::byte* to) {
      library::reverse(from, to, columns, element_bytes, next);
    });
  });
}

// The axes of a frame that are wanted, as a frame of their own.
template <class F>
Frame some_axes(const Frame& frame, F is_wanted) {
  Frame some;
  some.buffers = 2;
  some.data = frame.data;
  for (int64_t axis = 0; axis < frame.axes(); ++axis) {
    if (!is_wanted(axis)) continue;
    some.extents.push_back(frame.extents[static_cast<size_t>(axis)]);
    for (const int buffer : {kFrom, kTo})
      some.strides[static_cast<size_t>(buffer)].push_back(stride(frame, buffer, axis));
  }
  return some;
}

// The axis of many short rows: the one before the last, or before a short one of these.
int64_t axis_of_rows(const Frame& frame) {
  constexpr int64_t kLeastRows = 16;
  const int64_t last = frame.axes() - 1;
  for (int64_t axis = last - 1; axis >= 0 && axis >= last - 2; --axis)
    if (frame.extents[static_cast<size_t>(axis)] >= kLeastRows) return axis;
  return -1;
}

// Short rows that are dense in the result. Rows along a short axis take turns in pieces, so that
// what lies side by side is written together.
template <class Move>
void move_short_rows(const Frame& frame, int64_t element_bytes, const Move& move) {
  constexpr int64_t kPieceBytes = 8 << 10;
  const int64_t last = frame.axes() - 1, row_axis = axis_of_rows(frame);
  const int64_t turns = row_axis + 1 < last ? frame.extents[static_cast<size_t>(last - 1)] : 1;
  const int64_t bytes = frame.extents.back() * element_bytes;
  const int64_t rows = frame.extents[static_cast<size_t>(row_axis)];
  const int64_t piece_rows = std::max<int64_t>(1, kPieceBytes / (turns * bytes));
  const int64_t pieces = (rows + piece_rows - 1) / piece_rows;
  const int64_t from_row = stride(frame, kFrom, row_axis), to_row = stride(frame, kTo, row_axis);
  const Frame outer = some_axes(frame, [&](int64_t axis) { return axis < row_axis; });
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (piece_rows * turns * bytes));
  const auto move_piece = [&](const std::byte* from, std::byte* to, int64_t first) {
    const int64_t count = std::min(piece_rows, rows - first);
    for (int64_t turn = 0; turn < turns; ++turn)
      move(library::Rows{.from = from + first * from_row + turn * stride(frame, kFrom, last - 1),
                         .from_row = from_row,
                         .to = to + first * to_row + turn * stride(frame, kTo, last - 1),
                         .to_row = to_row,
                         .rows = count,
                         .bytes = bytes});
  };
  device::parallel_for(outer.size() * pieces, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t piece = begin; piece < end; ++piece)
      for_each_outer(outer, -1, -1, piece / pieces, piece / pieces + 1,
                     [&](const std::byte* from, std::byte* to) {
                       move_piece(from, to, piece % pieces * piece_rows);
                     });
  });
}

// The axes, before the last, along which neighbours of an element lie: together they are the rows
// of a transpose. Blocks of pixels have two of them.
struct NearAxes {
  int64_t axes[2] = {-1, -1};
  int64_t rows = 1;

  NearAxes(const Frame& frame, int64_t element_bytes) {
    for (int64_t& axis : axes) {
      for (int64_t i = 0; i + 1 < frame.axes() && axis < 0; ++i)
        if (stride(frame, kFrom, i) == element_bytes * rows) axis = i;
      if (axis < 0) return;
      rows *= frame.extents[static_cast<size_t>(axis)];
    }
  }
};

void turn_blocks(const Frame& frame, const NearAxes& near, int64_t element_bytes) {
  const int64_t last = frame.axes() - 1, columns = frame.extents.back();
  const int64_t inner = frame.extents[static_cast<size_t>(near.axes[0])];
  std::array<int64_t, library::kMostFewRows> to_rows = {};
  for (int64_t row = 0; row < near.rows; ++row)
    to_rows[static_cast<size_t>(row)] = row % inner * stride(frame, kTo, near.axes[0]) +
                                        row / inner * stride(frame, kTo, near.axes[1]);
  const Frame blocks = some_axes(frame, [&](int64_t axis) {
    return axis != last && axis != near.axes[0] && axis != near.axes[1];
  });
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (near.rows * columns * element_bytes));
  device::parallel_for(blocks.size(), grain, [&](int64_t begin, int64_t end, int) {
    for_each_outer(blocks, -1, -1, begin, end, [&](const std::byte* from, std::byte* to) {
      library::turn_few({.from = from,
                         .from_column = stride(frame, kFrom, last),
                         .to = to,
                         .rows = near.rows,
                         .columns = columns},
                        to_rows.data());
    });
  });
}

// ---- Each of these copies a frame if it does that better than a kernel

bool copy_reversed(const Frame& frame, int64_t element_bytes) {
  if (stride(frame, kFrom, frame.axes() - 1) != -element_bytes || frame.extents.back() < kLeastSide)
    return false;
  if (!WorkspacePart::preparing()) reverse(frame, element_bytes);
  return true;
}

bool copy_short_rows(const Frame& frame, int64_t element_bytes) {
  if (stride(frame, kFrom, frame.axes() - 1) != element_bytes || axis_of_rows(frame) < 0 ||
      frame.extents.back() * element_bytes > library::kMostRowBytes)
    return false;
  if (!WorkspacePart::preparing()) move_short_rows(frame, element_bytes, library::copy_rows);
  return true;
}

// Rows of one element over and over, without gaps between them.
bool copy_repeated(const Frame& frame, int64_t element_bytes) {
  const int64_t bytes = frame.extents.back() * element_bytes, last = frame.axes() - 1;
  if (last == 0 || stride(frame, kFrom, last) != 0 || axis_of_rows(frame) != last - 1 ||
      bytes > library::kMostRepeatedBytes || stride(frame, kTo, last - 1) != bytes)
    return false;
  if (!WorkspacePart::preparing())
    move_short_rows(frame, element_bytes, [&](const library::Rows& rows) {
      library::repeat_elements(rows, element_bytes);
    });
  return true;
}

bool copy_turned(const Frame& frame, int64_t element_bytes) {
  const int64_t last = frame.axes() - 1, columns = frame.extents.back();
  const int64_t least_rows = columns < kLeastSide ? kLongSide : kLeastSide;
  const int64_t step = stride(frame, kFrom, last);
  for (int64_t axis = 0; axis < last && step != element_bytes && step != 0; ++axis) {
    if (stride(frame, kFrom, axis) != element_bytes ||
        frame.extents[static_cast<size_t>(axis)] < least_rows)
      continue;
    if (!WorkspacePart::preparing()) turn(frame, axis, element_bytes);
    return true;
  }
  return false;
}

bool copy_turned_blocks(const Frame& frame, int64_t element_bytes) {
  const int64_t step = stride(frame, kFrom, frame.axes() - 1), columns = frame.extents.back();
  if (element_bytes != 4 || step == element_bytes || step == 0 || columns < kFewRows) return false;
  const NearAxes near(frame, element_bytes);
  if (near.axes[1] < 0 || near.rows < kFewRows || near.rows > library::kMostFewRows) return false;
  if (!WorkspacePart::preparing()) turn_blocks(frame, near, element_bytes);
  return true;
}

template <class T>
void move_elements(const Frame& frame) {
  const int64_t last = frame.axes() - 1;
  const int64_t rows = frame.extents[static_cast<size_t>(last - 1)], columns = frame.extents.back();
  const int64_t from_row = stride(frame, kFrom, last - 1), from_column = stride(frame, kFrom, last);
  const int64_t to_row = stride(frame, kTo, last - 1), to_column = stride(frame, kTo, last);
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / (rows * columns * static_cast<int64_t>(sizeof(T))));
  device::parallel_for(
      frame.size() / (rows * columns), grain, [&](int64_t begin, int64_t end, int) {
        for_each_outer(frame, last - 1, last, begin, end,
                       [&](const std::byte* from, std::byte* to) {
                         for (int64_t r = 0; r < rows; ++r)
                           for (int64_t c = 0; c < columns; ++c)
                             std::memcpy(to + r * to_row + c * to_column,
                                         from + r * from_row + c * from_column, sizeof(T));
                       });
      });
}

// A few elements along both of the last axes, for which a call of a kernel is too much.
bool copy_few_by_few(const Frame& frame, int64_t element_bytes) {
  constexpr int64_t kFew = 16;
  const int64_t last = frame.axes() - 1;
  if (last < 2 || frame.extents[static_cast<size_t>(last - 1)] * frame.extents.back() > kFew)
    return false;
  if (WorkspacePart::preparing()) return true;
  switch (element_bytes) {
    case 1:
      move_elements<uint8_t>(frame);
      break;
    case 2:
      move_elements<uint16_t>(frame);
      break;
    case 4:
      move_elements<uint32_t>(frame);
      break;
    default:
      move_elements<uint64_t>(frame);
  }
  return true;
}

}  // namespace

bool copy_in_other_order(const Frame& frame, int64_t element_bytes) {
  if (frame.size() == 0 || frame.axes() == 0 ||
      stride(frame, kTo, frame.axes() - 1) != element_bytes)
    return false;
  return copy_reversed(frame, element_bytes) || copy_short_rows(frame, element_bytes) ||
         copy_repeated(frame, element_bytes) || copy_turned(frame, element_bytes) ||
         copy_turned_blocks(frame, element_bytes) || copy_few_by_few(frame, element_bytes);
}

}  // namespace tidemark::compile

#include "tidemark/emit/tile/move.h"

#include <cstdlib>
#include <cstring>

#include "tidemark/base/error.h"

namespace tidemark::tile {
namespace {

// Two nested loops: `outer` runs of `inner` elements, with a stride in bytes on each side.
struct Plane {
  int64_t outer, inner;
  int64_t to_outer, to_inner, from_outer, from_inner;
};

template <class T>
void copy_run(std::byte* to, const std::byte* from, int64_t n, int64_t to_by, int64_t from_by) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (to_by == size && from_by == size) {
    if (n * size >= 64) {
      // The same element may be copied onto itself.
      std::memmove(to, from, static_cast<size_t>(n * size));
      return;
    }
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, from + i * size, sizeof(T));
    return;
  }
  if (to_by == size && from_by == 0) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    T* const out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_by, from + i * from_by, sizeof(T));
}

template <class T>
void copy_plane(std::byte* to, const std::byte* from, Plane plane) {
  // The longer stride goes outside, so that a cache line is used up before the next is fetched; but
  // a loop of a few elements is not worth starting once for each of many.
  const auto widest = [](int64_t a, int64_t b) { return std::max(std::abs(a), std::abs(b)); };
  const int64_t outer_stride = widest(plane.to_outer, plane.from_outer);
  const int64_t inner_stride = widest(plane.to_inner, plane.from_inner);
  const bool brief = plane.inner < 8 && plane.outer > plane.inner;
  if (brief || (plane.outer > 1 && outer_stride < inner_stride)) {
    std::swap(plane.outer, plane.inner);
    std::swap(plane.to_outer, plane.to_inner);
    std::swap(plane.from_outer, plane.from_inner);
  }
  for (int64_t i = 0; i < plane.outer; ++i) {
    copy_run<T>(to + i * plane.to_outer, from + i * plane.from_outer, plane.inner, plane.to_inner,
                plane.from_inner);
  }
}

template <class T>
void copy_block(std::byte* to, const std::byte* from, const Extents& block, const Movement& to_by,
                const Movement& from_by) {
  if (block.steps == 1) {
    copy_plane<T>(
        to, from,
        {block.rows, block.columns, to_by.row, to_by.column, from_by.row, from_by.column});
    return;
  }
  for (int64_t row = 0; row < block.rows; ++row) {
    copy_plane<T>(
        to + row * to_by.row, from + row * from_by.row,
        {block.steps, block.columns, to_by.step, to_by.column, from_by.step, from_by.column});
  }
}

void copy(std::byte* to, const std::byte* from, const Extents& block, const Movement& to_by,
          const Movement& from_by, int64_t size) {
  switch (size) {
    case 1:
      return copy_block<uint8_t>(to, from, block, to_by, from_by);
    case 2:
      return copy_block<uint16_t>(to, from, block, to_by, from_by);
    case 4:
      return copy_block<uint32_t>(to, from, block, to_by, from_by);
    case 8:
      return copy_block<uint64_t>(to, from, block, to_by, from_by);
    default:
      TIDEMARK_CHECK(false, "elements of ", size, " bytes");
  }
}

Movement register_movement(const Extents& block, int64_t size) {
  return {block.steps * block.columns * size, block.columns * size, size};
}

}  // namespace

bool is_contiguous(const Extents& block, const Movement& by, int64_t size) {
  return (block.columns == 1 || by.column == size) &&
         (block.steps == 1 || by.step == block.columns * size) &&
         (block.rows == 1 || by.row == block.steps * block.columns * size);
}

void gather(std::byte* to, const std::byte* from, const Extents& block, const Movement& by,
            int64_t size) {
  copy(to, from, block, register_movement(block, size), by, size);
}

void scatter(std::byte* to, const std::byte* from, const Extents& block, const Movement& by,
             int64_t size) {
  copy(to, from, block, by, register_movement(block, size), size);
}

}  // namespace tidemark::tile

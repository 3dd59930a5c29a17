// The axes a kernel runs over, common to all its buffers, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

inline constexpr int kMaxBuffers = 4;

struct Frame {
  AxisList extents;
  int buffers = 0;
  std::array<std::byte*, kMaxBuffers> data = {};
  std::array<Strides, kMaxBuffers> strides = {};  // In bytes, one per axis.

  int64_t axes() const { return static_cast<int64_t>(extents.size()); }
  int64_t size() const;
  void add(const ArrayRef& array);
  // Axes of extent 1 go, and neighbours that every buffer crosses evenly become one. Only axes in
  // [begin, end) are looked at; the axes after them keep their places.
  void collapse(int64_t begin, int64_t end);
  void collapse() { collapse(0, axes()); }
};

}  // namespace tidemark::compile

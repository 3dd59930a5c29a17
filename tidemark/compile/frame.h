// The axes of a kernel's loops, shared by all its buffers, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

inline constexpr int kMaxBuffers = 4;

// Removes axes of extent 1, and merges adjacent axes if they are contiguous in every list of
// strides. Only axes in [begin, end) are changed; the axes after them stay. Returns the new end.
int64_t collapse_axes(AxisList& extents, std::span<Strides> strides, int64_t begin, int64_t end);

struct Frame {
  AxisList extents;
  int buffers = 0;
  std::array<std::byte*, kMaxBuffers> data = {};
  std::array<Strides, kMaxBuffers> strides = {};  // In bytes, one per axis.

  int64_t axes() const { return static_cast<int64_t>(extents.size()); }
  int64_t size() const;
  void add(const ArrayRef& array);
  void collapse(int64_t begin, int64_t end) {
    collapse_axes(extents, std::span(strides).first(static_cast<size_t>(buffers)), begin, end);
  }
  void collapse() { collapse(0, axes()); }
};

}  // namespace tidemark::compile

// Which taps of a convolution lie inside the image.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tidemark/emit/contract/work.h"

namespace tidemark::contraction {

// Taps [begin, end) of one axis lie inside the image.
struct Taps {
  int64_t begin = 0, end = 0;
  bool operator==(const Taps&) const = default;
};

// The taps that output `at` of an axis sees.
inline Taps taps_inside(int64_t at, int64_t stride, int64_t pad, int64_t dilation, int64_t taps,
                        int64_t size) {
  const int64_t first = at * stride - pad;
  const int64_t begin = first >= 0 ? 0 : std::min(taps, divide_up(-first, dilation));
  const int64_t end = first >= size ? begin : std::min(taps, divide_up(size - first, dilation));
  return {begin, std::max(begin, end)};
}

}  // namespace tidemark::contraction

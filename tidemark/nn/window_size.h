// Sizes of windows, strides and factors of layers of images.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidemark::nn {

// One number for each axis of an image: 3 for all, or {3, 5}.
template <size_t axes>
struct WindowSize {
  constexpr WindowSize(int64_t all) { items.fill(all); }
  template <class... N>
    requires(axes > 1 && sizeof...(N) == axes)
  constexpr WindowSize(N... each) : items{static_cast<int64_t>(each)...} {}
  constexpr operator std::array<int64_t, axes>() const { return items; }
  std::array<int64_t, axes> items = {};
};
using Size2 = WindowSize<2>;

}  // namespace tidemark::nn

// Arithmetic of one element, for precompiled kernels: integers wrap, bools are logical, 16-bit
// floats are computed in f32 and rounded.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tidemark/types/dtype.h"

namespace tidemark::library {

template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// The type in which running sums and products are kept.
template <class T>
using Wide = std::conditional_t<is_narrow<T>, float, T>;

template <class T>
T plus(T a, T b) {
  if constexpr (is_narrow<T>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T times(T a, T b) {
  if constexpr (is_narrow<T>) {
    return T(static_cast<float>(a) * static_cast<float>(b));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// Whether b replaces a as the largest (least) so far: a NaN replaces every number and stays.
template <bool kLargest, class T>
bool replaces(T a, T b) {
  const auto x = static_cast<Wide<T>>(a), y = static_cast<Wide<T>>(b);
  if constexpr (std::is_floating_point_v<Wide<T>>) {
    // Without branches, which would go either way at random.
    const bool is_beyond = kLargest ? x < y : y < x;
    return static_cast<int>(is_beyond) | (static_cast<int>(y != y) & static_cast<int>(x == x));
  } else {
    return kLargest ? x < y : y < x;
  }
}

}  // namespace tidemark::library

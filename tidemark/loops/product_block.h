// The block size of matrix products, which is part of their definition.
#pragma once

#include <cstdint>

namespace tidemark {

// The number of terms of one fma chain; the results of chains are added in order
// (emit/contract/contract.h).
inline constexpr int64_t kProductBlock = 256;

// Of a convolution that adds up channel by channel, a block of taps ends with its channel: this
// many channels, of so many taps each, are whole blocks. 0: too few taps for that, the channels of
// a tap come first.
inline constexpr int64_t channels_of_block(int64_t taps) {
  constexpr int64_t kFewTaps = 32;
  if (taps < kFewTaps) return 0;
  return taps > kProductBlock ? 1 : kProductBlock / taps;
}

}  // namespace tidemark

// The blocks of k of a convolution whose sums go over pixels and channels (ConvolutionAcross).
#pragma once

#include <algorithm>
#include <cstdint>

#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark::contraction {

// A block of k: pixels of the kernel, [begin, end), and of each these channels. Where channels come
// first, the first and the last pixel may have only some of them.
struct Range {
  int64_t pixel_begin = 0, pixel_end = 0;
  int64_t channel_begin = 0, channel_end = 0;
};

// The blocks of k, in order.
class Blocks {
 public:
  Blocks(int64_t pixels, int64_t channels, bool by_channel)
      : pixels_(pixels),
        channels_(channels),
        together_(by_channel ? channels_of_block(pixels) : 0) {}

  bool by_channel() const { return together_ > 0; }
  int64_t count() const {
    if (!by_channel()) return divide_up(pixels_ * channels_, kBlock);
    return divide_up(channels_, together_) * of_channel();
  }
  // None from the last one on.
  Range at(int64_t block) const {
    if (block >= count()) return {};
    if (!by_channel())
      return {block * kBlock / channels_,
              divide_up(std::min(pixels_ * channels_, (block + 1) * kBlock), channels_), 0,
              channels_};
    const int64_t channel = block / of_channel() * together_, pixel = block % of_channel() * kBlock;
    return {pixel, std::min(pixels_, pixel + kBlock), channel,
            std::min(channels_, channel + together_)};
  }

 private:
  int64_t of_channel() const { return divide_up(pixels_, kBlock); }
  int64_t pixels_, channels_, together_;
};

}  // namespace tidemark::contraction

// One piece of a convolution: rectangles of outputs that see the same taps, see convolve.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark::contraction {

// The frames that one output frame sees, as one worker reads them: in place, or a widened copy.
template <class T>
struct Image {
  const T* data;              // The address of tap frame 0, row 0, which may lie outside.
  int64_t frame, row, pixel;  // From one tap to the next for frames; else to the next in memory.
  int64_t channel = 1;        // Not 1 in a turned copy, whose rows are channels of a row of pixels.
  bool is_turned() const { return channel != 1; }
};

// The taps of each block of k, for one rectangle of outputs and one range of k.
struct TapBlocks {
  Segment* segments;
  int64_t* first;  // Block b is segments [first[b], first[b + 1]).
  int64_t count;

  struct Range {
    int64_t begin, end;
  };

  // A of a tile is the image, or if it is turned the weights.
  template <class T>
  void build(const Convolution& p, const Phase& phase, const Image<T>& image, int64_t weight_row,
             Taps kz, Taps ky, Taps kx, Range k_range) {
    const int64_t channels = p.c_in / p.groups;
    const auto [k_begin, k_end] = k_range;
    // Neighbouring taps of one row are one run if pixels are contiguous.
    const bool joined = phase.x.dilation == 1 && phase.x.tap_step == 1 && image.pixel == channels &&
                        !image.is_turned();
    int64_t used = 0;
    count = 0;
    first[0] = 0;
    int64_t block_end = std::min(k_end, k_begin + kBlock);
    const auto close_blocks = [&](int64_t k) {
      while (k >= block_end && block_end < k_end) {
        first[++count] = used;
        block_end = std::min(k_end, block_end + kBlock);
      }
    };
    const auto add_run = [&](int64_t a, int64_t k, int64_t length) {
      const int64_t skip = std::clamp<int64_t>(k_begin - k, 0, length);
      a += skip * image.channel;
      k += skip;
      length = std::min(length - skip, k_end - k);
      while (length > 0) {
        close_blocks(k);
        const int64_t part = std::min(length, block_end - k);
        const int64_t b = (k - k_begin) * weight_row;
        segments[used++] = image.is_turned() ? Segment{.a = b, .b = a, .length = part}
                                             : Segment{.a = a, .b = b, .length = part};
        a += part * image.channel;
        k += part;
        length -= part;
      }
    };
    const auto tap = [](const PhaseAxis& axis, int64_t number) {
      return axis.first_tap + number * axis.tap_step;
    };
    for (int64_t z = kz.begin; z < kz.end; ++z) {
      for (int64_t y = ky.begin; y < ky.end; ++y) {
        const int64_t a = z * image.frame + y * phase.y.dilation * image.row;
        const int64_t line = (tap(phase.z, z) * p.kh + tap(phase.y, y)) * p.kw;
        if (joined) {
          add_run(a + kx.begin * image.pixel, (line + tap(phase.x, kx.begin)) * channels,
                  (kx.end - kx.begin) * channels);
          continue;
        }
        for (int64_t x = kx.begin; x < kx.end; ++x) {
          add_run(a + x * phase.x.dilation * image.pixel, (line + tap(phase.x, x)) * channels,
                  channels);
        }
      }
    }
    close_blocks(k_end);
    first[++count] = used;
  }
};

// A panel of weights times a piece of the output, for one range of k.
template <class T>
struct Pass {
  Image<T> image;
  Image<T> turned = {};  // Where outputs are few: of the same pixels.
  T* sums = nullptr;     // Of a row of outputs, those of an output next to one another.
  int64_t sums_row = 0;
  const T* weight;
  int64_t weight_row;
  T* out;  // The address of output row 0 and pixel 0, which may lie outside the piece.
  int64_t out_row, out_pixel;
  int64_t columns;
  int64_t k_begin, k_end;
  Taps kz;
};

template <class T>
void run_rectangle(const Phase& phase, const KernelSet<T>& kernels, const Pass<T>& pass,
                   const Stretch& ys, const Stretch& xs, const TapBlocks& blocks) {
  const PhaseAxis &y_axis = phase.y, &x_axis = phase.x;
  const int64_t vectors = divide_up(pass.columns, kernels.lanes);
  const int64_t tallest = kernels.max_rows[vectors - 1];
  const int64_t height = ys.end - ys.begin, width = xs.end - xs.begin;
  const bool downward = width * divide_up(height, tallest) < height * divide_up(width, tallest);
  const int64_t lines = downward ? width : height;
  const auto split = split_rows(downward ? height : width, tallest);
  const int64_t across = x_axis.stride * pass.image.pixel, down = y_axis.stride * pass.image.row;
  const int64_t a_line = downward ? across : down,
                c_line = downward ? pass.out_pixel : pass.out_row;
  Tile<T> tile;
  tile.a_row = downward ? down : across;
  tile.a_next_row = tile.a_row;
  tile.c_row = downward ? pass.out_row : pass.out_pixel;
  tile.b = pass.weight;
  tile.b_step = pass.weight_row;
  tile.last_lanes = static_cast<int>(pass.columns - (vectors - 1) * kernels.lanes);
  const T* a = pass.image.data + (ys.begin * y_axis.stride - y_axis.pad) * pass.image.row +
               (xs.begin * x_axis.stride - x_axis.pad) * pass.image.pixel;
  T* c = pass.out + ys.begin * pass.out_row + xs.begin * pass.out_pixel;
  for (int64_t line = 0; line < lines; ++line, a += a_line, c += c_line) {
    int64_t at = 0;
    for (int64_t i = 0; i < split.count; ++i) {
      const int64_t rows = split.rows(i);
      tile.a = a + at * tile.a_row;
      tile.c = c + at * tile.c_row;
      tile.next_a = tile.a + rows * tile.a_row;
      for (int64_t block = 0; block < blocks.count; ++block) {
        tile.segments = blocks.segments + blocks.first[block];
        tile.segment_count = blocks.first[block + 1] - blocks.first[block];
        tile.add = pass.k_begin > 0 || block > 0;
        kernels.tile[vectors - 1][rows - 1](tile);
      }
      at += rows;
    }
  }
}

// A row of pixels lies along the lanes, and a row of A is an output.
template <class T>
void run_turned(const Phase& phase, const KernelSet<T>& kernels, const Pass<T>& pass,
                const Stretch& ys, const Stretch& xs, const TapBlocks& blocks) {
  const int64_t width = xs.end - xs.begin, widest = kernels.max_vectors * kernels.lanes;
  Tile<T> tile;
  tile.a_row = 1;
  tile.a_step = pass.weight_row;
  tile.b_step = pass.turned.channel;
  tile.c_row = pass.sums_row;
  tile.last_lanes = kernels.lanes;  // Copies and sums have room for whole vectors.
  for (int64_t y = ys.begin; y < ys.end; ++y) {
    const T* const image = pass.turned.data + (y * phase.y.stride - phase.y.pad) * pass.turned.row +
                           (xs.begin - phase.x.pad) * pass.turned.pixel;
    for (int64_t x = 0; x < width; x += widest) {
      const int64_t vectors = divide_up(std::min(widest, width - x), kernels.lanes);
      const auto split = split_rows(pass.columns, kernels.max_rows[vectors - 1]);
      tile.b = image + x;
      for (int64_t i = 0; i < split.count; ++i) {
        tile.a = tile.next_a = pass.weight + split.first(i);
        tile.c = pass.sums + split.first(i) * pass.sums_row + x;
        for (int64_t block = 0; block < blocks.count; ++block) {
          tile.segments = blocks.segments + blocks.first[block];
          tile.segment_count = blocks.first[block + 1] - blocks.first[block];
          tile.add = block > 0;
          kernels.tile[vectors - 1][split.rows(i) - 1](tile);
        }
      }
    }
    T* const out = pass.out + y * pass.out_row + xs.begin * pass.out_pixel;
    for (int64_t x = 0; x < width; ++x)
      for (int64_t o = 0; o < pass.columns; ++o)
        out[x * pass.out_pixel + o] = pass.sums[o * pass.sums_row + x];
  }
}

template <class T>
void run_band(const Convolution& p, const Phase& phase, const KernelSet<T>& kernels,
              const Pass<T>& pass, int64_t y_begin, int64_t y_end, TapBlocks& blocks) {
  for (int64_t y = y_begin; y < y_end;) {
    const Stretch ys = next_stretch(phase.y, y, y_end);
    for (int64_t x = 0; x < phase.x.out;) {
      const Stretch xs = next_stretch(phase.x, x, phase.x.out);
      const bool turned = pass.turned.is_turned() && xs.end - xs.begin >= kernels.lanes;
      blocks.build(p, phase, turned ? pass.turned : pass.image, pass.weight_row, pass.kz, ys.taps,
                   xs.taps, {pass.k_begin, pass.k_end});
      (turned ? run_turned<T> : run_rectangle<T>)(phase, kernels, pass, ys, xs, blocks);
      x = xs.end;
    }
    y = ys.end;
  }
}

}  // namespace tidemark::contraction

// The loop structure of a convolution of interleaved images.
//
// A row of A is an image: all of them see the same taps, so a tile is a few images at one output
// position, and the edges of an image need no special case. Both operands are read in place. A step
// of k goes to the next channel, which may be far away, so the cache lines that one block of k
// reads must stay in the L2 cache: a block is applied to all output positions before the next one
// begins. Its first tiles prefetch the lines of the next block, which hardware prefetchers do not
// predict.
#include <algorithm>
#include <numeric>

#include "tidemark/base/error.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/blocks.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace {

using contraction::Blocks;
using contraction::divide_up;
using contraction::kBlock;
using contraction::KernelSet;
using contraction::Range;
using contraction::RowSplit;
using contraction::Segment;
using contraction::Taps;
using contraction::Tile;

// Work is counted in tiles: tile t of the images at each place of the output is unit t * places +
// place, so that a piece, a range of units, has few images and most places.
struct Blocking {
  int64_t images = 0, outputs = 0;  // Of one group.
  int64_t width = 0, panels = 0;    // Outputs of a piece; panels of one group.
  RowSplit tiles;                   // Of the images.
  int64_t places = 0;
  int64_t parts = 1;  // Of the units of a panel.
  bool serial = true;

  int64_t units() const { return tiles.count * places; }
  int64_t pieces_of_group() const { return panels * parts; }
};

template <class T>
Blocking cut_up(const Convolution& p, int threads) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  Blocking cut;
  cut.images = p.n / p.groups;
  cut.outputs = p.c_out / p.groups;
  const int64_t vectors =
      std::min<int64_t>(kernels.max_vectors, divide_up(cut.outputs, kernels.lanes));
  cut.width = vectors * kernels.lanes;
  cut.panels = divide_up(cut.outputs, cut.width);
  cut.tiles = contraction::split_rows(cut.images, kernels.max_rows[vectors - 1]);
  cut.places = p.out_d * p.out_h * p.out_w;
  const double work = static_cast<double>(cut.images * cut.places) * static_cast<double>(p.c_out) *
                      static_cast<double>(p.kd * p.kh * p.kw * p.c_in);
  cut.serial = threads == 1 || work < 1e6;
  // Sums of a piece stay in the second-level cache beside what a block reads. All pieces take as
  // long, so each thread gets as many.
  const int64_t sums_bytes = cut.images * cut.places * cut.width * static_cast<int64_t>(sizeof(T));
  const int64_t together =
      cut.serial ? 1 : threads / std::gcd<int64_t>(threads, p.groups * cut.panels);
  const int64_t wanted = divide_up(sums_bytes, device::caches().l2_bytes / 6);
  cut.parts = std::min(cut.units(), divide_up(wanted, together) * together);
  return cut;
}

// The taps of one block of k that an output sees.
struct Block {
  Segment segments[kBlock];
  int64_t count = 0;

  struct Tap {
    int64_t z, y, x;
  };
  void add(const ConvolutionAcross& p, Tap at, int64_t channel, int64_t length) {
    const Convolution& of = p.of;
    segments[count++] = {
        .a = at.z * of.dilation_d * of.in_d + at.y * of.dilation_h * of.in_h +
             at.x * of.dilation_w * of.in_w + channel * p.in_c,
        .b = at.z * p.weight_d + at.y * p.weight_h + at.x * p.weight_w + channel * p.weight_c,
        .length = length};
  }
  void build_by_channel(const ConvolutionAcross& p, Taps kz, Taps ky, Taps kx, const Range& range) {
    count = 0;
    for (int64_t c = range.channel_begin; c < range.channel_end; ++c) {
      int64_t line = range.pixel_begin / p.of.kw, x = range.pixel_begin % p.of.kw;
      for (int64_t k = range.pixel_begin; k < range.pixel_end; ++line, x = 0) {
        const int64_t z = line / p.of.kh, y = line % p.of.kh;
        const int64_t length = std::min(range.pixel_end - k, p.of.kw - x);
        const int64_t begin = std::max(x, kx.begin), end = std::min(x + length, kx.end);
        const bool inside = z >= kz.begin && z < kz.end && y >= ky.begin && y < ky.end;
        if (inside && begin < end) add(p, {z, y, begin}, c, end - begin);
        k += length;
      }
    }
  }
  // Steps go from channel to channel of a pixel, and from pixel to pixel of a row.
  void build(const ConvolutionAcross& p, Taps kz, Taps ky, Taps kx, int64_t k_begin,
             int64_t k_end) {
    const int64_t channels = p.of.c_in, row = p.of.kw * channels;
    count = 0;
    for (int64_t k = k_begin; k < k_end;) {
      const int64_t line = k / row, first = line * row, z = line / p.of.kh, y = line % p.of.kh;
      if (z >= kz.begin && z < kz.end && y >= ky.begin && y < ky.end)
        add_steps(p, {z, y, 0}, std::max(k - first, kx.begin * channels),
                  std::min(k_end - first, kx.end * channels));
      k = first + row;
    }
  }
  // Steps [begin, end) of a row. A segment begins with a run, or is a part of one.
  void add_steps(const ConvolutionAcross& p, Tap row, int64_t begin, int64_t end) {
    const int64_t channels = p.of.c_in;
    while (begin < end) {
      const int64_t channel = begin % channels;
      const int64_t length = std::min(end - begin, channel == 0 ? end : channels - channel);
      add(p, {row.z, row.y, begin / channels}, channel, length);
      begin += length;
    }
  }
};

// The elements of one operand that a block reads, handed out in runs of rows that are equally far
// apart: pixels of one channel, or channels of one pixel where a block has few pixels.
template <class T>
struct Ahead {
  const T* first = nullptr;  // Of tap 0 and channel 0.
  int64_t kh = 1, kw = 1, deep = 0, down = 0, across = 0, channel_step = 0;
  Range range = {};
  bool along_pixels = true;
  int64_t pixel = 0, z = 0, y = 0, x = 0, channel = 0;  // What is next.

  void start(const Range& of) {
    range = of;
    channel = of.channel_begin;
    along_pixels = of.pixel_end - of.pixel_begin >= contraction::kPrefetchRows;
    go_to(of.pixel_begin);
  }
  bool has_more() const { return channel < range.channel_end && pixel < range.pixel_end; }
  int64_t step() const { return along_pixels ? across : channel_step; }
  const T* take(int64_t rows) {
    const T* run = first + z * deep + y * down + x * across + channel * channel_step;
    if (along_pixels) {
      pixel += rows;
      x += rows;
      while (x >= kw) x -= kw, ++y;
      while (y >= kh) y -= kh, ++z;
      if (pixel >= range.pixel_end) go_to(range.pixel_begin), ++channel;
    } else {
      channel += rows;
      if (channel >= range.channel_end && pixel + 1 < range.pixel_end)
        go_to(pixel + 1), channel = range.channel_begin;
    }
    return run;
  }

 private:
  void go_to(int64_t to) {
    pixel = to;
    z = to / kw / kh;
    y = to / kw % kh;
    x = to % kw;
  }
};

template <class T>
class Piece {
 public:
  Piece(const ConvolutionAcross& across, const Blocking& cut, int64_t piece)
      : across_(across),
        p_(across.of),
        blocks_(p_.kd * p_.kh * p_.kw, p_.c_in, across.by_channel),
        cut_(cut) {
    const int64_t group = piece / cut.pieces_of_group();
    const int64_t column = piece % cut.panels * cut.width;
    const int64_t part = piece % cut.pieces_of_group() / cut.panels;
    begin_ = cut.units() * part / cut.parts;
    end_ = cut.units() * (part + 1) / cut.parts;
    const int64_t columns = std::min(cut.width, cut.outputs - column);
    const int64_t first_output = group * cut.outputs + column;
    vectors_ = divide_up(columns, kernels_.lanes);
    in_ = reinterpret_cast<const T*>(p_.in) + group * cut.images * p_.in_n;
    out_row_ = across.kernel_layout ? p_.c_out : cut.places * p_.c_out;
    out_place_ = across.kernel_layout ? cut.images * p_.c_out : p_.c_out;
    out_ = reinterpret_cast<T*>(p_.out) + first_output;
    tile_.b = reinterpret_cast<const T*>(p_.weight) + first_output;
    tile_.a_row = p_.in_n;
    const bool along_row = p_.c_in == 1 || blocks_.by_channel();
    tile_.a_step = along_row ? p_.dilation_w * p_.in_w : across.in_c;
    tile_.b_step = along_row ? across.weight_w : across.weight_c;
    if (!along_row) {
      tile_.run = p_.c_in;
      tile_.a_jump = p_.dilation_w * p_.in_w - p_.c_in * across.in_c;
      tile_.b_jump = across.weight_w - p_.c_in * across.weight_c;
    }
    tile_.c_row = out_row_;
    tile_.last_lanes = static_cast<int>(columns - (vectors_ - 1) * kernels_.lanes);
    tile_.segments = block_.segments;
    weight_ahead_ = {.first = tile_.b,
                     .kh = p_.kh,
                     .kw = p_.kw,
                     .deep = across.weight_d,
                     .down = across.weight_h,
                     .across = across.weight_w,
                     .channel_step = across.weight_c};
    in_ahead_ = {.kh = p_.kh,
                 .kw = p_.kw,
                 .deep = p_.dilation_d * p_.in_d,
                 .down = p_.dilation_h * p_.in_h,
                 .across = p_.dilation_w * p_.in_w,
                 .channel_step = across.in_c};
  }

  void run() {
    for (int64_t block = 0; block < blocks_.count(); ++block) {
      tile_.add = across_.add || block > 0;
      start_ahead(blocks_.at(block + 1));
      for (int64_t place = 0; place < cut_.places; ++place) run_place(place, block);
    }
  }

 private:
  void build(int64_t block, Taps kz, Taps ky, Taps kx) {
    if (blocks_.by_channel())
      return block_.build_by_channel(across_, kz, ky, kx, blocks_.at(block));
    const int64_t k = p_.kd * p_.kh * p_.kw * p_.c_in, begin = block * kBlock;
    block_.build(across_, kz, ky, kx, begin, std::min(k, begin + kBlock));
  }
  void run_place(int64_t place, int64_t block) {
    // The tiles of this place that are units of this piece.
    const int64_t first = divide_up(std::max<int64_t>(0, begin_ - place), cut_.places);
    const int64_t last = divide_up(std::max<int64_t>(0, end_ - place), cut_.places);
    if (first == last) return;
    const int64_t row = place / p_.out_w, x = place % p_.out_w;
    const Taps kz = contraction::taps_inside(row / p_.out_h, p_.stride_d, p_.pad_front,
                                             p_.dilation_d, p_.kd, p_.d);
    const Taps ky = contraction::taps_inside(row % p_.out_h, p_.stride_h, p_.pad_top, p_.dilation_h,
                                             p_.kh, p_.h);
    const Taps kx =
        contraction::taps_inside(x, p_.stride_w, p_.pad_left, p_.dilation_w, p_.kw, p_.w);
    build(block, kz, ky, kx);
    tile_.segment_count = block_.count;
    for (int64_t t = first; t < last; ++t) {
      const int64_t image = cut_.tiles.first(t), rows = cut_.tiles.rows(t);
      tile_.a = first_tap(row, x) + image * p_.in_n;
      tile_.next_a = tile_.a + rows * p_.in_n;
      tile_.c = out_ + image * out_row_ + place * out_place_;
      fetch_ahead();
      kernels_.tile[vectors_ - 1][rows - 1](tile_);
    }
  }

  // Where an output of image 0 finds tap 0, inside the image or not. Rows are counted over all
  // frames.
  const T* first_tap(int64_t row, int64_t x) const {
    const int64_t z = row / p_.out_h, y = row % p_.out_h;
    return in_ + (z * p_.stride_d - p_.pad_front) * p_.in_d +
           (y * p_.stride_h - p_.pad_top) * p_.in_h + (x * p_.stride_w - p_.pad_left) * p_.in_w;
  }

  void start_ahead(const Range& next) {
    weight_ahead_.start(next);
    in_ahead_.start({});
    ahead_row_ = next.pixel_begin < next.pixel_end ? p_.out_d * p_.out_h : 0;
  }
  // What to fetch with the tile to come: weights, then what each row of outputs sees of the image,
  // the last one first: that no output has seen before, and the rest may have left the cache.
  Ahead<T>& ahead() {
    if (weight_ahead_.has_more()) return weight_ahead_;
    if (!in_ahead_.has_more() && ahead_row_ > 0) {
      in_ahead_.first =
          first_tap(--ahead_row_, p_.out_w - 1) + cut_.tiles.first(begin_ / cut_.places) * p_.in_n;
      in_ahead_.start(weight_ahead_.range);
    }
    return in_ahead_;
  }
  // Shares it out among the segments of the tile.
  void fetch_ahead() {
    Ahead<T>& from = ahead();
    tile_.next_b = from.has_more() ? next_ : nullptr;
    if (tile_.next_b == nullptr) return;
    tile_.b_next_step = from.step();
    for (int64_t s = 0; s < block_.count; ++s) {
      const int64_t times = divide_up(block_.segments[s].length, contraction::kPrefetchSteps);
      next_[s] = from.has_more() ? from.take(times * contraction::kPrefetchRows) : nullptr;
    }
  }

  const ConvolutionAcross& across_;
  const Convolution& p_;
  const Blocks blocks_;
  const Blocking& cut_;
  const KernelSet<T>& kernels_ = contraction::kernel_set<T>();
  int64_t begin_ = 0, end_ = 0;  // Of its units.
  int64_t vectors_ = 0;
  const T* in_ = nullptr;
  T* out_ = nullptr;
  int64_t out_row_ = 0, out_place_ = 0;
  Tile<T> tile_;
  Block block_;
  const T* next_[kBlock];
  Ahead<T> weight_ahead_, in_ahead_;
  int64_t ahead_row_ = 0;  // What rows of outputs before this one see is still to be fetched.
};

template <class T>
void run(const ConvolutionAcross& p, int threads) {
  const Blocking cut = cut_up<T>(p.of, threads);
  const int64_t pieces = p.of.groups * cut.pieces_of_group();
  const auto work = [&](int64_t begin, int64_t end, int) {
    for (int64_t piece = begin; piece < end; ++piece) Piece<T>(p, cut, piece).run();
  };
  if (cut.serial) {
    work(0, pieces, 0);
  } else {
    device::parallel_for(pieces, 1, threads, work);
  }
}

}  // namespace

void convolve_across(const ConvolutionAcross& across, int threads) {
  const Convolution& p = across.of;
  TIDEMARK_CHECK(p.n % p.groups == 0 && p.c_out % p.groups == 0, "convolve_across: ", p.n,
                 " images and ", p.c_out, " outputs in ", p.groups, " groups");
  TIDEMARK_CHECK(p.dtype == DType::f32 || p.dtype == DType::f64, "convolve_across: ", p.dtype);
  TIDEMARK_CHECK(p.spread_d * p.spread_h * p.spread_w == 1, "convolve_across: spread pixels");
  const int64_t count = p.n / p.groups * p.out_d * p.out_h * p.out_w * p.c_out;
  if (count == 0) return;
  if (p.kd * p.kh * p.kw * p.c_in == 0) {
    if (across.add) return;
    std::fill_n(p.out, count * size_of(p.dtype), std::byte{0});
    return;
  }
  const device::FloatEnvironment environment;
  if (p.dtype == DType::f64) return run<double>(across, threads);
  run<float>(across, threads);
}

}  // namespace tidemark

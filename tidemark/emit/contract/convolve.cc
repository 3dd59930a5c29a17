// The loop structure of a convolution.
//
// A row of A is an output pixel, and its k runs over the taps. Nothing is copied: a tile is a few
// output pixels in a line, whose taps are a constant stride apart in the image, so the tile kernel
// reads them in place, one segment for each run of contiguous taps.
//
// Padding is skipped, so the pixels of a tile must see the same taps. The output falls into
// rectangles that do, and those at the left and right edge are tiled downward:
//
//   +--+--------+--+
//   |  |        |  |   top row: fewer ky
//   +--+--------+--+
//   |  |  all   |  |
//   |  |  taps  |  |   left and right: fewer kx
//   +--+--------+--+
#include <algorithm>
#include <type_traits>

#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/depthwise.h"
#include "tidemark/emit/contract/integer.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace {

using contraction::add_bytes;
using contraction::divide_up;
using contraction::kBlock;
using contraction::KernelSet;
using contraction::Segment;
using contraction::Taps;
using contraction::taps_inside;
using contraction::Tile;

constexpr int64_t kWideRows = 8;  // Output rows of one piece where inputs are widened first.

struct Blocking {
  int64_t channels = 0, outputs = 0, k = 0;  // Of one group.
  int64_t width = 0, panels = 0;             // Panels of one group.
  int64_t depth = 0;
  int64_t band_rows = 0, bands = 0;
  bool low_precision = false;
  bool copy_weight = false;
  bool serial = true;
  int64_t segment_limit = 0, block_limit = 0;
  int64_t wide_rows = 0;  // Input rows a band needs.
  int64_t segment_bytes = 0, panel_bytes = 0, in_bytes = 0, out_bytes = 0;

  int64_t worker_bytes() const { return segment_bytes + panel_bytes + in_bytes + out_bytes; }
  int64_t pieces(const Convolution& p) const { return p.groups * panels * p.n * bands; }
};

template <class T>
Blocking cut_up(const Convolution& p, int threads) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const int64_t size = sizeof(T);
  Blocking cut;
  cut.low_precision = is_low_precision(p.dtype);
  cut.channels = p.c_in / p.groups;
  cut.outputs = p.c_out / p.groups;
  cut.k = p.kh * p.kw * cut.channels;
  cut.width =
      std::min<int64_t>(kernels.max_vectors, divide_up(cut.outputs, kernels.lanes)) * kernels.lanes;
  cut.panels = divide_up(cut.outputs, cut.width);
  // Sums of low precision are wide only within a piece, so a piece takes all of k.
  cut.depth = cut.low_precision ? cut.k : contraction::panel_depth(cut.width * size, cut.k);
  cut.copy_weight = cut.low_precision || p.c_out > 2 * cut.width;
  const double work = static_cast<double>(p.n * p.out_h * p.out_w) * static_cast<double>(p.c_out) *
                      static_cast<double>(cut.k);
  cut.serial = threads == 1 || work < 1e6;
  const int64_t wanted = cut.serial ? 1 : 4 * threads;
  cut.bands = std::clamp<int64_t>(divide_up(wanted, p.groups * cut.panels * p.n), 1, p.out_h);
  cut.band_rows = divide_up(p.out_h, cut.bands);
  if (cut.low_precision) cut.band_rows = std::min(cut.band_rows, kWideRows);
  cut.bands = divide_up(p.out_h, cut.band_rows);
  cut.block_limit = divide_up(cut.depth, kBlock);
  cut.segment_limit = std::min(cut.depth, p.kh * p.kw + cut.block_limit + 1);
  cut.segment_bytes = add_bytes(cut.segment_limit * static_cast<int64_t>(sizeof(Segment))) +
                      add_bytes((cut.block_limit + 1) * static_cast<int64_t>(sizeof(int64_t)));
  if (cut.copy_weight) cut.panel_bytes = add_bytes(cut.width * cut.depth * size);
  if (cut.low_precision) {
    cut.wide_rows = std::min(p.h, (cut.band_rows - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1);
    cut.in_bytes = add_bytes(cut.wide_rows * p.w * cut.channels * size);
    cut.out_bytes = add_bytes(cut.band_rows * p.out_w * cut.width * size);
  }
  return cut;
}

struct Stretch {
  int64_t begin = 0, end = 0;
  Taps taps;
};

// The longest run of outputs from `begin` on that see the same taps.
Stretch next_stretch(const Convolution& p, bool vertical, int64_t begin, int64_t limit) {
  const auto inside = [&](int64_t at) {
    return vertical ? taps_inside(at, p.stride_h, p.pad_top, p.dilation_h, p.kh, p.h)
                    : taps_inside(at, p.stride_w, p.pad_left, p.dilation_w, p.kw, p.w);
  };
  Stretch stretch{begin, begin + 1, inside(begin)};
  while (stretch.end < limit && inside(stretch.end) == stretch.taps) ++stretch.end;
  return stretch;
}

// The image as one worker reads it: in place, or a widened copy.
template <class T>
struct Image {
  const T* data;  // The address of row 0, which may lie outside the copy.
  int64_t row, pixel;
};

// The taps of each block of k, for one rectangle of outputs and one range of k.
struct Blocks {
  Segment* segments;
  int64_t* first;  // Block b is segments [first[b], first[b + 1]).
  int64_t count;

  void build(const Convolution& p, int64_t channels, int64_t row, int64_t pixel, int64_t weight_row,
             Taps ky, Taps kx, int64_t k_begin, int64_t k_end) {
    // Neighbouring taps of one row are one run if pixels are contiguous.
    const bool joined = p.dilation_w == 1 && pixel == channels;
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
      a += skip;
      k += skip;
      length = std::min(length - skip, k_end - k);
      while (length > 0) {
        close_blocks(k);
        const int64_t part = std::min(length, block_end - k);
        segments[used++] = {.a = a, .b = (k - k_begin) * weight_row, .length = part};
        a += part;
        k += part;
        length -= part;
      }
    };
    for (int64_t y = ky.begin; y < ky.end; ++y) {
      const int64_t a = y * p.dilation_h * row;
      if (joined) {
        add_run(a + kx.begin * pixel, (y * p.kw + kx.begin) * channels,
                (kx.end - kx.begin) * channels);
      } else {
        for (int64_t x = kx.begin; x < kx.end; ++x) {
          add_run(a + x * p.dilation_w * pixel, (y * p.kw + x) * channels, channels);
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
  const T* weight;
  int64_t weight_row;
  T* out;  // The address of output row 0 and pixel 0, which may lie outside the piece.
  int64_t out_row, out_pixel;
  int64_t columns;
  int64_t k_begin, k_end;
};

template <class T>
void run_rectangle(const Convolution& p, const KernelSet<T>& kernels, const Pass<T>& pass,
                   const Stretch& ys, const Stretch& xs, const Blocks& blocks) {
  const int64_t vectors = divide_up(pass.columns, kernels.lanes);
  const int64_t tallest = kernels.max_rows[vectors - 1];
  const int64_t height = ys.end - ys.begin, width = xs.end - xs.begin;
  const bool downward = width * divide_up(height, tallest) < height * divide_up(width, tallest);
  const int64_t lines = downward ? width : height;
  const auto split = contraction::split_rows(downward ? height : width, tallest);
  const int64_t across = p.stride_w * pass.image.pixel, down = p.stride_h * pass.image.row;
  const int64_t a_line = downward ? across : down,
                c_line = downward ? pass.out_pixel : pass.out_row;
  Tile<T> tile;
  tile.a_row = downward ? down : across;
  tile.a_next_row = tile.a_row;
  tile.c_row = downward ? pass.out_row : pass.out_pixel;
  tile.b = pass.weight;
  tile.b_step = pass.weight_row;
  tile.last_lanes = static_cast<int>(pass.columns - (vectors - 1) * kernels.lanes);
  const T* a = pass.image.data + (ys.begin * p.stride_h - p.pad_top) * pass.image.row +
               (xs.begin * p.stride_w - p.pad_left) * pass.image.pixel;
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

template <class T>
void run_band(const Convolution& p, const Blocking& cut, const KernelSet<T>& kernels,
              const Pass<T>& pass, int64_t y_begin, int64_t y_end, Blocks& blocks) {
  for (int64_t y = y_begin; y < y_end;) {
    const Stretch ys = next_stretch(p, true, y, y_end);
    for (int64_t x = 0; x < p.out_w;) {
      const Stretch xs = next_stretch(p, false, x, p.out_w);
      blocks.build(p, cut.channels, pass.image.row, pass.image.pixel, pass.weight_row, ys.taps,
                   xs.taps, pass.k_begin, pass.k_end);
      run_rectangle(p, kernels, pass, ys, xs, blocks);
      x = xs.end;
    }
    y = ys.end;
  }
}

template <class T>
class Worker {
 public:
  Worker(const Convolution& p, const Blocking& cut, std::byte* scratch)
      : p_(p), cut_(cut), kernels_(contraction::kernel_set<T>()) {
    blocks_.segments = reinterpret_cast<Segment*>(scratch);
    blocks_.first = reinterpret_cast<int64_t*>(
        scratch + add_bytes(cut.segment_limit * static_cast<int64_t>(sizeof(Segment))));
    scratch += cut.segment_bytes;
    panel_ = reinterpret_cast<T*>(scratch);
    wide_in_ = reinterpret_cast<T*>(scratch + cut.panel_bytes);
    wide_out_ = reinterpret_cast<T*>(scratch + cut.panel_bytes + cut.in_bytes);
  }

  // Pieces are ordered by panel first: a panel is packed once for all images that follow.
  void run(int64_t begin, int64_t end) {
    const int64_t per_panel = p_.n * cut_.bands;
    while (begin < end) {
      const int64_t panel = begin / per_panel;
      const int64_t stop = std::min(end, (panel + 1) * per_panel);
      for (int64_t k = 0; k < cut_.k; k += cut_.depth) {
        run_panel(panel, k, begin - panel * per_panel, stop - panel * per_panel);
      }
      begin = stop;
    }
  }

 private:
  void run_panel(int64_t panel, int64_t k, int64_t begin, int64_t end) {
    const int64_t element = size_of(p_.dtype);
    const int64_t group = panel / cut_.panels, column = panel % cut_.panels * cut_.width;
    const int64_t first_output = group * cut_.outputs + column;
    Pass<T> pass;
    pass.columns = std::min(cut_.width, cut_.outputs - column);
    pass.k_begin = k;
    pass.k_end = std::min(cut_.k, k + cut_.depth);
    const std::byte* weight = p_.weight + (k * p_.c_out + first_output) * element;
    if (cut_.copy_weight) {
      pass.weight_row = divide_up(pass.columns, kernels_.lanes) * kernels_.lanes;
      pass.weight = panel_;
      widen({.to = panel_,
             .to_row = pass.weight_row,
             .from = weight,
             .row_stride = p_.c_out,
             .column_stride = 1,
             .rows = pass.k_end - pass.k_begin,
             .columns = pass.columns,
             .padded_columns = pass.weight_row});
    } else {
      pass.weight = reinterpret_cast<const T*>(weight);
      pass.weight_row = p_.c_out;
    }
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t image = piece / cut_.bands, y = piece % cut_.bands * cut_.band_rows;
      const int64_t y_end = std::min(p_.out_h, y + cut_.band_rows);
      const std::byte* in = p_.in + (image * p_.in_n + group * cut_.channels) * element;
      std::byte* out = p_.out + (image * p_.out_h * p_.out_w * p_.c_out + first_output) * element;
      if (cut_.low_precision) {
        widen_input(pass, in, y, y_end);
        pass.out_pixel = cut_.width;
        pass.out_row = p_.out_w * cut_.width;
        pass.out = wide_out_ - y * pass.out_row;
        run_band(p_, cut_, kernels_, pass, y, y_end, blocks_);
        round_output(pass, out, y, y_end);
      } else {
        pass.image = {reinterpret_cast<const T*>(in), p_.in_h, p_.in_w};
        pass.out_pixel = p_.c_out;
        pass.out_row = p_.out_w * p_.c_out;
        pass.out = reinterpret_cast<T*>(out);
        run_band(p_, cut_, kernels_, pass, y, y_end, blocks_);
      }
    }
  }

  void widen(const contraction::BlockCopy<T>& block) {
    if constexpr (std::is_same_v<T, float>) {
      if (p_.dtype == DType::f16) return kernels_.copy_f16(block);
      if (p_.dtype == DType::bf16) return kernels_.copy_bf16(block);
    }
    kernels_.copy(block);
  }

  // The rows of the image that outputs [y, y_end) see, one group's channels.
  void widen_input(Pass<T>& pass, const std::byte* in, int64_t y, int64_t y_end) {
    const int64_t begin = std::clamp<int64_t>(y * p_.stride_h - p_.pad_top, 0, p_.h);
    const int64_t last = (y_end - 1) * p_.stride_h - p_.pad_top + (p_.kh - 1) * p_.dilation_h;
    const int64_t end = std::clamp<int64_t>(last + 1, begin, p_.h);
    const int64_t row = p_.w * cut_.channels;
    for (int64_t i = begin; i < end; ++i) {
      widen({.to = wide_in_ + (i - begin) * row,
             .to_row = cut_.channels,
             .from = in + i * p_.in_h * size_of(p_.dtype),
             .row_stride = p_.in_w,
             .column_stride = 1,
             .rows = p_.w,
             .columns = cut_.channels,
             .padded_columns = cut_.channels});
    }
    pass.image = {wide_in_ - begin * row, row, cut_.channels};
  }

  void round_output(const Pass<T>& pass, std::byte* out, int64_t y, int64_t y_end) {
    if constexpr (std::is_same_v<T, float>) {
      const auto round = p_.dtype == DType::f16 ? kernels_.round_f16 : kernels_.round_bf16;
      for (int64_t pixel = y * p_.out_w; pixel < y_end * p_.out_w; ++pixel) {
        round(pass.out + pixel * cut_.width,
              reinterpret_cast<uint16_t*>(out + pixel * p_.c_out * size_of(p_.dtype)),
              pass.columns);
      }
    }
  }

  const Convolution& p_;
  const Blocking& cut_;
  const KernelSet<T>& kernels_;
  Blocks blocks_{};
  T* panel_;
  T* wide_in_;
  T* wide_out_;
};

template <class T>
void run(const Convolution& p, int threads, std::byte* scratch) {
  const Blocking cut = cut_up<T>(p, threads);
  const auto work = [&](int64_t begin, int64_t end, int worker) {
    Worker<T>(p, cut, scratch + worker * cut.worker_bytes()).run(begin, end);
  };
  if (cut.serial) {
    work(0, cut.pieces(p), 0);
  } else {
    device::parallel_for(cut.pieces(p), 1, threads, work);
  }
}

// One tap, every pixel once, images without gaps: a product of matrices.
bool is_product(const Convolution& p) {
  return p.kh == 1 && p.kw == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_top == 0 &&
         p.pad_left == 0 && p.groups == 1 && p.out_h == p.h && p.out_w == p.w &&
         p.in_h == p.w * p.in_w && p.in_n == p.h * p.in_h;
}

Contraction product_of(const Convolution& p) {
  Contraction product;
  product.m = p.n * p.h * p.w;
  product.n = p.c_out;
  product.k = p.c_in;
  product.a = {const_cast<std::byte*>(p.in), p.dtype, p.in_w, 1};
  product.b = {const_cast<std::byte*>(p.weight), p.dtype, p.c_out, 1};
  product.c = {p.out, p.dtype, p.c_out, 1};
  return product;
}

int64_t out_count(const Convolution& p) { return p.n * p.out_h * p.out_w * p.c_out; }
bool has_no_terms(const Convolution& p) { return p.kh * p.kw * p.c_in == 0; }

}  // namespace

int64_t convolve_scratch_bytes(const Convolution& p, int threads) {
  if (out_count(p) == 0 || has_no_terms(p)) return 0;
  if (is_product(p)) return contract_scratch_bytes(product_of(p), threads);
  if (!contraction::has_tiles(p.dtype) || contraction::is_depthwise(p)) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  const Blocking cut =
      p.dtype == DType::f64 ? cut_up<double>(p, threads) : cut_up<float>(p, threads);
  return (cut.serial ? 1 : device::workers_of(cut.pieces(p), 1, threads)) * cut.worker_bytes();
}

void convolve(const Convolution& p, int threads, std::byte* scratch) {
  TIDEMARK_CHECK(p.dtype != DType::boolean, "convolve: no sums of bool");
  if (out_count(p) == 0) return;
  const device::FloatEnvironment environment;
  if (has_no_terms(p)) {
    std::fill_n(p.out, out_count(p) * size_of(p.dtype), std::byte{0});
    return;
  }
  if (is_product(p)) return contract(product_of(p), threads, scratch);
  if (contraction::is_depthwise(p)) return contraction::convolve_depthwise(p, threads);
  if (p.dtype == DType::f64) return run<double>(p, threads, scratch);
  if (is_float(p.dtype)) return run<float>(p, threads, scratch);
  if (contraction::is_whole32(p.dtype)) return run<int32_t>(p, threads, scratch);
  contraction::convolve_integers(p);
}

}  // namespace tidemark

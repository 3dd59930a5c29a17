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
//
// Frames are computed one by one. Where pixels are spread, outputs fall into phases that meet the
// same residue of taps: each is a convolution of pixels side by side, with fewer taps, whose
// outputs lie apart.
#include <algorithm>
#include <type_traits>

#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/depthwise.h"
#include "tidemark/emit/contract/few_outputs.h"
#include "tidemark/emit/contract/integer.h"
#include "tidemark/emit/contract/rectangles.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace {

using contraction::add_bytes;
using contraction::divide_up;
using contraction::kBlock;
using contraction::KernelSet;
using contraction::Pass;
using contraction::Phase;
using contraction::PhaseAxis;
using contraction::Segment;
using contraction::TapBlocks;

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
  int64_t wide_rows = 0;  // Input rows a band needs of a frame.
  int64_t segment_bytes = 0, panel_bytes = 0, in_bytes = 0, out_bytes = 0;

  int64_t worker_bytes() const { return segment_bytes + panel_bytes + in_bytes + out_bytes; }
  int64_t pieces(const Convolution& p, const Phase& phase) const {
    return p.groups * panels * p.n * phase.z.out * bands;
  }
};

template <class T>
Blocking cut_up(const Convolution& p, const Phase& phase, int threads) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const int64_t size = sizeof(T);
  Blocking cut;
  cut.low_precision = is_low_precision(p.dtype);
  cut.channels = p.c_in / p.groups;
  cut.outputs = p.c_out / p.groups;
  cut.k = p.kd * p.kh * p.kw * cut.channels;
  cut.width =
      std::min<int64_t>(kernels.max_vectors, divide_up(cut.outputs, kernels.lanes)) * kernels.lanes;
  cut.panels = divide_up(cut.outputs, cut.width);
  // Sums of low precision are wide only within a piece, so a piece takes all of k.
  cut.depth = cut.low_precision ? cut.k : contraction::panel_depth(cut.width * size, cut.k);
  cut.copy_weight = cut.low_precision || p.c_out > 2 * cut.width;
  const int64_t taps = phase.z.taps * phase.y.taps * phase.x.taps, frames = p.n * phase.z.out;
  const double work = static_cast<double>(frames * phase.y.out * phase.x.out) *
                      static_cast<double>(p.c_out) * static_cast<double>(taps * cut.channels);
  cut.serial = threads == 1 || work < 1e6;
  const int64_t wanted = cut.serial ? 1 : 4 * threads;
  cut.bands =
      std::clamp<int64_t>(divide_up(wanted, p.groups * cut.panels * frames), 1, phase.y.out);
  cut.band_rows = divide_up(phase.y.out, cut.bands);
  if (cut.low_precision) cut.band_rows = std::min(cut.band_rows, kWideRows);
  cut.bands = divide_up(phase.y.out, cut.band_rows);
  cut.block_limit = divide_up(cut.depth, kBlock);
  cut.segment_limit = std::min(cut.depth, taps + cut.block_limit + 1);
  cut.segment_bytes = add_bytes(cut.segment_limit * static_cast<int64_t>(sizeof(Segment))) +
                      add_bytes((cut.block_limit + 1) * static_cast<int64_t>(sizeof(int64_t)));
  if (cut.copy_weight) cut.panel_bytes = add_bytes(cut.width * cut.depth * size);
  if (cut.low_precision) {
    const PhaseAxis& y = phase.y;
    cut.wide_rows =
        std::clamp<int64_t>((cut.band_rows - 1) * y.stride + (y.taps - 1) * y.dilation + 1, 0, p.h);
    const int64_t seen = std::min(p.d, phase.z.taps);
    cut.in_bytes = add_bytes(seen * cut.wide_rows * p.w * cut.channels * size);
    cut.out_bytes = add_bytes(cut.band_rows * phase.x.out * cut.width * size);
  }
  return cut;
}

template <class T>
class Worker {
 public:
  Worker(const Convolution& p, const Phase& phase, const Blocking& cut, std::byte* scratch)
      : p_(p), phase_(phase), cut_(cut), kernels_(contraction::kernel_set<T>()) {
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
    const int64_t per_panel = p_.n * phase_.z.out * cut_.bands;
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
      const int64_t y = piece % cut_.bands * cut_.band_rows;
      const int64_t image = piece / cut_.bands / phase_.z.out,
                    z = piece / cut_.bands % phase_.z.out;
      run_piece(pass, group, first_output, {image, z, y});
    }
  }

  struct Place {
    int64_t image, z, y;
  };
  void run_piece(Pass<T>& pass, int64_t group, int64_t first_output, Place at) {
    const int64_t element = size_of(p_.dtype);
    const int64_t y_end = std::min(phase_.y.out, at.y + cut_.band_rows);
    pass.kz = phase_.z.taps_at(at.z);
    const int64_t frame = at.z * phase_.z.stride - phase_.z.pad;
    const std::byte* in =
        p_.in + (at.image * p_.in_n + frame * p_.in_d + group * cut_.channels) * element;
    std::byte* out = p_.out + (output_pixel(at) * p_.c_out + first_output) * element;
    const int64_t out_row = phase_.y.out_step * p_.out_w, out_pixel = phase_.x.out_step;
    if (cut_.low_precision) {
      widen_input(pass, in, at.y, y_end);
      pass.out_pixel = cut_.width;
      pass.out_row = phase_.x.out * cut_.width;
      pass.out = wide_out_ - at.y * pass.out_row;
      run_band(p_, phase_, kernels_, pass, at.y, y_end, blocks_);
      for (int64_t y = at.y; y < y_end; ++y)
        for (int64_t x = 0; x < phase_.x.out; ++x)
          round_output(pass, y * pass.out_row + x * pass.out_pixel,
                       out + (y * out_row + x * out_pixel) * p_.c_out * element);
    } else {
      const int64_t step = phase_.z.dilation * p_.in_d;
      pass.image = {reinterpret_cast<const T*>(in), step, p_.in_h, p_.in_w};
      pass.out_pixel = out_pixel * p_.c_out;
      pass.out_row = out_row * p_.c_out;
      pass.out = reinterpret_cast<T*>(out);
      run_band(p_, phase_, kernels_, pass, at.y, y_end, blocks_);
    }
  }
  // The first pixel of the phase in the frame of a place.
  int64_t output_pixel(Place at) const {
    const int64_t z = phase_.z.first_out + at.z * phase_.z.out_step;
    return ((at.image * p_.out_d + z) * p_.out_h + phase_.y.first_out) * p_.out_w +
           phase_.x.first_out;
  }

  void widen(const contraction::BlockCopy<T>& block) {
    if constexpr (std::is_same_v<T, float>) {
      if (p_.dtype == DType::f16) return kernels_.copy_f16(block);
      if (p_.dtype == DType::bf16) return kernels_.copy_bf16(block);
    }
    kernels_.copy(block);
  }

  // The rows of the frames that outputs [y, y_end) see, one group's channels.
  void widen_input(Pass<T>& pass, const std::byte* in, int64_t y, int64_t y_end) {
    const PhaseAxis& axis = phase_.y;
    const int64_t begin = std::clamp<int64_t>(y * axis.stride - axis.pad, 0, p_.h);
    const int64_t last = (y_end - 1) * axis.stride - axis.pad + (axis.taps - 1) * axis.dilation;
    const int64_t end = std::clamp<int64_t>(last + 1, begin, p_.h);
    const int64_t row = p_.w * cut_.channels, frame = cut_.wide_rows * row;
    for (int64_t z = pass.kz.begin; z < pass.kz.end; ++z) {
      const int64_t from = z * phase_.z.dilation * p_.in_d;
      for (int64_t i = begin; i < end; ++i) {
        widen({.to = wide_in_ + (z - pass.kz.begin) * frame + (i - begin) * row,
               .to_row = cut_.channels,
               .from = in + (from + i * p_.in_h) * size_of(p_.dtype),
               .row_stride = p_.in_w,
               .column_stride = 1,
               .rows = p_.w,
               .columns = cut_.channels,
               .padded_columns = cut_.channels});
      }
    }
    pass.image = {wide_in_ - pass.kz.begin * frame - begin * row, frame, row, cut_.channels};
  }

  void round_output(const Pass<T>& pass, int64_t from, std::byte* to) {
    if constexpr (std::is_same_v<T, float>) {
      const auto round = p_.dtype == DType::f16 ? kernels_.round_f16 : kernels_.round_bf16;
      round(pass.out + from, reinterpret_cast<uint16_t*>(to), pass.columns);
    }
  }

  const Convolution& p_;
  const Phase& phase_;
  const Blocking& cut_;
  const KernelSet<T>& kernels_;
  TapBlocks blocks_{};
  T* panel_;
  T* wide_in_;
  T* wide_out_;
};

template <class T>
void run(const Convolution& p, int threads, std::byte* scratch) {
  contraction::for_each_phase(p, [&](const Phase& phase) {
    const Blocking cut = cut_up<T>(p, phase, threads);
    const int64_t pieces = cut.pieces(p, phase);
    const auto work = [&](int64_t begin, int64_t end, int worker) {
      Worker<T>(p, phase, cut, scratch + worker * cut.worker_bytes()).run(begin, end);
    };
    if (cut.serial)
      work(0, pieces, 0);
    else
      device::parallel_for(pieces, 1, threads, work);
  });
}

// Phases are computed one after another, in the same scratch.
template <class T>
int64_t scratch_bytes(const Convolution& p, int threads) {
  int64_t most = 0;
  contraction::for_each_phase(p, [&](const Phase& phase) {
    const Blocking cut = cut_up<T>(p, phase, threads);
    const int workers = cut.serial ? 1 : device::workers_of(cut.pieces(p, phase), 1, threads);
    most = std::max(most, workers * cut.worker_bytes());
  });
  return most;
}

// One tap, every pixel once, images without gaps: a product of matrices.
bool is_product(const Convolution& p) {
  const bool frames = p.kd == 1 && p.stride_d == 1 && p.pad_front == 0 && p.out_d == p.d &&
                      (p.d == 1 || p.in_d == p.h * p.in_h);
  return frames && p.kh == 1 && p.kw == 1 && p.stride_h == 1 && p.stride_w == 1 &&
         p.spread_d * p.spread_h * p.spread_w == 1 && p.pad_top == 0 && p.pad_left == 0 &&
         p.groups == 1 && p.out_h == p.h && p.out_w == p.w && p.in_h == p.w * p.in_w &&
         p.in_n == p.d * p.h * p.in_h;
}

Contraction product_of(const Convolution& p) {
  Contraction product;
  product.m = p.n * p.d * p.h * p.w;
  product.n = p.c_out;
  product.k = p.c_in;
  product.a = {const_cast<std::byte*>(p.in), p.dtype, p.in_w, 1};
  product.b = {const_cast<std::byte*>(p.weight), p.dtype, p.c_out, 1};
  product.c = {p.out, p.dtype, p.c_out, 1};
  return product;
}

int64_t out_count(const Convolution& p) { return p.n * p.out_d * p.out_h * p.out_w * p.c_out; }
bool has_no_terms(const Convolution& p) { return p.kd * p.kh * p.kw * p.c_in == 0; }

}  // namespace

int64_t convolve_scratch_bytes(const Convolution& p, int threads) {
  if (out_count(p) == 0 || has_no_terms(p)) return 0;
  if (is_product(p)) return contract_scratch_bytes(product_of(p), threads);
  if (!contraction::has_tiles(p.dtype) || contraction::is_depthwise(p)) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  if (contraction::has_few_outputs(p)) return contraction::few_outputs_scratch_bytes(p, threads);
  return p.dtype == DType::f64 ? scratch_bytes<double>(p, threads)
                               : scratch_bytes<float>(p, threads);
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
  if (contraction::has_few_outputs(p))
    return contraction::convolve_few_outputs(p, threads, scratch);
  if (p.dtype == DType::f64) return run<double>(p, threads, scratch);
  if (is_float(p.dtype)) return run<float>(p, threads, scratch);
  if (contraction::is_whole32(p.dtype)) return run<int32_t>(p, threads, scratch);
  contraction::convolve_integers(p);
}

}  // namespace tidemark

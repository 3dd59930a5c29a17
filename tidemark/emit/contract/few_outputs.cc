// The loop structure of a convolution with few outputs.
//
// Lanes of a tile are outputs elsewhere; here most of them would be idle, so they are pixels of a
// row, and a row of A is an output. For that the rows of the image that a band of rows of outputs
// sees are copied with the pixels of each channel side by side. All phases of a band share the
// copy. The left and right edges, too narrow to be lanes, are computed as elsewhere.
#include "tidemark/emit/contract/few_outputs.h"

#include <algorithm>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/rectangles.h"
#include "tidemark/emit/contract/taps.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark::contraction {
namespace {

// Rows [begin, end) of the image.
struct Rows {
  int64_t begin, end;
};

// What outputs [first, last) of every phase see, inside the image or not.
Rows rows_seen(const Convolution& p, int64_t first, int64_t last) {
  Rows rows{p.h, 0};
  for_each_phase(y_axis(p), [&](const PhaseAxis& y) {
    rows.begin = std::min(rows.begin, first * y.stride - y.pad);
    rows.end = std::max(rows.end, (last - 1) * y.stride - y.pad + (y.taps - 1) * y.dilation + 1);
  });
  return rows;
}
int64_t count_seen(const Convolution& p, int64_t outputs) {
  const Rows rows = rows_seen(p, 0, outputs);
  return std::clamp<int64_t>(rows.end - rows.begin, 0, p.h);
}

// How the frames of one phase are computed. A piece is a band of rows of each phase of them.
struct Cut {
  int64_t pixels_row = 0;  // From one channel of a row of pixels to the next, and from one output
  int64_t sums_row = 0;    // of a row of sums to the next: whole vectors.
  int64_t seen_frames = 0, seen_rows = 0;
  int64_t rows = 0, band_rows = 0, bands = 0;  // Of each phase.
  bool serial = true;
  int64_t segment_bytes = 0, block_bytes = 0, pixel_bytes = 0, sum_bytes = 0;

  int64_t worker_bytes() const { return segment_bytes + block_bytes + pixel_bytes + sum_bytes; }
};

template <class T>
Cut cut_up(const Convolution& p, const PhaseAxis& z, int threads) {
  const int64_t lanes = kernel_set<T>().lanes, size = sizeof(T);
  Cut cut;
  cut.rows = divide_up(p.out_h, y_axis(p).phases());
  // A vector may begin at any pixel, and end beyond the row.
  cut.pixels_row = (divide_up(p.w, lanes) + 1) * lanes;
  cut.sums_row = divide_up(x_axis(p).phase(0).out, lanes) * lanes;
  cut.seen_frames = std::min(p.d, z.taps);
  const int64_t taps = z.taps * p.kh * p.kw,
                blocks = divide_up(p.kd * p.kh * p.kw * p.c_in, kBlock);
  const double work = static_cast<double>(p.n * z.out * p.out_h * p.out_w) *
                      static_cast<double>(p.c_in * p.c_out * taps);
  cut.serial = threads == 1 || work < 1e6;
  const int64_t wanted = cut.serial ? 1 : divide_up(4 * threads, p.n * z.out);
  cut.band_rows = divide_up(cut.rows, std::min(cut.rows, wanted));
  // What a band sees stays in half of the L2 cache.
  const int64_t row_bytes = std::max<int64_t>(1, cut.seen_frames) * p.c_in * cut.pixels_row * size;
  const int64_t most = device::caches().l2_bytes / 2 / row_bytes;
  while (cut.band_rows > 1 && count_seen(p, cut.band_rows) > most) --cut.band_rows;
  cut.bands = divide_up(cut.rows, cut.band_rows);
  cut.seen_rows = count_seen(p, cut.band_rows);
  cut.segment_bytes = add_bytes((taps + blocks + 1) * static_cast<int64_t>(sizeof(Segment)));
  cut.block_bytes = add_bytes((blocks + 1) * static_cast<int64_t>(sizeof(int64_t)));
  cut.pixel_bytes = add_bytes(cut.seen_frames * cut.seen_rows * p.c_in * cut.pixels_row * size);
  cut.sum_bytes = add_bytes(p.c_out * cut.sums_row * size);
  return cut;
}

template <class T>
class Worker {
 public:
  Worker(const Convolution& p, const PhaseAxis& z, const Cut& cut, std::byte* scratch)
      : p_(p), z_(z), cut_(cut), kernels_(kernel_set<T>()) {
    blocks_.segments = reinterpret_cast<Segment*>(scratch);
    blocks_.first = reinterpret_cast<int64_t*>(scratch += cut.segment_bytes);
    pixels_ = reinterpret_cast<T*>(scratch += cut.block_bytes);
    pass_.sums = reinterpret_cast<T*>(scratch + cut.pixel_bytes);
    pass_.sums_row = cut.sums_row;
    pass_.weight = reinterpret_cast<const T*>(p.weight);
    pass_.weight_row = pass_.columns = p.c_out;
    pass_.k_begin = 0;
    pass_.k_end = p.kd * p.kh * p.kw * p.c_in;
  }

  void run(int64_t piece) {
    const int64_t first = piece % cut_.bands * cut_.band_rows;
    const int64_t frame = piece / cut_.bands, image = frame / z_.out, z = frame % z_.out;
    const T* const in =
        reinterpret_cast<const T*>(p_.in) + image * p_.in_n + (z * z_.stride - z_.pad) * p_.in_d;
    const int64_t out_frame = image * p_.out_d + z_.first_out + z * z_.out_step;
    pass_.kz = z_.taps_at(z);
    pass_.image = {in, z_.dilation * p_.in_d, p_.in_h, p_.in_w};
    copy_pixels(first);
    for_each_phase(p_, z_, [&](const Phase& phase) {
      const int64_t end = std::min(phase.y.out, first + cut_.band_rows);
      const int64_t pixel =
          (out_frame * p_.out_h + phase.y.first_out) * p_.out_w + phase.x.first_out;
      pass_.out = reinterpret_cast<T*>(p_.out) + pixel * p_.c_out;
      pass_.out_row = phase.y.out_step * p_.out_w * p_.c_out;
      pass_.out_pixel = phase.x.out_step * p_.c_out;
      run_band(p_, phase, kernels_, pass_, first, end, blocks_);
    });
  }

 private:
  // Of what the band that begins with this row sees.
  void copy_pixels(int64_t first) {
    const Rows seen = rows_seen(p_, first, std::min(cut_.rows, first + cut_.band_rows));
    const Rows rows{std::max<int64_t>(0, seen.begin), std::min(p_.h, seen.end)};
    const int64_t row = p_.c_in * cut_.pixels_row, frame = cut_.seen_rows * row;
    for (int64_t z = pass_.kz.begin; z < pass_.kz.end; ++z) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        kernels_.copy({.to = pixels_ + (z - pass_.kz.begin) * frame + (y - rows.begin) * row,
                       .to_row = cut_.pixels_row,
                       .from = pass_.image.data + z * pass_.image.frame + y * pass_.image.row,
                       .row_stride = 1,
                       .column_stride = p_.in_w,
                       .rows = p_.c_in,
                       .columns = p_.w,
                       .padded_columns = cut_.pixels_row});
      }
    }
    pass_.turned = {pixels_ - pass_.kz.begin * frame - rows.begin * row, frame, row, 1,
                    cut_.pixels_row};
  }

  const Convolution& p_;
  const PhaseAxis& z_;
  const Cut& cut_;
  const KernelSet<T>& kernels_;
  TapBlocks blocks_{};
  T* pixels_;
  Pass<T> pass_;
};

template <class T>
void run(const Convolution& p, int threads, std::byte* scratch) {
  for_each_phase(z_axis(p), [&](const PhaseAxis& z) {
    const Cut cut = cut_up<T>(p, z, threads);
    const int64_t pieces = p.n * z.out * cut.bands;
    const auto work = [&](int64_t begin, int64_t end, int number) {
      Worker<T> worker(p, z, cut, scratch + number * cut.worker_bytes());
      for (int64_t piece = begin; piece < end; ++piece) worker.run(piece);
    };
    if (cut.serial) {
      work(0, pieces, 0);
    } else {
      device::parallel_for(pieces, 1, threads, work);
    }
  });
}

template <class T>
int64_t scratch_bytes(const Convolution& p, int threads) {
  int64_t most = 0;
  for_each_phase(z_axis(p), [&](const PhaseAxis& z) {
    const Cut cut = cut_up<T>(p, z, threads);
    const int64_t pieces = p.n * z.out * cut.bands;
    const int workers = cut.serial ? 1 : device::workers_of(pieces, 1, threads);
    most = std::max(most, workers * cut.worker_bytes());
  });
  return most;
}

}  // namespace

// A row of pixels fills vectors, is read by several taps, and is not read with strides.
bool has_few_outputs(const Convolution& p) {
  if (!has_tiles(p.dtype) || is_low_precision(p.dtype) || p.groups > 1) return false;
  const int64_t lanes =
      p.dtype == DType::f64 ? kernel_set<double>().lanes : kernel_set<float>().lanes;
  const WholeAxis x = x_axis(p);
  return 2 * p.c_out <= lanes && p.c_in >= kPrefetchSteps && p.kw > 1 &&
         p.out_w >= 2 * lanes * x.phases() && x.phase(0).stride == 1;
}

int64_t few_outputs_scratch_bytes(const Convolution& p, int threads) {
  return p.dtype == DType::f64 ? scratch_bytes<double>(p, threads)
                               : scratch_bytes<float>(p, threads);
}

void convolve_few_outputs(const Convolution& p, int threads, std::byte* scratch) {
  if (p.dtype == DType::f64) return run<double>(p, threads, scratch);
  if (is_float(p.dtype)) return run<float>(p, threads, scratch);
  run<int32_t>(p, threads, scratch);
}

}  // namespace tidemark::contraction

// Distances between points, and their slopes, which are sums of weighted differences. As in a
// product, a tile of the result stays in registers over a block of k, and a panel of b is packed
// for many rows of a; its signs are turned, so that a difference is a sum. Differences are taken as
// they are: the shorter way by products of the points loses all digits where points are close.
#include <algorithm>
#include <cmath>

#include "tidemark/base/error.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace {

using contraction::add_bytes;
using contraction::BlockCopy;
using contraction::DifferenceTile;
using contraction::DistanceTile;
using contraction::divide_up;
using contraction::kBlock;
using contraction::kDifferenceRows;
using contraction::kDistanceRows;
using contraction::kernel_set;
using contraction::KernelSet;

// Distances, or weighted differences: these have `from`.
struct Work {
  const Contraction& of;
  const MatrixRef* from = nullptr;
  Batch from_batch = {};  // The axes of `from` stand for those of all operands.

  int64_t tile_rows() const { return from == nullptr ? kDistanceRows : kDifferenceRows; }
};

// A piece is a panel of columns times a band of rows.
struct Cut {
  int64_t width = 0, panels = 0;
  int64_t band_rows = 0, bands = 0;
  bool serial = true;

  int64_t pieces(const Contraction& work) const { return work.batch.count() * panels * bands; }
};

template <class T>
Cut cut_up(const Work& all, int threads) {
  const Contraction& work = all.of;
  const KernelSet<T>& kernels = kernel_set<T>();
  Cut cut;
  cut.width =
      std::min<int64_t>(kernels.max_vectors, divide_up(work.n, kernels.lanes)) * kernels.lanes;
  cut.panels = divide_up(work.n, cut.width);
  const double terms = static_cast<double>(work.m) * static_cast<double>(work.n) *
                       static_cast<double>(work.k) * static_cast<double>(work.batch.count());
  cut.serial = threads == 1 || terms < 1e6;
  const int64_t wanted = cut.serial ? 1 : 4 * threads;
  const int64_t bands = divide_up(wanted, work.batch.count() * cut.panels);
  cut.band_rows = divide_up(divide_up(work.m, bands), all.tile_rows()) * all.tile_rows();
  cut.bands = divide_up(work.m, cut.band_rows);
  return cut;
}

template <class T>
int64_t panel_bytes(const Contraction& work, const Cut& cut) {
  return add_bytes(cut.width * std::min(work.k, kBlock) * static_cast<int64_t>(sizeof(T)));
}
// A panel, and the rows of `from` of a tile.
template <class T>
int64_t worker_bytes(const Work& work, const Cut& cut) {
  const int64_t rows = work.from == nullptr ? 0 : kDifferenceRows;
  return panel_bytes<T>(work.of, cut) +
         add_bytes(cut.width * rows * static_cast<int64_t>(sizeof(T)));
}

template <class T>
class Piece {
 public:
  Piece(const Work& work, const Cut& cut, int64_t piece, std::byte* scratch)
      : work_(work.of),
        all_(work),
        panel_(reinterpret_cast<T*>(scratch)),
        from_(reinterpret_cast<T*>(scratch + panel_bytes<T>(work.of, cut))),
        column_(piece / cut.bands % cut.panels * cut.width),
        columns_(std::min(cut.width, work_.n - column_)),
        first_row_(piece % cut.bands * cut.band_rows),
        end_row_(std::min(work_.m, first_row_ + cut.band_rows)),
        entry_(piece / cut.bands / cut.panels),
        offsets_(work_.batch.at(entry_)) {}

  void run() const {
    for (int64_t k = 0; k < work_.k; k += kBlock) add_block(k);
    if (all_.from != nullptr) return;
    for (int64_t row = first_row_; row < end_row_; ++row) take_roots(at(row));
  }

 private:
  T* at(int64_t row) const {
    return reinterpret_cast<T*>(work_.c.data) + offsets_.c + row * work_.c.row_stride + column_;
  }
  void add_block(int64_t k) const {
    const int64_t vectors = divide_up(columns_, kernels_.lanes),
                  steps = std::min(kBlock, work_.k - k);
    pack(k, steps, vectors * kernels_.lanes);
    DifferenceTile<T> tile{
        .of = {.a_row = work_.a.row_stride,
               .a_step = work_.a.column_stride,
               .b = panel_,
               .c_row = work_.c.row_stride,
               .k = steps,
               .last_lanes = static_cast<int>(columns_ - (vectors - 1) * kernels_.lanes),
               .add = k > 0},
        .from = from_};
    const T* const a = reinterpret_cast<const T*>(work_.a.data) + offsets_.a + k * tile.of.a_step;
    for (int64_t row = first_row_; row < end_row_;) {
      const bool whole = row + all_.tile_rows() <= end_row_;
      const int64_t rows = whole ? all_.tile_rows() : 1;
      tile.of.a = a + row * tile.of.a_row;
      tile.of.c = at(row);
      if (all_.from == nullptr) {
        (whole ? kernels_.distances : kernels_.distances_of_row)[vectors - 1](tile.of);
      } else {
        pack_from(row, rows, vectors * kernels_.lanes);
        (whole ? kernels_.differences : kernels_.differences_of_row)[vectors - 1](tile);
      }
      row += rows;
    }
  }
  void pack(int64_t k, int64_t steps, int64_t width) const {
    const MatrixRef& b = work_.b;
    const T* const data = reinterpret_cast<const T*>(b.data) + offsets_.b;
    copy(data + k * b.row_stride, b, steps, width, panel_);
    for (int64_t i = 0; i < steps * width; ++i) panel_[i] = -panel_[i];
  }
  void pack_from(int64_t row, int64_t rows, int64_t width) const {
    const MatrixRef& from = *all_.from;
    const T* const data = reinterpret_cast<const T*>(from.data) + all_.from_batch.at(entry_).a;
    copy(data + row * from.row_stride, from, rows, width, from_);
  }
  // Rows of this panel's columns, which begin at `data`.
  void copy(const T* data, const MatrixRef& matrix, int64_t rows, int64_t width, T* to) const {
    kernels_.copy(BlockCopy<T>{.to = to,
                               .to_row = width,
                               .from = data + column_ * matrix.column_stride,
                               .row_stride = matrix.row_stride,
                               .column_stride = matrix.column_stride,
                               .rows = rows,
                               .columns = columns_,
                               .padded_columns = width});
  }
  void take_roots(T* row) const {
    for (int64_t i = 0; i < columns_; ++i) row[i] = std::sqrt(row[i]);
  }

  const Contraction& work_;
  const Work& all_;
  const KernelSet<T>& kernels_ = kernel_set<T>();
  T *panel_, *from_;
  int64_t column_, columns_, first_row_, end_row_, entry_;
  Batch::Offsets offsets_;
};

template <class T>
void run(const Work& work, int threads, std::byte* scratch) {
  const Cut cut = cut_up<T>(work, threads);
  const int64_t bytes = worker_bytes<T>(work, cut), pieces = cut.pieces(work.of);
  const auto some = [&](int64_t begin, int64_t end, int worker) {
    for (int64_t piece = begin; piece < end; ++piece)
      Piece<T>(work, cut, piece, scratch + worker * bytes).run();
  };
  if (cut.serial)
    some(0, pieces, 0);
  else
    device::parallel_for(pieces, 1, threads, some);
}

template <class T>
int64_t scratch_bytes(const Work& work, int threads) {
  const Cut cut = cut_up<T>(work, threads);
  const int workers = cut.serial ? 1 : device::workers_of(cut.pieces(work.of), 1, threads);
  return workers * worker_bytes<T>(work, cut);
}

bool is_empty(const Contraction& work) {
  return work.m == 0 || work.n == 0 || work.batch.count() == 0;
}

template <class T>
void fill_zero(const Contraction& work) {
  for (int64_t entry = 0; entry < work.batch.count(); ++entry) {
    T* const c = reinterpret_cast<T*>(work.c.data) + work.batch.at(entry).c;
    for (int64_t row = 0; row < work.m; ++row)
      std::fill_n(c + row * work.c.row_stride, work.n, T{0});
  }
}

int64_t scratch_bytes_of(const Work& work, int threads) {
  if (is_empty(work.of) || work.of.k == 0) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  return work.of.c.dtype == DType::f64 ? scratch_bytes<double>(work, threads)
                                       : scratch_bytes<float>(work, threads);
}
void run_work(const Work& work, int threads, std::byte* scratch) {
  const DType dtype = work.of.c.dtype;
  TIDEMARK_CHECK(dtype == DType::f32 || dtype == DType::f64, "differences of points: ", dtype);
  if (is_empty(work.of)) return;
  const bool wide = dtype == DType::f64;
  if (work.of.k == 0) return wide ? fill_zero<double>(work.of) : fill_zero<float>(work.of);
  const device::FloatEnvironment environment;
  if (wide) return run<double>(work, threads, scratch);
  run<float>(work, threads, scratch);
}

Work work_of(const WeightedDifferences& given) {
  const Batch::Axes& axes = given.from_batch;
  return {
      given.of, &given.from, {.extents = given.of.batch.extents, .a = axes, .b = axes, .c = axes}};
}

}  // namespace

int64_t distances_scratch_bytes(const Contraction& work, int threads) {
  return scratch_bytes_of({work}, threads);
}
void distances(const Contraction& work, int threads, std::byte* scratch) {
  run_work({work}, threads, scratch);
}
int64_t weighted_differences_scratch_bytes(const WeightedDifferences& work, int threads) {
  return scratch_bytes_of(work_of(work), threads);
}
void weighted_differences(const WeightedDifferences& work, int threads, std::byte* scratch) {
  run_work(work_of(work), threads, scratch);
}

}  // namespace tidemark

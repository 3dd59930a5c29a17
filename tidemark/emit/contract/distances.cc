// Distances between points. As in a product, a tile of the result stays in registers over a block
// of k, and a panel of b is packed for many rows of a; its signs are turned, so that a difference
// is a sum. Differences are squared as they are: the shorter way by products of the points loses
// all digits where points are close.
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
using contraction::DistanceTile;
using contraction::divide_up;
using contraction::kBlock;
using contraction::kDistanceRows;
using contraction::kernel_set;
using contraction::KernelSet;

// A piece is a panel of columns times a band of rows.
struct Cut {
  int64_t width = 0, panels = 0;
  int64_t band_rows = 0, bands = 0;
  bool serial = true;

  int64_t pieces(const Contraction& work) const { return work.batch.count() * panels * bands; }
};

template <class T>
Cut cut_up(const Contraction& work, int threads) {
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
  cut.band_rows = divide_up(divide_up(work.m, bands), kDistanceRows) * kDistanceRows;
  cut.bands = divide_up(work.m, cut.band_rows);
  return cut;
}

template <class T>
int64_t panel_bytes(const Contraction& work, const Cut& cut) {
  return add_bytes(cut.width * std::min(work.k, kBlock) * static_cast<int64_t>(sizeof(T)));
}

template <class T>
class Piece {
 public:
  Piece(const Contraction& work, const Cut& cut, int64_t piece, std::byte* panel)
      : work_(work),
        panel_(reinterpret_cast<T*>(panel)),
        column_(piece / cut.bands % cut.panels * cut.width),
        columns_(std::min(cut.width, work.n - column_)),
        first_row_(piece % cut.bands * cut.band_rows),
        end_row_(std::min(work.m, first_row_ + cut.band_rows)),
        offsets_(work.batch.at(piece / cut.bands / cut.panels)) {}

  void run() const {
    for (int64_t k = 0; k < work_.k; k += kBlock) add_block(k);
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
    DistanceTile<T> tile{.a_row = work_.a.row_stride,
                         .a_step = work_.a.column_stride,
                         .b = panel_,
                         .c_row = work_.c.row_stride,
                         .k = steps,
                         .last_lanes = static_cast<int>(columns_ - (vectors - 1) * kernels_.lanes),
                         .add = k > 0};
    const T* const a = reinterpret_cast<const T*>(work_.a.data) + offsets_.a + k * tile.a_step;
    for (int64_t row = first_row_; row < end_row_;) {
      const bool whole = row + kDistanceRows <= end_row_;
      tile.a = a + row * tile.a_row;
      tile.c = at(row);
      (whole ? kernels_.distances : kernels_.distances_of_row)[vectors - 1](tile);
      row += whole ? kDistanceRows : 1;
    }
  }
  void pack(int64_t k, int64_t steps, int64_t width) const {
    const MatrixRef& b = work_.b;
    const T* const from = reinterpret_cast<const T*>(b.data) + offsets_.b;
    kernels_.copy(BlockCopy<T>{.to = panel_,
                               .to_row = width,
                               .from = from + k * b.row_stride + column_ * b.column_stride,
                               .row_stride = b.row_stride,
                               .column_stride = b.column_stride,
                               .rows = steps,
                               .columns = columns_,
                               .padded_columns = width});
    for (int64_t i = 0; i < steps * width; ++i) panel_[i] = -panel_[i];
  }
  void take_roots(T* row) const {
    for (int64_t i = 0; i < columns_; ++i) row[i] = std::sqrt(row[i]);
  }

  const Contraction& work_;
  const KernelSet<T>& kernels_ = kernel_set<T>();
  T* panel_;
  int64_t column_, columns_, first_row_, end_row_;
  Batch::Offsets offsets_;
};

template <class T>
void run(const Contraction& work, int threads, std::byte* scratch) {
  const Cut cut = cut_up<T>(work, threads);
  const int64_t bytes = panel_bytes<T>(work, cut);
  const auto some = [&](int64_t begin, int64_t end, int worker) {
    for (int64_t piece = begin; piece < end; ++piece)
      Piece<T>(work, cut, piece, scratch + worker * bytes).run();
  };
  if (cut.serial)
    some(0, cut.pieces(work), 0);
  else
    device::parallel_for(cut.pieces(work), 1, threads, some);
}

template <class T>
int64_t scratch_bytes(const Contraction& work, int threads) {
  const Cut cut = cut_up<T>(work, threads);
  const int workers = cut.serial ? 1 : device::workers_of(cut.pieces(work), 1, threads);
  return workers * panel_bytes<T>(work, cut);
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

}  // namespace

int64_t distances_scratch_bytes(const Contraction& work, int threads) {
  if (is_empty(work) || work.k == 0) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  return work.c.dtype == DType::f64 ? scratch_bytes<double>(work, threads)
                                    : scratch_bytes<float>(work, threads);
}

void distances(const Contraction& work, int threads, std::byte* scratch) {
  TIDEMARK_CHECK(work.c.dtype == DType::f32 || work.c.dtype == DType::f64,
                 "distances: ", work.c.dtype);
  if (is_empty(work)) return;
  const bool wide = work.c.dtype == DType::f64;
  if (work.k == 0) return wide ? fill_zero<double>(work) : fill_zero<float>(work);
  const device::FloatEnvironment environment;
  if (wide) return run<double>(work, threads, scratch);
  run<float>(work, threads, scratch);
}

}  // namespace tidemark

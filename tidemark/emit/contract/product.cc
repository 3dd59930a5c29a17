// The loop structure of a matrix product.
//
// Columns are cut into panels as wide as a tile. One panel of B, `depth` rows deep, stays in the L2
// cache while every tile of rows uses it; A is streamed at a few bytes a cycle, and a tile of C is
// finished over the whole depth while it is in the L1 cache. If B is row-major, the first tile
// writes the packed copy as it reads B, so that packing needs no extra pass. Depth is a multiple of
// the block of k, so it does not affect the result.
//
// Narrow tiles read A and B more often for each fma. Where the L1 cache has too few ways for that,
// a panel is only so deep that it stays in the L1 cache, and a copied block of rows of A, as deep,
// stays in the L2 cache while a group of panels passes over it. The same is done if A is turned,
// since it is copied anyway: one block deep, so many rows of it stay that B is read once or twice.
//
// Few rows use each element of B a few times, so B is neither copied nor read down a panel, which
// would be a line or four of every row of B: a slab of its rows is read from left to right, before
// the next ones.
#include "tidemark/emit/contract/contract.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/integer.h"
#include "tidemark/emit/contract/tile.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark {
namespace contraction {

template <>
const KernelSet<float>& kernel_set() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return kAvx512F32;
    case device::Isa::avx2:
      return kAvx2F32;
    case device::Isa::baseline:
      break;
  }
  return kBaselineF32;
}

template <>
const KernelSet<double>& kernel_set() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return kAvx512F64;
    case device::Isa::avx2:
      return kAvx2F64;
    case device::Isa::baseline:
      break;
  }
  return kBaselineF64;
}

template <>
const KernelSet<int32_t>& kernel_set() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return kAvx512I32;
    case device::Isa::avx2:
      return kAvx2I32;
    case device::Isa::baseline:
      break;
  }
  return kBaselineI32;
}

int64_t panel_depth(int64_t row_bytes, int64_t k) {
  const int64_t rows = device::caches().l2_bytes / 4 / row_bytes;
  return std::min(k, std::max(kBlock, rows / kBlock * kBlock));
}

}  // namespace contraction

namespace {

using contraction::add_bytes;
using contraction::BlockCopy;
using contraction::divide_up;
using contraction::kBlock;
using contraction::KernelSet;
using contraction::Segment;
using contraction::Tile;

// How one product is tiled; depends on the contraction, the CPU and the number of threads.
struct Blocking {
  enum class Form { tiles, slabs, rows_times_vector, vector_times_columns } form = Form::tiles;
  bool matrix_is_b = false;  // Vector forms: which operand is more than a vector.
  int64_t batch = 1;
  int64_t width = 0, panels = 0;  // Columns of a panel, and how many. Vector forms: pieces.
  int64_t group = 1;              // Panels that one piece of work covers.
  int64_t tile_rows = 0;          // Of the tallest tile.
  int64_t block_rows = 0, row_blocks = 1;  // Rows one piece of work covers.
  int64_t depth = 0;
  bool copy_a = false, copy_b = false;  // Widened or transposed before use.
  bool pack_a = false;                  // Its copy is made for tiles, see pack_columns.
  bool leave_packed = false;            // The first tile packs B.
  bool serial = true;
  int64_t grain = 1;
  int64_t a_bytes = 0, b_bytes = 0, c_bytes = 0;  // Scratch of one worker.

  int64_t worker_bytes() const { return a_bytes + b_bytes + c_bytes; }
  int64_t groups() const { return divide_up(panels, group); }
  int64_t pieces() const { return batch * row_blocks * groups(); }
};

struct Form {
  Blocking::Form form;
  bool matrix_is_b;
};

// Products with one row or column are bound by memory bandwidth, so they have kernels that read the
// matrix in long streams.
Form choose_form(const Contraction& p, bool low_precision) {
  using enum Blocking::Form;
  if (low_precision || p.k == 0 || p.add) return {tiles, false};
  if (p.n == 1 && p.a.column_stride == 1 && p.k > 1) return {rows_times_vector, false};
  if (p.n == 1 && p.a.row_stride == 1 && p.c.row_stride == 1) return {vector_times_columns, false};
  if (p.m == 1 && p.b.column_stride == 1) return {vector_times_columns, true};
  if (p.m == 1 && p.b.row_stride == 1) return {rows_times_vector, true};
  return {tiles, false};
}

template <class T>
void cut_vector_form(const Contraction& p, int64_t lanes, int threads, Blocking& cut) {
  const int64_t outputs = std::max(p.m, p.n);
  if (cut.form == Blocking::Form::rows_times_vector) {
    cut.width = 16;
  } else {
    // Pieces of a page or more, for long streams; at most what the first-level cache can hold of
    // partial sums.
    const int64_t page = 4096 / sizeof(T);
    cut.width = std::clamp(
        divide_up(divide_up(outputs, threads == 1 ? 1 : 2 * threads), page) * page, page, 4 * page);
    // Nothing waits where rows of one step, eight or one, are all.
    if (p.k != 1 && p.k != 8)
      cut.c_bytes = add_bytes(std::min(cut.width, divide_up(outputs, lanes) * lanes) * sizeof(T));
  }
  cut.panels = divide_up(outputs, cut.width);
}

// Whether a panel should stay in the L1 cache while tiles pass over it: where it can, and where A
// cannot be streamed past it as it lies. Two tiles, one of which is prefetched, have a line of each
// of their rows there; rows a power of two apart share a set, which has a line in each way, and a
// way of these CPUs is as large as a page.
bool keep_in_l1(int64_t row_bytes, int64_t tile_rows) {
  const int64_t l1_bytes = device::caches().l1_bytes, ways = l1_bytes / 4096;
  return 2 * kBlock * row_bytes <= l1_bytes && ways < 2 * tile_rows;
}

// As many rows of B are read from left to right where chains can wait in the output. Fewer would
// move them to memory and back more often; some CPUs are slower with more pages at once.
constexpr int64_t kSlab = kBlock / 4;

// Packing doubles what the tile that does it moves to and from the second-level cache, so many
// tiles must gain from it.
constexpr int64_t kTilesWithoutCopy = 7;

// Whether B is read in slabs: it is as tiles want it, no copy of it would pay, and its rows are too
// long for a panel.
bool reads_slabs(const Contraction& p, int64_t tile_rows, int64_t width) {
  return p.b.column_stride == 1 && std::abs(p.b.row_stride) > 2 * width && p.n > width &&
         (p.m == 1 || p.a.column_stride == 1) && p.k > kSlab &&
         p.m <= kTilesWithoutCopy * tile_rows;
}

// As few tiles as possible, of at least two vectors, and then as wide ones: each reads all of B.
template <class T>
int64_t vectors_of_slabs(const KernelSet<T>& kernels, int64_t rows) {
  const auto tiles = [&](int64_t vectors) {
    return divide_up(rows, kernels.max_rows[vectors - 1]);
  };
  int64_t best = kernels.max_vectors;
  for (int64_t vectors = best - 1; vectors >= 2; --vectors) {
    if (tiles(vectors) < tiles(best)) best = vectors;
  }
  return best;
}

template <class T>
void cut_slabs(const Contraction& p, const KernelSet<T>& kernels, int threads, Blocking& cut) {
  const int64_t vectors = vectors_of_slabs(kernels, p.m);
  cut.form = Blocking::Form::slabs;
  cut.width = vectors * kernels.lanes;
  cut.panels = divide_up(p.n, cut.width);
  cut.tile_rows = kernels.max_rows[vectors - 1];
  cut.block_rows = p.m;
  // Chains cannot wait where the sums of blocks before are.
  cut.depth = p.k <= kBlock && !p.add ? kSlab : kBlock;
  // The sums of a group stay in the L1 cache.
  const int64_t column_bytes = p.m * cut.width * static_cast<int64_t>(sizeof(T));
  const int64_t most = std::max<int64_t>(1, device::caches().l1_bytes / 2 / column_bytes);
  const int64_t wanted = cut.serial ? 1 : divide_up(2 * threads, cut.batch);
  cut.group = std::min(most, divide_up(cut.panels, wanted));
}

template <class T>
void cut_tiles(const Contraction& p, const KernelSet<T>& kernels, int threads, bool low_precision,
               Blocking& cut) {
  const int64_t lanes = kernels.lanes;
  cut.width = std::min<int64_t>(kernels.max_vectors, divide_up(p.n, lanes)) * lanes;
  cut.panels = divide_up(p.n, cut.width);
  const int64_t tile_rows = cut.tile_rows = kernels.max_rows[cut.width / lanes - 1];
  const int64_t tiles = divide_up(p.m, tile_rows);
  const int64_t row_bytes = cut.width * static_cast<int64_t>(sizeof(T));
  const bool in_l1 = cut.panels > 1 && !low_precision && keep_in_l1(row_bytes, tile_rows);
  // An A whose rows do not lie along k costs a line for every element a tile reads; turning it pays
  // when several panels use the copy.
  const bool turn_a = p.a.column_stride != 1 && p.k > 1 && p.m > 1 && cut.panels > 4;
  const bool turned = turn_a && !low_precision && !in_l1;
  cut.depth = in_l1 || turned ? std::min(p.k, kBlock) : contraction::panel_depth(row_bytes, p.k);
  // Enough pieces that threads finish together, each tall enough to amortise its panel. Short work
  // is only cut into equal parts, since handing out pieces would be noticeable. It is cut by rows
  // if there are enough: a thread then continues with the rows that it computed in the previous
  // product.
  const double work = static_cast<double>(p.m * p.n) * static_cast<double>(p.k * cut.batch);
  const bool is_short = work < 3e7;
  const bool by_rows = is_short && cut.batch == 1 && tiles >= 4 * threads;
  const bool even = is_short && cut.batch * cut.panels % threads == 0;
  const bool is_alone = threads == 1 || cut.serial;
  const int64_t wanted = is_alone ? 1 : (by_rows || even ? 1 : 4) * threads;
  int64_t blocks = by_rows ? wanted : 1;
  if (in_l1 || turned) {
    const int64_t a_row_bytes = cut.depth * static_cast<int64_t>(sizeof(T));
    const int64_t part = device::caches().l2_bytes / (turned ? 2 : 4);
    const int64_t most_rows = part / a_row_bytes / tile_rows * tile_rows;
    blocks = std::max(blocks, divide_up(p.m, std::max(most_rows, 4 * tile_rows)));
    // Each group copies the rows of A, and each block of rows the panels of B: some of both.
    if (turned) blocks = std::max(blocks, std::min(divide_up(wanted, 2), tiles / 8));
    const int64_t groups =
        std::clamp<int64_t>(divide_up(wanted, cut.batch * blocks), 1, cut.panels);
    cut.group = divide_up(cut.panels, groups);
  }
  if (!by_rows) blocks = std::max(blocks, divide_up(wanted, cut.batch * cut.groups()));
  cut.row_blocks = std::clamp<int64_t>(blocks, 1, std::max<int64_t>(1, tiles / 4));
  // Rows far apart share a few sets of the L2 cache, where a block of them would not stay.
  const bool gather_a = in_l1 && cut.group > 4 && p.k > kBlock;
  cut.copy_a = low_precision || turn_a || gather_a;
  cut.pack_a = turn_a && !low_precision && p.a.row_stride == 1;
  if (cut.copy_a && !turned)
    cut.row_blocks = std::max(cut.row_blocks, divide_up(p.m, 32 * tile_rows));
  // Equal parts end together; tiles a row shorter cost less than a part more.
  cut.block_rows = divide_up(p.m, cut.row_blocks);
  cut.row_blocks = divide_up(p.m, cut.block_rows);
  cut.block_rows = std::min(cut.block_rows, p.m);

  const bool rows_lie_together = p.b.column_stride == 1 || p.n == 1;
  cut.copy_b = low_precision || !rows_lie_together;
  // A panel that is already dense gains nothing from packing. The shape alone decides, not the
  // number of threads, so that a plan for more threads uses the scratch of one for fewer.
  const bool dense = p.b.row_stride >= 0 && p.b.row_stride <= 2 * cut.width;
  cut.leave_packed = !cut.copy_b && !dense && p.m > kTilesWithoutCopy * tile_rows;
  if (cut.copy_a) cut.a_bytes = add_bytes(cut.block_rows * cut.depth * sizeof(T));
  if (cut.copy_b || cut.leave_packed) cut.b_bytes = add_bytes(cut.width * cut.depth * sizeof(T));
  if (low_precision) cut.c_bytes = add_bytes(cut.block_rows * cut.width * sizeof(T));
}

template <class T>
Blocking cut_up(const Contraction& p, int threads) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const bool low_precision = is_low_precision(p.c.dtype);
  Blocking cut;
  cut.batch = p.batch.count();
  const Form form = choose_form(p, low_precision);
  cut.form = form.form;
  cut.matrix_is_b = form.matrix_is_b;
  // In steps of one fma of one lane; a vector form moves a byte or more for each.
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) *
                      static_cast<double>(p.k) * static_cast<double>(cut.batch);
  const double worth = cut.form == Blocking::Form::tiles ? 1e6 : 1e5;
  cut.serial = threads == 1 || work < worth;
  const int64_t widest = kernels.max_vectors * kernels.lanes;
  if (cut.form != Blocking::Form::tiles) {
    cut_vector_form<T>(p, kernels.lanes, threads, cut);
  } else if (!low_precision && reads_slabs(p, kernels.max_rows[kernels.max_vectors - 1], widest)) {
    cut_slabs(p, kernels, threads, cut);
  } else {
    cut_tiles(p, kernels, threads, low_precision, cut);
  }
  const int64_t pieces = std::max<int64_t>(1, cut.pieces());
  cut.grain = std::clamp<int64_t>(static_cast<int64_t>(worth / 4 / (work / pieces + 1)), 1,
                                  std::max<int64_t>(1, pieces / threads));
  return cut;
}

template <class T>
void run_vector_pieces(const Contraction& p, const Blocking& cut, int64_t begin, int64_t end,
                       std::byte* scratch) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const int64_t outputs = std::max(p.m, p.n);
  const bool is_b = cut.matrix_is_b;
  const std::byte* const matrix = is_b ? p.b.data : p.a.data;
  const std::byte* const vector = is_b ? p.a.data : p.b.data;
  const int64_t output_stride = is_b ? p.b.column_stride : p.a.row_stride;
  const int64_t k_stride = is_b ? p.b.row_stride : p.a.column_stride;
  const int64_t x_step = is_b ? p.a.column_stride : p.b.row_stride;
  const int64_t c_step = p.n == 1 ? p.c.row_stride : 1;
  while (begin < end) {
    // Neighbouring pieces of one batch entry in this call are processed as one.
    const int64_t entry = begin / cut.panels, first = begin % cut.panels;
    const int64_t count = std::min(end - begin, cut.panels - first);
    const Batch::Offsets at = p.batch.at(entry);
    const T* a = reinterpret_cast<const T*>(matrix) + (is_b ? at.b : at.a);
    const T* x = reinterpret_cast<const T*>(vector) + (is_b ? at.a : at.b);
    T* c = reinterpret_cast<T*>(p.c.data) + at.c;
    if (cut.form == Blocking::Form::rows_times_vector) {
      const int64_t from = first * cut.width;
      kernels.rows_times_vector({.a = a + from * output_stride,
                                 .a_row = output_stride,
                                 .x = x,
                                 .x_step = x_step,
                                 .c = c + from * c_step,
                                 .c_step = c_step,
                                 .rows = std::min(count * cut.width, outputs - from),
                                 .k = p.k});
    } else {
      for (int64_t piece = first; piece < first + count; ++piece) {
        const int64_t from = piece * cut.width;
        kernels.vector_times_columns({.x = x,
                                      .x_step = x_step,
                                      .b = a + from,
                                      .b_row = k_stride,
                                      .c = c + from,
                                      .partial = reinterpret_cast<T*>(scratch),
                                      .columns = std::min(cut.width, outputs - from),
                                      .k = p.k});
      }
    }
    begin += count;
  }
}

// One range of k, for one panel and one block of rows.
template <class T>
struct Pass {
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t b_row;
  T* packed;  // Null, or the first tile packs.
  const T* next_b;
  T* c;
  int64_t c_row;
  int64_t rows, columns, depth;
  int64_t tile_rows;  // No tile is taller.
  bool add;
  bool a_is_packed;
};

template <class T>
void run_pass(const KernelSet<T>& kernels, const Pass<T>& pass) {
  const int64_t vectors = divide_up(pass.columns, kernels.lanes);
  const int64_t width = vectors * kernels.lanes;
  const auto split = contraction::split_rows(pass.rows, pass.tile_rows);
  const int last_lanes = static_cast<int>(pass.columns - (vectors - 1) * kernels.lanes);
  const bool narrow = last_lanes <= kernels.narrow_lanes && pass.packed == nullptr;
  const auto& tiles = (narrow ? kernels.narrow_tile : kernels.tile)[vectors - 1];
  Segment segment;
  const T* next_b = nullptr;
  Tile<T> tile;
  tile.b = pass.b;
  tile.b_step = pass.b_row;
  tile.segments = &segment;
  tile.segment_count = 1;
  tile.c_row = pass.c_row;
  tile.last_lanes = last_lanes;
  tile.next_b = &next_b;
  tile.b_next_step = pass.b_row;
  int64_t row = 0;
  for (int64_t i = 0; i < split.count; ++i) {
    const int64_t rows = split.rows(i), next_row = i + 1 < split.count ? row + rows : 0;
    const bool is_packed = pass.a_is_packed;
    const int64_t a_tile = is_packed ? pass.depth : pass.a_row;  // From a tile's row to the next's.
    tile.a = pass.a + row * a_tile;
    tile.a_row = is_packed ? 1 : pass.a_row;
    tile.a_step = is_packed ? rows : pass.a_step;
    tile.a_next_row = is_packed ? contraction::kPrefetchSteps : pass.a_row;
    tile.c = pass.c + row * pass.c_row;
    // The last tiles prefetch the next panel, a quarter of each block each: lines of rows a power
    // of two apart do not stay in the L2 cache for long.
    const int64_t quarter = i - std::max<int64_t>(split.count - 4, 1);
    const bool fetch = pass.next_b != nullptr && quarter >= 0;
    for (int64_t k = 0; k < pass.depth; k += kBlock) {
      segment = {
          .a = k * tile.a_step, .b = k * tile.b_step, .length = std::min(kBlock, pass.depth - k)};
      tile.next_a = pass.a + next_row * a_tile + k * tile.a_step;
      tile.packed = pass.packed != nullptr && i == 0 ? pass.packed + k * width : nullptr;
      next_b = fetch ? pass.next_b + (k + quarter * (kBlock / 4)) * pass.b_row : nullptr;
      tile.add = pass.add || k > 0;
      tiles[rows - 1](tile);
    }
    row += rows;
    if (i == 0 && pass.packed != nullptr) {
      tile.b = pass.packed;
      tile.b_step = width;
    }
  }
}

// A piece is a group of panels of one batch entry, all rows, and all of k.
template <class T>
void run_slab_pieces(const Contraction& p, const Blocking& cut, int64_t begin, int64_t end) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const auto split = contraction::split_rows(p.m, cut.tile_rows);
  Segment segment;
  const T* next_b = nullptr;
  Tile<T> tile;
  tile.a_row = tile.a_next_row = p.a.row_stride;
  tile.a_step = p.a.column_stride;
  tile.b_step = tile.b_next_step = p.b.row_stride;
  tile.segments = &segment;
  tile.segment_count = 1;
  tile.c_row = tile.from_row = p.c.row_stride;
  tile.next_b = &next_b;
  tile.b_next_rows = contraction::kPrefetchSteps;
  for (int64_t piece = begin; piece < end; ++piece) {
    const Batch::Offsets at = p.batch.at(piece / cut.groups());
    const T* const a = reinterpret_cast<const T*>(p.a.data) + at.a;
    const T* const b = reinterpret_cast<const T*>(p.b.data) + at.b;
    T* const c = reinterpret_cast<T*>(p.c.data) + at.c;
    const int64_t first = piece % cut.groups() * cut.group * cut.width;
    const int64_t last = std::min(first + cut.group * cut.width, p.n);
    for (int64_t k = 0; k < p.k; k += cut.depth) {
      segment.length = std::min(cut.depth, p.k - k);
      tile.add = k % kBlock == 0 && (p.add || k > 0);
      for (int64_t column = first; column < last; column += cut.width) {
        const int64_t columns = std::min(cut.width, p.n - column);
        const int64_t vectors = divide_up(columns, kernels.lanes);
        tile.b = b + k * tile.b_step + column;
        tile.last_lanes = static_cast<int>(columns - (vectors - 1) * kernels.lanes);
        const bool narrow = tile.last_lanes <= kernels.narrow_lanes;
        const auto& tiles = (narrow ? kernels.narrow_tile : kernels.tile)[vectors - 1];
        // The first tile of a panel prefetches the next panel. CPUs follow by themselves neither as
        // many rows at once nor parts of rows.
        const T* const next = column + columns < last
                                  ? tile.b + cut.width
                                  : tile.b + cut.depth * tile.b_step - (column - first);
        for (int64_t i = 0; i < split.count; ++i) {
          const int64_t row = split.first(i);
          next_b = i == 0 ? next : nullptr;
          tile.a = a + row * tile.a_row + k * tile.a_step;
          tile.next_a = tile.a + segment.length * tile.a_step;
          tile.c = c + row * tile.c_row + column;
          tile.from = k % kBlock == 0 ? nullptr : tile.c;
          tiles[split.rows(i) - 1](tile);
        }
      }
    }
  }
}

template <int kRows, class T>
void pack_tile(const T* from, int64_t step, int64_t count, T* to) {
  for (int64_t k = 0; k < count; ++k) {
    std::memcpy(to + k * kRows, from + k * step, kRows * sizeof(T));
  }
}

template <class T>
void pack_tile(int64_t rows, const T* from, int64_t step, int64_t count, T* to) {
  [&]<int... r>(std::integer_sequence<int, r...>) {
    ((rows == r + 1 ? pack_tile<r + 1>(from, step, count, to) : void()), ...);
  }(std::make_integer_sequence<int, contraction::kMaxRows>{});
}

// Copies adjacent rows in the order in which tiles read them: all of k for the rows of the first
// tile, and so on. This copies short runs instead of transposing, and a tile reads one stream,
// where rows a power of two apart would evict one another from the L1 cache.
template <class T>
void pack_columns(const Pass<T>& pass, const T* from, int64_t step, T* to) {
  constexpr int64_t kTogether = 8;  // Lines of as many rows, of which several tiles take a part.
  const auto split = contraction::split_rows(pass.rows, pass.tile_rows);
  for (int64_t k = 0; k < pass.depth; k += kTogether) {
    const int64_t count = std::min(kTogether, pass.depth - k);
    int64_t row = 0;
    for (int64_t i = 0; i < split.count; ++i) {
      const int64_t rows = split.rows(i);
      pack_tile(rows, from + k * step + row, step, count, to + row * pass.depth + k * rows);
      row += rows;
    }
  }
}

template <class T>
void copy_into(const KernelSet<T>& kernels, DType dtype, const BlockCopy<T>& block) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::f16) return kernels.copy_f16(block);
    if (dtype == DType::bf16) return kernels.copy_bf16(block);
  }
  kernels.copy(block);
}

// Rows of A as tiles read them, over one range of k.
template <class T>
void copy_rows(const KernelSet<T>& kernels, const Contraction& p, const Blocking& cut,
               const Pass<T>& pass, const std::byte* from, T* to) {
  if (cut.pack_a)
    return pack_columns(pass, reinterpret_cast<const T*>(from), p.a.column_stride, to);
  copy_into<T>(kernels, p.a.dtype,
               {.to = to,
                .to_row = pass.depth,
                .from = from,
                .row_stride = p.a.row_stride,
                .column_stride = p.a.column_stride,
                .rows = pass.rows,
                .columns = pass.depth,
                .padded_columns = pass.depth});
}

template <class T>
void run_tile_pieces(const Contraction& p, const Blocking& cut, int64_t begin, int64_t end,
                     std::byte* scratch) {
  const KernelSet<T>& kernels = contraction::kernel_set<T>();
  const bool low_precision = is_low_precision(p.c.dtype);
  const int64_t element = size_of(p.c.dtype);
  T* const a_copy = reinterpret_cast<T*>(scratch);
  T* const panel = reinterpret_cast<T*>(scratch + cut.a_bytes);
  T* const c_sums = reinterpret_cast<T*>(scratch + cut.a_bytes + cut.b_bytes);
  int64_t copied = -1;  // The rows of A that lie in a_copy, where all of k fits there.
  for (int64_t piece = begin; piece < end; ++piece) {
    const int64_t first = piece % cut.groups() * cut.group;
    const int64_t outer = piece / cut.groups();
    const int64_t row = outer % cut.row_blocks * cut.block_rows;
    const int64_t entry = outer / cut.row_blocks;
    const Batch::Offsets at = p.batch.at(entry);
    const std::byte* a = p.a.data + (at.a + row * p.a.row_stride) * element;
    Pass<T> pass = {};
    pass.rows = std::min(cut.block_rows, p.m - row);
    pass.a_is_packed = cut.pack_a;
    for (int64_t k = 0; k < p.k; k += cut.depth) {
      pass.depth = std::min(cut.depth, p.k - k);
      pass.add = p.add || k > 0;
      const std::byte* a_at = a + k * p.a.column_stride * element;
      if (cut.copy_a) {
        pass.tile_rows = cut.tile_rows;
        if (copied != outer) copy_rows(kernels, p, cut, pass, a_at, a_copy);
        if (cut.depth == p.k) copied = outer;
        pass.a = a_copy;
        pass.a_row = pass.depth;
        pass.a_step = 1;
      } else {
        pass.a = reinterpret_cast<const T*>(a_at);
        pass.a_row = p.a.row_stride;
        pass.a_step = p.a.column_stride;
      }
      const int64_t last = std::min(first + cut.group, cut.panels);
      for (int64_t number = first; number < last; ++number) {
        const int64_t column = number * cut.width;
        std::byte* c = p.c.data + (at.c + row * p.c.row_stride + column) * element;
        pass.columns = std::min(cut.width, p.n - column);
        pass.tile_rows = cut.pack_a ? cut.tile_rows
                                    : kernels.max_rows[divide_up(pass.columns, kernels.lanes) - 1];
        pass.c = low_precision ? c_sums : reinterpret_cast<T*>(c);
        pass.c_row = low_precision ? cut.width : p.c.row_stride;
        const std::byte* b_at =
            p.b.data + (at.b + column * p.b.column_stride + k * p.b.row_stride) * element;
        pass.packed = nullptr;
        pass.next_b = nullptr;
        if (cut.copy_b) {
          const int64_t width = divide_up(pass.columns, kernels.lanes) * kernels.lanes;
          copy_into<T>(kernels, p.b.dtype,
                       {.to = panel,
                        .to_row = width,
                        .from = b_at,
                        .row_stride = p.b.row_stride,
                        .column_stride = p.b.column_stride,
                        .rows = pass.depth,
                        .columns = pass.columns,
                        .padded_columns = width});
          pass.b = panel;
          pass.b_row = width;
        } else {
          pass.b = reinterpret_cast<const T*>(b_at);
          pass.b_row = p.b.row_stride;
          if (cut.leave_packed) {
            pass.packed = panel;
            // The next work to prefetch: the next panel of the group, else the next range of k,
            // else the panel after the group.
            const T* const top = pass.b - k * p.b.row_stride;
            if (number + 1 < last) {
              pass.next_b = pass.b + cut.width;
            } else if (k + cut.depth < p.k) {
              pass.next_b = pass.b + cut.depth * p.b.row_stride - (number - first) * cut.width;
            } else if (column + cut.width < p.n) {
              pass.next_b = top + cut.width;
            }
          }
        }
        run_pass(kernels, pass);
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      // These have one panel a piece, whose sums wait until k has ended.
      if (low_precision) {
        const auto round = p.c.dtype == DType::f16 ? kernels.round_f16 : kernels.round_bf16;
        const int64_t column = first * cut.width;
        std::byte* c = p.c.data + (at.c + row * p.c.row_stride + column) * element;
        for (int64_t r = 0; r < pass.rows; ++r) {
          round(c_sums + r * cut.width,
                reinterpret_cast<uint16_t*>(c + r * p.c.row_stride * element), pass.columns);
        }
      }
    }
  }
}

template <class T>
void run(const Contraction& p, int threads, std::byte* scratch) {
  const Blocking cut = cut_up<T>(p, threads);
  const auto work = [&](int64_t begin, int64_t end, int worker) {
    std::byte* mine = scratch + worker * cut.worker_bytes();
    if (cut.form == Blocking::Form::tiles) {
      run_tile_pieces<T>(p, cut, begin, end, mine);
    } else if (cut.form == Blocking::Form::slabs) {
      run_slab_pieces<T>(p, cut, begin, end);
    } else {
      run_vector_pieces<T>(p, cut, begin, end, mine);
    }
  };
  if (cut.serial || cut.pieces() == 1) {
    work(0, cut.pieces(), 0);
  } else {
    device::parallel_for(cut.pieces(), cut.grain, threads, work);
  }
}

void fill_zeros(const Contraction& p) {
  const int64_t element = size_of(p.c.dtype);
  const int64_t batch = p.batch.count();
  for (int64_t entry = 0; entry < batch; ++entry) {
    const int64_t begin = p.batch.at(entry).c;
    for (int64_t row = 0; row < p.m; ++row) {
      std::byte* c = p.c.data + (begin + row * p.c.row_stride) * element;
      std::fill_n(c, p.n * element, std::byte{0});
    }
  }
}

bool is_empty(const Contraction& p) { return p.m == 0 || p.n == 0; }

}  // namespace

int64_t Batch::count() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

Batch::Offsets Batch::at(int64_t entry) const {
  Offsets offsets;
  for (size_t axis = extents.size(); axis-- > 0;) {
    // Of the first axis the rest is the index itself.
    const int64_t index = axis == 0 ? entry : entry % extents[axis];
    if (axis > 0) entry /= extents[axis];
    offsets.a += index * a[axis];
    offsets.b += index * b[axis];
    offsets.c += index * c[axis];
  }
  return offsets;
}

int64_t contract_scratch_bytes(const Contraction& p, int threads) {
  if (is_empty(p) || p.k == 0 || !contraction::has_tiles(p.c.dtype)) return 0;
  const device::FloatEnvironment environment;  // Sizes of work are estimated in floats.
  const Blocking cut =
      p.c.dtype == DType::f64 ? cut_up<double>(p, threads) : cut_up<float>(p, threads);
  const int64_t workers = cut.serial ? 1 : device::workers_of(cut.pieces(), cut.grain, threads);
  return workers * cut.worker_bytes();
}

void contract(const Contraction& p, int threads, std::byte* scratch) {
  TIDEMARK_CHECK(p.a.dtype == p.c.dtype && p.b.dtype == p.c.dtype, "contract: ", p.a.dtype, " x ",
                 p.b.dtype, " -> ", p.c.dtype);
  TIDEMARK_CHECK(p.c.dtype != DType::boolean, "contract: no sums of bool");
  if (is_empty(p)) return;
  const device::FloatEnvironment environment;
  TIDEMARK_CHECK(!p.add || p.c.dtype == DType::f32 || p.c.dtype == DType::f64, "contract: adds to ",
                 p.c.dtype);
  if (p.k == 0 && p.add) return;
  if (p.k == 0) return fill_zeros(p);
  if (p.c.dtype == DType::f64) return run<double>(p, threads, scratch);
  if (is_float(p.c.dtype)) return run<float>(p, threads, scratch);
  if (contraction::is_whole32(p.c.dtype)) return run<int32_t>(p, threads, scratch);
  contraction::contract_integers(p);
}

}  // namespace tidemark

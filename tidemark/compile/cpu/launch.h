// Runs a kernel over a frame, split for threads and caches. The split does not affect the bits: it
// never cuts a block whose order of operations the kernel defines.
#pragma once

#include <span>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/frame.h"
#include "tidemark/compile/narrow.h"

namespace tidemark::compile {

// Work of fewer additions does not pay for waking another thread.
inline constexpr int64_t kPieceWork = 16384;
// The same if several threads computed the inputs or will read the result: moving a cache line from
// another core takes longer than the work on it.
inline constexpr int64_t kSharedPieceWork = kPieceWork / 4;

// How a pointwise nest is cut: into blocks of rows x columns for each outer index. A thread takes
// `grain` blocks at a time.
struct Blocks {
  int64_t rows = 1, columns = 1;  // Of one block.
  int64_t row_blocks = 1, column_blocks = 1;
  int64_t count = 1, grain = 1;
};
// A nest and the work per element.
struct NestWork {
  const Nest& nest;
  int64_t weight = 1;
};
Blocks pointwise_blocks(const NestWork& work, int64_t outers, int64_t rows, int64_t columns,
                        int threads, int64_t piece_work = kPieceWork);
// How a fold along columns is cut: into pieces of `width` columns.
struct ColumnPieces {
  ColumnPieces(const NestWork& work, int64_t rows, int64_t steps, int64_t columns, int threads);
  int64_t width = 1, blocks = 1;
  int64_t count = 1, grain = 1;
};
// The number of columns of a piece.
int64_t column_block(int64_t weight, int64_t rows, int64_t steps, int64_t columns, int threads);

// The workspace of such a launch besides its stack: scratch for every worker.
int64_t column_workspace(const Nest& nest, const Frame& frame, int threads);

// Whether a result should be written by non-temporal stores, which neither read its cache lines nor
// evict others: a kernel that touches more than the last cache holds leaves nothing of the
// result's beginning there for whoever reads it next. A small result stays, whatever else is read.
bool outgrows_caches(int64_t touched_bytes, int64_t result_bytes);

// A nest without folds. The frame's last axis holds the columns.
void launch_pointwise(CachedKernel& kernel, const Frame& frame, std::span<const uint64_t> scalars);

// A nest that folds along lanes: the last axis is folded, with one result per index of the other
// axes.
void launch_lanes(CachedKernel& kernel, const Frame& frame);

// Whether the rows of such a nest are short and many: then its narrow nest is quicker.
bool has_short_rows(const Frame& frame, int64_t most_columns);
// The number of columns, if there are many rows of so few that kernels know it; otherwise 0.
int32_t known_row(const Frame& frame);
// The narrow nest of one that folds along lanes, over the frame of that one.
void launch_narrow(CachedKernel& kernel, const Frame& frame, std::span<const RowBuffer> buffers);

// The most columns that a thread takes at a time: 4 KiB of each row of f32.
inline constexpr int64_t kColumnBlock = 1024;

// A nest that folds along columns: the last axis holds the columns, the axis before it is folded.
void launch_columns(CachedKernel& kernel, const Frame& frame);

}  // namespace tidemark::compile

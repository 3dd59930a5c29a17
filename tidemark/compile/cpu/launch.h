// Running a kernel over a frame: splitting it for threads and for caches. Nothing here can change a
// bit, since pieces are cut only where the kernel's meaning is cut already.
#pragma once

#include <span>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/frame.h"

namespace tidemark::compile {

// Work below this many additions is not worth waking another thread for.
inline constexpr int64_t kPieceWork = 16384;
// The same where several threads made what is read, or will read what is made: a line that one of
// them writes and another one holds takes longer to come over than the work on it.
inline constexpr int64_t kSharedPieceWork = kPieceWork / 4;

// How a pointwise nest is cut: into blocks of rows x columns of one outer index, `grain` of them at
// a time for a thread.
struct Blocks {
  int64_t rows = 1, columns = 1;  // Of one block.
  int64_t row_blocks = 1, column_blocks = 1;
  int64_t count = 1, grain = 1;
};
// A nest, and what an element of it costs.
struct NestWork {
  const Nest& nest;
  int64_t weight = 1;
};
Blocks pointwise_blocks(const NestWork& work, int64_t outers, int64_t rows, int64_t columns,
                        int threads, int64_t piece_work = kPieceWork);
// How a nest with cells in the order of columns is cut: `width` columns at a time, so many pieces.
struct ColumnPieces {
  ColumnPieces(const NestWork& work, int64_t rows, int64_t steps, int64_t columns, int threads);
  int64_t width = 1, blocks = 1;
  int64_t count = 1, grain = 1;
};
// The columns of a piece.
int64_t column_block(int64_t weight, int64_t rows, int64_t steps, int64_t columns, int threads);

// What such a launch needs beside its stack: scratch of every worker.
int64_t column_workspace(const Nest& nest, const Frame& frame, int threads);

// A nest without cells. The frame's last axis are the columns.
void launch_pointwise(CachedKernel& kernel, const Frame& frame, std::span<const uint64_t> scalars);

// A nest with cells in the order of lanes: the last axis is folded; one result per index of the
// rest.
void launch_lanes(CachedKernel& kernel, const Frame& frame);

// The columns one thread takes at a time, at most: 4 KiB of each row of f32.
inline constexpr int64_t kColumnBlock = 1024;

// A nest with cells in the order of columns: the last axis are the columns, the one before is
// folded.
void launch_columns(CachedKernel& kernel, const Frame& frame);

}  // namespace tidemark::compile

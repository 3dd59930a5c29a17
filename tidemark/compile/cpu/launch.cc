#include "tidemark/compile/cpu/launch.h"

#include <algorithm>
#include <array>

#include "tidemark/compile/workspace.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/llvm/jit.h"

namespace tidemark::compile {
namespace {

using Pointers = std::array<std::byte*, kMaxBuffers>;

// Eager code gets machine code when it pays. Programs get it from the start, so that a run compiles
// nothing.
const Kernel& kernel_for(CachedKernel& cached, int64_t size) {
  return WorkspacePart::current() == nullptr ? cached.pick(size) : cached.settle();
}

// Scratch for every worker, for the duration of a launch. num_threads() is read once, since another
// thread may change it. A small amount is on the caller's stack, so that short launches do not wait
// for the pool.
class Scratch {
 public:
  Scratch(int64_t bytes_each, int workers) : each_(granted_bytes(bytes_each)), data_(inside_) {
    const int64_t bytes = workspace_bytes(bytes_each, workers);
    if (bytes == 0) return;
    memory_ = Workspace(bytes);
    data_ = memory_.data();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // The bytes of workspace besides the stack.
  static int64_t workspace_bytes(int64_t bytes_each, int workers) {
    const int64_t bytes = granted_bytes(bytes_each) * workers;
    return bytes <= kInside ? 0 : bytes;
  }
  std::byte* of(int worker) const { return data_ + each_ * worker; }

 private:
  static constexpr int64_t kInside = 16 << 10;

  int64_t each_;
  std::byte* data_;
  Workspace memory_;
  alignas(64) std::byte inside_[kInside];
};

// The bytes that each buffer of a frame spans, for the interpreter that checks accesses.
class Extents {
 public:
  Extents(const Frame& frame, const Nest& nest)
      : Extents(frame, [&](size_t b) { return nest.buffers[b].dtype; }) {}
  template <class DTypeOf>
  Extents(const Frame& frame, const DTypeOf& dtype_of) {
    if (emitter() != Emitter::checked) return;
    checking_ = true;
    for (int b = 0; b < frame.buffers; ++b) {
      const auto i = static_cast<size_t>(b);
      std::byte* low = frame.data[i];
      std::byte* high = frame.data[i] + size_of(dtype_of(i));
      for (size_t axis = 0; axis < frame.extents.size(); ++axis) {
        const int64_t reach = (frame.extents[axis] - 1) * frame.strides[i][axis];
        (reach < 0 ? low : high) += reach;
      }
      list_[i] = {low, high};
    }
  }
  const Extent* get() const { return checking_ ? list_.data() : nullptr; }

 private:
  bool checking_ = false;
  std::array<Extent, kMaxBuffers> list_ = {};
};

// The addresses at an index of the outer axes, those before the last `inner`.
Pointers pointers_at(const Frame& frame, int64_t number, int64_t inner) {
  Pointers at = frame.data;
  for (int64_t axis = frame.axes() - inner - 1; axis >= 0; --axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t index = number % frame.extents[i];
    number /= frame.extents[i];
    for (int b = 0; b < frame.buffers; ++b)
      at[static_cast<size_t>(b)] += index * frame.strides[static_cast<size_t>(b)][i];
  }
  return at;
}

int64_t outer_count(const Frame& frame, int64_t inner) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < frame.axes() - inner; ++axis)
    count *= frame.extents[static_cast<size_t>(axis)];
  return count;
}

int64_t stride_at(const Frame& frame, int b, int64_t axis) {
  return axis < 0 ? 0 : frame.strides[static_cast<size_t>(b)][static_cast<size_t>(axis)];
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Reading across rows (a transposed operand) touches one cache line per element. Blocks are so
// small that the lines are still in the L1 cache when the next row needs them.
bool crosses_rows(const Nest& nest) {
  return std::any_of(nest.buffers.begin(), nest.buffers.end(), [](const BufferRef& buffer) {
    return buffer.columns == BufferRef::Columns::strided;
  });
}

}  // namespace

bool outgrows_caches(int64_t touched_bytes, int64_t result_bytes) {
  const int64_t last = device::caches().l3_bytes;
  return touched_bytes >= last && result_bytes >= last / 4;
}

Blocks pointwise_blocks(const NestWork& work, int64_t outers, int64_t rows, int64_t columns,
                        int threads, int64_t piece_work) {
  const int64_t piece = std::max<int64_t>(1024, piece_work / work.weight);
  const bool blocked = crosses_rows(work.nest) && rows > 1;
  Blocks blocks;
  blocks.columns = blocked ? std::min<int64_t>(columns, 256) : columns;
  if (!blocked && columns > 2 * piece && outers * rows < 4 * threads) {
    // The same number of pieces for every thread: each thread continues with data that it computed
    // in the step before, and cache lines that two cores share cost more than the work on them.
    int64_t pieces = std::min<int64_t>(columns / piece, 4 * threads);
    if (pieces > threads) pieces -= pieces % threads;
    blocks.columns = rounded_up((columns + pieces - 1) / pieces, 1024);
  }
  blocks.rows = std::clamp<int64_t>(blocked ? 64 : piece / blocks.columns, 1, rows);
  blocks.column_blocks = (columns + blocks.columns - 1) / blocks.columns;
  blocks.row_blocks = (rows + blocks.rows - 1) / blocks.rows;
  blocks.count = outers * blocks.row_blocks * blocks.column_blocks;
  blocks.grain = std::max<int64_t>(1, piece / (blocks.rows * blocks.columns));
  return blocks;
}

// No two blocks of columns share a cache line. Long runs of a row are read fastest, so blocks are
// only as narrow as needed to give every thread one.
int64_t column_block(int64_t weight, int64_t rows, int64_t steps, int64_t columns, int threads) {
  const int64_t work = std::max<int64_t>(1, steps * weight);
  const int64_t share = std::clamp<int64_t>(columns * rows / threads, 256, kColumnBlock);
  return std::min(columns, rounded_up(std::max<int64_t>(share, kPieceWork / work), 64));
}

ColumnPieces::ColumnPieces(const NestWork& nest, int64_t rows, int64_t steps, int64_t columns,
                           int threads)
    : width(column_block(nest.weight, rows, steps, columns, threads)),
      blocks((columns + width - 1) / width),
      count(rows * blocks),
      grain(
          std::max<int64_t>(1, kPieceWork / (std::max<int64_t>(1, steps * nest.weight) * width))) {}

int64_t column_workspace(const Nest& nest, const Frame& frame, int threads) {
  const int64_t columns = frame.extents.back();
  const int64_t steps = frame.extents[static_cast<size_t>(frame.axes() - 2)];
  const int64_t rows = outer_count(frame, 2);
  if (rows * columns == 0) return 0;
  const ColumnPieces pieces({nest, weight_of(nest)}, rows, steps, columns, threads);
  return Scratch::workspace_bytes(machine_scratch_bytes(nest, steps, pieces.width),
                                  device::workers_of(pieces.count, pieces.grain, threads));
}

void launch_pointwise(CachedKernel& cached, const Frame& frame, std::span<const uint64_t> scalars) {
  const int64_t size = frame.size();
  if (size == 0) return;
  const int threads = num_threads();
  const int64_t column_axis = frame.axes() - 1;
  const int64_t row_axis = frame.axes() - 2;
  const int64_t columns = column_axis < 0 ? 1 : frame.extents[static_cast<size_t>(column_axis)];
  const int64_t rows = row_axis < 0 ? 1 : frame.extents[static_cast<size_t>(row_axis)];
  const int64_t outers = size / (columns * rows);

  const Blocks blocks =
      pointwise_blocks({cached.nest(), cached.weight()}, outers, rows, columns, threads);
  const Kernel& kernel = kernel_for(cached, size);
  if (WorkspacePart::preparing()) return;
  const Extents extents(frame, cached.nest());
  std::array<Movement, kMaxBuffers> movements = {};
  for (int b = 0; b < frame.buffers; ++b) {
    movements[static_cast<size_t>(b)] = {stride_at(frame, b, row_axis), 0,
                                         stride_at(frame, b, column_axis)};
  }
  device::parallel_for(blocks.count, blocks.grain, threads, [&](int64_t begin, int64_t end, int) {
    KernelArgs args;
    args.movements = movements.data();
    args.scalars = scalars.data();
    args.extents = extents.get();
    args.index_row = columns;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block % blocks.column_blocks * blocks.columns;
      const int64_t row = block / blocks.column_blocks % blocks.row_blocks * blocks.rows;
      const int64_t outer = block / (blocks.column_blocks * blocks.row_blocks);
      Pointers at = pointers_at(frame, outer, 2);
      for (int b = 0; b < frame.buffers; ++b) {
        const Movement& move = movements[static_cast<size_t>(b)];
        at[static_cast<size_t>(b)] += row * move.row + column * move.column;
      }
      args.buffers = at.data();
      args.rows = std::min(blocks.rows, rows - row);
      args.columns = std::min(blocks.columns, columns - column);
      args.index_base = (outer * rows + row) * columns + column;
      kernel(args);
    }
  });
}

void launch_lanes(CachedKernel& cached, const Frame& frame) {
  const int64_t columns = frame.extents.back();
  const int64_t row_axis = frame.axes() - 2;
  const int64_t rows = row_axis < 0 ? 1 : frame.extents[static_cast<size_t>(row_axis)];
  const int64_t outers = outer_count(frame, 2);
  if (outers * rows == 0) return;
  const int threads = num_threads();
  const int64_t work = std::max<int64_t>(1, columns * cached.weight());
  const int64_t grain = std::max<int64_t>(1, kPieceWork / work);
  const Kernel& kernel = kernel_for(cached, std::max<int64_t>(1, frame.size()));
  if (WorkspacePart::preparing()) return;
  const Extents extents(frame, cached.nest());
  std::array<Movement, kMaxBuffers> movements = {};
  for (int b = 0; b < frame.buffers; ++b) {
    movements[static_cast<size_t>(b)] = {stride_at(frame, b, row_axis), 0,
                                         stride_at(frame, b, frame.axes() - 1)};
  }
  device::parallel_for(outers * rows, grain, threads, [&](int64_t begin, int64_t end, int) {
    KernelArgs args;
    args.columns = columns;
    args.movements = movements.data();
    args.extents = extents.get();
    while (begin < end) {
      const int64_t row = begin % rows;
      Pointers at = pointers_at(frame, begin / rows, 2);
      for (int b = 0; b < frame.buffers; ++b)
        at[static_cast<size_t>(b)] += row * movements[static_cast<size_t>(b)].row;
      args.buffers = at.data();
      args.rows = std::min(rows - row, end - begin);
      kernel(args);
      begin += args.rows;
    }
  });
}

bool has_short_rows(const Frame& frame, int64_t most_columns) {
  const int64_t columns = frame.extents.back();
  return columns > 1 && columns <= most_columns && frame.axes() > 1 &&
         frame.extents[static_cast<size_t>(frame.axes() - 2)] >= kManyRows;
}

int32_t known_row(const Frame& frame) {
  const int64_t columns = frame.extents.back();
  const bool is_known = columns > 1 && columns <= kKnownRow && frame.axes() > 1 &&
                        frame.extents[static_cast<size_t>(frame.axes() - 2)] >= kManyRows;
  return is_known ? static_cast<int32_t>(columns) : 0;
}

void launch_narrow(CachedKernel& cached, const Frame& frame, std::span<const RowBuffer> buffers) {
  const int64_t row_axis = frame.axes() - 2;
  const int64_t rows = frame.extents[static_cast<size_t>(row_axis)];
  const int64_t outers = outer_count(frame, 2);
  if (outers * rows == 0) return;
  const int threads = num_threads();
  const Kernel& kernel = kernel_for(cached, outers * rows);
  if (WorkspacePart::preparing()) return;
  const ColumnList columns = columns_of_rows(buffers, frame.extents.back());
  const int64_t block = std::clamp<int64_t>(kPieceWork / cached.weight(), kManyRows, rows);
  const int64_t blocks = (rows + block - 1) / block;
  const Extents of_buffers(frame, [&](size_t b) {
    const auto is_its = [&](const ColumnOf& each) { return each.buffer == static_cast<int>(b); };
    return cached.nest()
        .buffers[static_cast<size_t>(std::find_if(columns.begin(), columns.end(), is_its) -
                                     columns.begin())]
        .dtype;
  });
  std::array<Movement, kShortRow * kMaxBuffers> movements = {};
  std::array<Extent, kShortRow * kMaxBuffers> extents = {};
  for (size_t i = 0; i < columns.size(); ++i) {
    movements[i] = {0, 0, stride_at(frame, columns[i].buffer, row_axis)};
    if (of_buffers.get() != nullptr) extents[i] = of_buffers.get()[columns[i].buffer];
  }
  device::parallel_for(outers * blocks, 1, threads, [&](int64_t begin, int64_t end, int) {
    std::array<std::byte*, kShortRow * kMaxBuffers> at;
    KernelArgs args;
    args.movements = movements.data();
    args.buffers = at.data();
    args.extents = of_buffers.get() == nullptr ? nullptr : extents.data();
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t row = piece % blocks * block;
      const Pointers first = pointers_at(frame, piece / blocks, 2);
      for (size_t i = 0; i < columns.size(); ++i)
        at[i] = first[static_cast<size_t>(columns[i].buffer)] + row * movements[i].column +
                columns[i].column * stride_at(frame, columns[i].buffer, frame.axes() - 1);
      args.columns = std::min(block, rows - row);
      kernel(args);
    }
  });
}

void launch_columns(CachedKernel& cached, const Frame& frame) {
  const int64_t columns = frame.extents.back();
  const int64_t steps = frame.extents[static_cast<size_t>(frame.axes() - 2)];
  const int64_t rows = outer_count(frame, 2);
  if (rows * columns == 0) return;
  const int threads = num_threads();
  std::array<Movement, kMaxBuffers> movements = {};
  for (int b = 0; b < frame.buffers; ++b) {
    movements[static_cast<size_t>(b)] = {0, stride_at(frame, b, frame.axes() - 2),
                                         stride_at(frame, b, frame.axes() - 1)};
  }
  const ColumnPieces pieces({cached.nest(), cached.weight()}, rows, steps, columns, threads);
  const Kernel& kernel = kernel_for(cached, std::max<int64_t>(1, frame.size()));
  const Scratch scratch(machine_scratch_bytes(cached.nest(), steps, pieces.width),
                        device::workers_of(pieces.count, pieces.grain, threads));
  if (WorkspacePart::preparing()) return;
  const Extents extents(frame, cached.nest());
  device::parallel_for(
      pieces.count, pieces.grain, threads, [&](int64_t begin, int64_t end, int worker) {
        KernelArgs args;
        args.steps = steps;
        args.movements = movements.data();
        args.scratch = scratch.of(worker);
        args.extents = extents.get();
        for (int64_t block = begin; block < end; ++block) {
          const int64_t column = block % pieces.blocks * pieces.width;
          Pointers at = pointers_at(frame, block / pieces.blocks, 2);
          for (int b = 0; b < frame.buffers; ++b)
            at[static_cast<size_t>(b)] += column * movements[static_cast<size_t>(b)].column;
          args.buffers = at.data();
          args.columns = std::min(pieces.width, columns - column);
          kernel(args);
        }
      });
}

}  // namespace tidemark::compile

#include "tidemark/compile/cpu/group_launch.h"

#include <algorithm>
#include <array>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/frame.h"
#include "tidemark/compile/narrow.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/device/work_share.h"
#include "tidemark/emit/llvm/jit.h"

namespace tidemark::compile {
namespace {

using Columns = BufferRef::Columns;

constexpr size_t kMostBuffers = 48;
using Pointers = std::array<std::byte*, kMostBuffers>;

// The most elements of kept rows in one call: short rows are processed several at a time.
constexpr int64_t kKeptElements = 4096;

int64_t count_of(int64_t length, int64_t piece) { return (length + piece - 1) / piece; }

}  // namespace

// One run: the addresses of all buffers, and the number of workers.
struct GroupLaunch::Call {
  Call(const Kernel& the_kernel, std::byte* the_own, int the_threads)
      : kernel(the_kernel), own(the_own), threads(the_threads) {}
  const Kernel& kernel;
  std::byte* own;
  int threads;
  int64_t streams = 1;
  Pointers base;  // Set only for existing buffers.
};

// One thread's part of a run: advances the buffers and calls the kernel.
class GroupLaunch::Worker {
 public:
  Worker(const GroupLaunch& launch, const Call& call, int worker)
      : launch_(launch), call_(call), count_(launch.geometry_.places.size()) {
    std::byte* const own = call.own + worker * launch.share_.worker_bytes;
    for (size_t b = 0; b < count_; ++b) {
      base_[b] = launch.is_kept(b) ? own + launch.geometry_.places[b].offset : call.base[b];
      if (!launch.reaches_.empty())
        extents_[b] = {base_[b] + launch.reaches_[b].low, base_[b] + launch.reaches_[b].high};
    }
    args.movements = launch.geometry_.movements.data();
    args.scalars = launch.group_.scalars.data();
    args.buffers = at_.data();
    args.scratch = own;
    args.streams = call.streams;
    if (!launch.reaches_.empty()) args.extents = extents_.data();
  }

  // Moves to an index of the outer axes, and from there by rows, steps and columns.
  void move_to(int64_t outer, int64_t row, int64_t step, int64_t column) {
    std::copy_n(base_.begin(), count_, at_.begin());
    const AxisList& extents = launch_.geometry_.outer;
    for (size_t axis = extents.size(); axis-- > 0; outer /= extents[axis]) {
      const int64_t index = outer % extents[axis];
      for (size_t b = 0; b < count_; ++b) {
        if (!launch_.stays(b)) at_[b] += index * launch_.geometry_.places[b].strides[axis];
      }
    }
    for (size_t b = 0; b < count_; ++b) {
      const Movement& by = launch_.geometry_.movements[b];
      if (!launch_.stays(b)) at_[b] += row * by.row + step * by.step + column * by.column;
    }
  }
  // Moves the cells to those of a chunk.
  void move_cells(int64_t number) {
    for (size_t b = 0; b < count_; ++b) {
      if (launch_.group_.buffers[b].kind == GroupBuffer::Kind::cell)
        at_[b] += number * size_of(launch_.group_.buffers[b].dtype);
    }
  }
  void call() { call_.kernel(args); }

  KernelArgs args;

 private:
  const GroupLaunch& launch_;
  const Call& call_;
  const size_t count_;
  Pointers base_, at_;  // Only the first count_ are set.
  std::array<Extent, kMostBuffers> extents_;
};

int64_t GroupLaunch::heap_bytes() const {
  using tidemark::heap_bytes;
  const auto of_sweep = [](const Sweep& sweep) {
    return heap_bytes(sweep.stores) + heap_bytes(sweep.folds);
  };
  const Nest& nest = group_.nest;  // Empty once there is a kernel.
  return heap_bytes(nest.buffers) + heap_bytes(nest.exprs) + heap_bytes(nest.sweeps, of_sweep) +
         heap_bytes(nest.finish) + heap_bytes(group_.buffers) + heap_bytes(group_.scalars) +
         heap_bytes(group_.monoids) + heap_bytes(group_.cell_dtypes) +
         heap_bytes(geometry_.places) + heap_bytes(geometry_.movements) + heap_bytes(reaches_);
}

GroupLaunch::GroupLaunch(GroupNest group, const LaunchAxes& axes, std::vector<BufferPlace> places,
                         const Cutting& cutting)
    : group_(std::move(group)),
      reaches_(reaches_of(group_, axes, places)),
      geometry_(group_, axes, std::move(places)),
      chunks_(cutting.chunks),
      weight_(weight_of(group_.nest)),
      shared_(cutting.shared) {
  TIDEMARK_CHECK(geometry_.places.size() <= kMostBuffers, "a kernel with ", geometry_.places.size(),
                 " buffers");
  set_cell_reaches();
  set_streaming();
  set_shares();
}

void GroupLaunch::make_kernel(KernelBatch& batch) {
  const bool is_whole = geometry_.folds && geometry_.lanes && chunks_.length == 0;
  const int64_t rows = geometry_.outers * geometry_.rows;
  cached_ = shared_kernel(group_.nest,
                          is_whole ? known_columns(group_.nest, geometry_.columns, rows) : 0);
  batch.add(cached_, kernel_);
  group_.nest = Nest();
}

// Whether the buffer is written once per element and not read again. Buffers between two sweeps are
// read again.
bool GroupLaunch::is_stored_once(size_t buffer) const {
  if (!geometry_.folds) return true;
  if (!geometry_.lanes || group_.buffers[buffer].by_row) return false;
  const auto is_it = [&](int32_t other) { return static_cast<size_t>(other) == buffer; };
  for (const Expr& expr : group_.nest.exprs)
    if (expr.op == ExprOp::load && is_it(expr.ref)) return false;
  int64_t stores = 0;
  for (const Sweep& sweep : group_.nest.sweeps)
    for (const Store& store : sweep.stores) stores += is_it(store.buffer) ? 1 : 0;
  return stores == 1;
}

int64_t GroupLaunch::touched_bytes(size_t buffer) const {
  if (stays(buffer)) return 0;
  const BufferPlace& place = geometry_.places[buffer];
  const Movement& by = geometry_.movements[buffer];
  int64_t elements = (by.row != 0 ? geometry_.rows : 1) * (by.step != 0 ? geometry_.steps : 1) *
                     (by.column != 0 ? geometry_.columns : 1);
  for (size_t axis = 0; axis < geometry_.outer.size(); ++axis)
    elements *= place.strides[axis] != 0 ? geometry_.outer[axis] : 1;
  return elements * size_of(group_.buffers[buffer].dtype);
}

void GroupLaunch::set_streaming() {
  int64_t touched = 0;
  for (size_t b = 0; b < geometry_.places.size(); ++b) touched += touched_bytes(b);
  for (size_t b = 0; b < geometry_.places.size(); ++b) {
    BufferRef& ref = group_.nest.buffers[b];
    ref.streaming = group_.buffers[b].kind == GroupBuffer::Kind::result && is_stored_once(b) &&
                    ref.columns == Columns::unit && outgrows_caches(touched, touched_bytes(b));
    streams_ = streams_ || ref.streaming;
  }
}

int64_t GroupLaunch::kept_bytes(size_t buffer, const Share& share) const {
  const int64_t elements =
      geometry_.lanes ? share.kept_rows * geometry_.columns : geometry_.steps * share.width;
  return granted_bytes(elements * size_of(group_.buffers[buffer].dtype));
}

GroupLaunch::Share GroupLaunch::share_of(int threads) const {
  Share share;
  int64_t element = 0;  // The bytes kept per element.
  for (const GroupBuffer& buffer : group_.buffers) {
    if (buffer.kind == GroupBuffer::Kind::kept) element += size_of(buffer.dtype);
  }
  const bool by_columns = geometry_.folds && !geometry_.lanes;
  if (by_columns) {
    share.width =
        column_block(weight_, geometry_.outers, geometry_.steps, geometry_.columns, threads);
    if (element > 0) {
      const int64_t room =
          device::caches().l2_bytes / 2 / (geometry_.steps * element) / kLanes * kLanes;
      share.width = std::min(geometry_.columns, std::clamp<int64_t>(room, kLanes, share.width));
    }
  }
  const Blocks pieces = pieces_of(threads, share.width);
  share.workers = device::workers_of(pieces.count, pieces.grain, threads);
  const int64_t at_once = device::most_at_once(pieces.count, pieces.grain, threads);
  if (element > 0)
    share.kept_rows = std::clamp<int64_t>(kKeptElements / geometry_.columns, 1,
                                          std::min(geometry_.rows, at_once));
  const int64_t steps = chunks_.length > 0 ? chunks_.length : geometry_.steps;
  const int64_t columns = by_columns ? share.width : geometry_.columns;
  share.scratch_bytes = granted_bytes(machine_scratch_bytes(group_.nest, steps, columns));
  share.worker_bytes = share.scratch_bytes;
  for (size_t b = 0; b < group_.buffers.size(); ++b)
    if (is_kept(b)) share.worker_bytes += kept_bytes(b, share);
  return share;
}

void GroupLaunch::set_shares() {
  threads_ = num_threads();
  share_ = share_of(threads_);
  workspace_bytes_ = most_with_fewer(threads_, [&](int threads) {
    return threads == threads_ ? share_.bytes() : share_of(threads).bytes();
  });
  int64_t offset = share_.scratch_bytes;
  for (size_t b = 0; b < geometry_.places.size(); ++b) {
    if (!is_kept(b)) continue;
    const int64_t size = size_of(group_.buffers[b].dtype);
    const int64_t bytes = kept_bytes(b, share_);
    geometry_.places[b].offset = offset;
    geometry_.movements[b] = geometry_.lanes ? Movement{geometry_.columns * size, 0, size}
                                             : Movement{0, share_.width * size, size};
    offset += bytes;
    if (!reaches_.empty()) reaches_[b] = {0, bytes};
  }
}

std::vector<GroupLaunch::Reach> GroupLaunch::reaches_of(const GroupNest& group,
                                                        const LaunchAxes& axes,
                                                        std::span<const BufferPlace> places) {
  std::vector<Reach> reaches;
  if (emitter() != Emitter::checked) return reaches;
  for (size_t b = 0; b < places.size(); ++b) {
    Reach reach{0, size_of(group.buffers[b].dtype)};
    for (size_t axis = 0; axis < places[b].strides.size(); ++axis) {
      const int64_t extent = axes.domain[static_cast<int64_t>(axis)];
      const int64_t far = (extent - 1) * places[b].strides[axis];
      (far < 0 ? reach.low : reach.high) += far;
    }
    reaches.push_back(reach);
  }
  return reaches;
}

void GroupLaunch::set_cell_reaches() {
  const int64_t cells =
      geometry_.outers * geometry_.rows * chunks_.count * (geometry_.lanes ? 1 : geometry_.columns);
  for (size_t b = 0; b < reaches_.size(); ++b) {
    if (geometry_.folds && group_.buffers[b].kind == GroupBuffer::Kind::cell)
      reaches_[b] = {0, cells * size_of(group_.buffers[b].dtype)};
  }
}

Blocks GroupLaunch::pieces_of(int threads, int64_t width) const {
  if (!geometry_.folds)
    return pointwise_blocks({nest(), weight_}, geometry_.outers, geometry_.rows, geometry_.columns,
                            threads, shared_ ? kSharedPieceWork : kPieceWork);
  Blocks pieces;
  const int64_t whole = geometry_.lanes ? geometry_.columns : geometry_.steps;
  const int64_t length = chunks_.length > 0 ? chunks_.length : whole;
  pieces.count = geometry_.outers * geometry_.rows * chunks_.count *
                 (geometry_.lanes ? 1 : count_of(geometry_.columns, width));
  const int64_t work = length * (geometry_.lanes ? 1 : width) * weight_;
  pieces.grain = std::max<int64_t>(1, kPieceWork / std::max<int64_t>(1, work));
  return pieces;
}

void GroupLaunch::run(std::byte* const* operands, std::byte* memory, std::byte* own) const {
  // On another number of threads than planned, the pieces and the workers differ.
  const int threads = num_threads();
  Call call(*kernel_, own, threads == threads_ ? threads : std::min(share_.workers, threads));
  for (size_t b = 0; b < geometry_.places.size(); ++b) {
    if (is_kept(b)) continue;
    const BufferPlace& place = geometry_.places[b];
    call.base[b] = (place.operand < 0 ? memory : operands[place.operand]) + place.offset;
    // In place, non-temporal stores do not pay: the cache line was read anyway.
    for (size_t other = 0; streams_ && other < b; ++other) {
      if (call.base[other] == call.base[b]) call.streams = 0;
    }
  }
  if (!geometry_.folds) return run_pointwise(call);
  geometry_.lanes ? run_lanes(call) : run_columns(call);
}

void GroupLaunch::run_pointwise(const Call& call) const {
  const Blocks blocks = pieces_of(call.threads, share_.width);
  device::parallel_for(
      blocks.count, blocks.grain, call.threads, [&](int64_t begin, int64_t end, int number) {
        Worker worker(*this, call, number);
        worker.args.index_row = geometry_.index_all ? geometry_.columns : 0;
        for (int64_t block = begin; block < end; ++block) {
          const int64_t column = block % blocks.column_blocks * blocks.columns;
          const int64_t row = block / blocks.column_blocks % blocks.row_blocks * blocks.rows;
          const int64_t outer = block / (blocks.column_blocks * blocks.row_blocks);
          worker.move_to(outer, row, 0, column);
          worker.args.rows = std::min(blocks.rows, geometry_.rows - row);
          worker.args.columns = std::min(blocks.columns, geometry_.columns - column);
          worker.args.index_base = geometry_.index_all
                                       ? (outer * geometry_.rows + row) * geometry_.columns + column
                                       : column;
          worker.call();
        }
      });
}

void GroupLaunch::run_lanes(const Call& call) const {
  const int64_t length = chunks_.length > 0 ? chunks_.length : geometry_.columns;
  const Blocks pieces = pieces_of(call.threads, share_.width);
  const int64_t most = chunks_.length > 0     ? 1
                       : share_.kept_rows > 0 ? share_.kept_rows
                                              : geometry_.rows;
  device::parallel_for(pieces.count, pieces.grain, call.threads,
                       [&](int64_t begin, int64_t end, int number) {
                         Worker worker(*this, call, number);
                         while (begin < end) {
                           const int64_t chunk = begin % chunks_.count;
                           const int64_t row = begin / chunks_.count % geometry_.rows;
                           const int64_t first = chunk * length;
                           worker.move_to(begin / chunks_.count / geometry_.rows, row, 0, first);
                           worker.move_cells(begin);
                           worker.args.rows = std::min({most, geometry_.rows - row, end - begin});
                           worker.args.columns = std::min(length, geometry_.columns - first);
                           worker.args.index_base = first;
                           worker.call();
                           begin += worker.args.rows;
                         }
                       });
}

void GroupLaunch::run_columns(const Call& call) const {
  const int64_t length = chunks_.length > 0 ? chunks_.length : geometry_.steps;
  const int64_t blocks = count_of(geometry_.columns, share_.width);
  const Blocks pieces = pieces_of(call.threads, share_.width);
  device::parallel_for(pieces.count, pieces.grain, call.threads,
                       [&](int64_t begin, int64_t end, int number) {
                         Worker worker(*this, call, number);
                         for (int64_t piece = begin; piece < end; ++piece) {
                           const int64_t column = piece % blocks * share_.width;
                           const int64_t chunk = piece / blocks % chunks_.count;
                           const int64_t first = chunk * length;
                           worker.move_to(piece / blocks / chunks_.count, 0, first, column);
                           worker.move_cells(piece / blocks * geometry_.columns + column);
                           worker.args.steps = std::min(length, geometry_.steps - first);
                           worker.args.columns = std::min(share_.width, geometry_.columns - column);
                           worker.args.index_base = first;
                           worker.call();
                         }
                       });
}

}  // namespace tidemark::compile

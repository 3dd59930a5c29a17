// One kernel of a group, with all that can be known before it is made: how its buffers move, how it
// is cut for threads and caches, and what memory its workers need.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tidemark/compile/group_nest.h"
#include "tidemark/compile/kernels.h"
#include "tidemark/compile/launch.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// Where a buffer of a nest lies: at an operand of the step, or in its workspace.
struct BufferPlace {
  int32_t operand = -1;  // -1: the workspace.
  int64_t offset = 0;    // In bytes.
  Strides strides;       // In bytes, along the axes of the domain.
};

// The axes of a launch: those that are rows, those that are folded, and columns.
struct LaunchAxes {
  Shape domain;
  int64_t row_axes = 0, fold_axes = 0;
  passes::Schedule::Index index = passes::Schedule::Index::none;
  bool shared = false;  // With steps that are on several threads; launch.h.
};

// A fold cut into chunks: its cells are stored one after another, [rows, chunks, columns].
struct Chunks {
  int64_t length = 0;  // 0: not cut.
  int64_t count = 1;
};

class GroupLaunch {
 public:
  // `places` has one entry per buffer of the nest; those of kept rows are filled in here.
  GroupLaunch(GroupNest group, const LaunchAxes& axes, std::vector<BufferPlace> places,
              Chunks chunks);
  // Gets the kernel, which is there once the batch is compiled. It must not move until then.
  void make_kernel(KernelBatch& batch);

  // For all workers.
  int64_t workspace_bytes() const { return workers_ * worker_bytes_; }
  // What it holds on the heap beside its own block; the kernel is not its own.
  int64_t heap_bytes() const;
  // `memory` is the whole step's workspace, `own` the part for this launch's workers.
  void run(std::byte* const* operands, std::byte* memory, std::byte* own) const;

 private:
  struct Call;
  class Worker;
  void set_reaches(const LaunchAxes& axes);
  void set_axes(const LaunchAxes& axes);
  bool is_stored_once(size_t buffer) const;
  void set_columns();
  void set_kept();
  void set_workers();
  bool is_kept(size_t buffer) const {
    return group_.buffers[buffer].kind == GroupBuffer::Kind::kept;
  }
  // What does not move with rows, steps and columns: rows kept by a worker, cells of chunks.
  bool stays(size_t buffer) const {
    return is_kept(buffer) || (folds_ && group_.buffers[buffer].kind == GroupBuffer::Kind::cell);
  }
  Blocks pieces_of(int threads) const;
  void run_pointwise(const Call& call) const;
  void run_lanes(const Call& call) const;
  void run_columns(const Call& call) const;

  GroupNest group_;
  std::vector<BufferPlace> places_;
  Chunks chunks_;
  int64_t weight_;  // Of an element.
  std::shared_ptr<CachedKernel> cached_;
  const Kernel* kernel_ = nullptr;
  bool folds_ = false, lanes_ = true;
  bool index_all_ = false;
  bool shared_ = false;
  bool streams_ = false;
  AxisList outer_;  // Extents of the axes before rows (pointwise, lanes) or steps (columns).
  int64_t outers_ = 1, rows_ = 1, steps_ = 1, columns_ = 1;
  std::vector<Movement> movements_;
  // The bytes each buffer spans, from its first element; only for the checking interpreter.
  struct Reach {
    int64_t low = 0, high = 0;
  };
  std::vector<Reach> reaches_;
  int64_t width_ = 0;      // Columns of a piece, in the order of columns.
  int64_t kept_rows_ = 0;  // Rows of one call that keeps elements, in the order of lanes.
  int64_t scratch_bytes_ = 0, worker_bytes_ = 0;
  int threads_ = 1, workers_ = 1;  // Planned for, and those of them that take part.
};

}  // namespace tidemark::compile

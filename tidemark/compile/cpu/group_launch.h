// One kernel of a group as the CPU runs it, with all that can be known before the kernel is made:
// how its work is cut for threads and caches, and what memory its workers need.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/geometry.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// A fold cut into chunks: its cells are stored one after another, [rows, chunks, columns].
struct Chunks {
  int64_t length = 0;  // 0: not cut.
  int64_t count = 1;
};

struct Cutting {
  Chunks chunks = {};
  bool shared = false;  // With steps that are on several threads; launch.h.
};

class GroupLaunch {
 public:
  // `places` has one entry per buffer of the nest; those of kept rows are filled in here.
  GroupLaunch(GroupNest group, const LaunchAxes& axes, std::vector<BufferPlace> places,
              const Cutting& cutting);
  // Gets the kernel, which is there once the batch is compiled. It must not move until then.
  void make_kernel(KernelBatch& batch);

  // What its workers need, and what they would need at most on as many threads or fewer.
  int64_t used_bytes() const { return share_.bytes(); }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // What it holds on the heap beside its own block; the kernel is not its own.
  int64_t heap_bytes() const;
  // `memory` is the whole step's workspace, `own` the part for this launch's workers.
  void run(std::byte* const* operands, std::byte* memory, std::byte* own) const;

 private:
  struct Call;
  class Worker;
  // The bytes each buffer spans, from its first element; only for the checking interpreter.
  struct Reach {
    int64_t low = 0, high = 0;
  };
  static std::vector<Reach> reaches_of(const GroupNest& group, const LaunchAxes& axes,
                                       std::span<const BufferPlace> places);
  void set_cell_reaches();
  bool is_stored_once(size_t buffer) const;
  void set_streaming();
  // How work is cut for so many threads, and what a worker needs then.
  struct Share {
    int64_t width = 0;      // Columns of a piece, in the order of columns.
    int64_t kept_rows = 0;  // Rows of one call that keeps elements, in the order of lanes.
    int64_t scratch_bytes = 0, worker_bytes = 0;
    int workers = 1;
    int64_t bytes() const { return workers * worker_bytes; }
  };
  Share share_of(int threads) const;
  int64_t kept_bytes(size_t buffer, const Share& share) const;
  void set_shares();
  bool is_kept(size_t buffer) const {
    return group_.buffers[buffer].kind == GroupBuffer::Kind::kept;
  }
  // What does not move with rows, steps and columns: rows kept by a worker, cells of chunks.
  bool stays(size_t buffer) const {
    return is_kept(buffer) ||
           (geometry_.folds && group_.buffers[buffer].kind == GroupBuffer::Kind::cell);
  }
  Blocks pieces_of(int threads, int64_t width) const;
  void run_pointwise(const Call& call) const;
  void run_lanes(const Call& call) const;
  void run_columns(const Call& call) const;

  GroupNest group_;
  std::vector<Reach> reaches_;
  LaunchGeometry geometry_;
  Chunks chunks_;
  int64_t weight_;  // Of an element.
  std::shared_ptr<CachedKernel> cached_;
  const Kernel* kernel_ = nullptr;
  bool shared_ = false;
  bool streams_ = false;
  int threads_ = 1;  // Planned for.
  Share share_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace tidemark::compile

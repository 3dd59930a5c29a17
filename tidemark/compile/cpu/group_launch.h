// One kernel of a fusion group as the CPU runs it: how its work is cut for threads and caches, and
// the memory its workers need. All of that is known before the kernel is made.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/geometry.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// A fold that is cut into chunks. Its cells are stored as [rows, chunks, columns].
struct Chunks {
  int64_t length = 0;  // 0: not cut.
  int64_t count = 1;
};

struct Cutting {
  Chunks chunks = {};
  bool shared = false;  // With steps that run on several threads; see launch.h.
};

class GroupLaunch {
 public:
  // `places` has one entry per buffer of the nest; those of kept rows are set here.
  GroupLaunch(GroupNest group, const LaunchAxes& axes, std::vector<BufferPlace> places,
              const Cutting& cutting);
  // Requests the kernel, which exists after the batch is compiled. The object must not move until
  // then. From then on it shares the kernel's nest with all launches of that kernel, of any sizes.
  void make_kernel(KernelBatch& batch);

  // The bytes that its workers need, and the most they need on this number of threads or fewer.
  int64_t used_bytes() const { return share_.bytes(); }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // The bytes that it holds on the heap, without itself and without the kernel, which is shared.
  int64_t heap_bytes() const;
  // `memory` is the workspace of the whole step, `own` the part for this launch's workers.
  void run(std::byte* const* operands, std::byte* memory, std::byte* own) const;

 private:
  struct Call;
  class Worker;
  // The bytes that each buffer spans, from its first element, for the interpreter that checks
  // accesses.
  struct Reach {
    int64_t low = 0, high = 0;
  };
  static std::vector<Reach> reaches_of(const GroupNest& group, const LaunchAxes& axes,
                                       std::span<const BufferPlace> places);
  void set_cell_reaches();
  bool is_stored_once(size_t buffer) const;
  int64_t touched_bytes(size_t buffer) const;
  void set_streaming();
  // How work is cut for a number of threads, and what a worker needs then.
  struct Share {
    int64_t width = 0;      // The columns of a piece, for folds along columns.
    int64_t kept_rows = 0;  // The rows of one call that keeps elements, for folds along lanes.
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
  // Whether a buffer stays in place over rows, steps and columns: kept rows of a worker, cells of
  // chunks.
  bool stays(size_t buffer) const {
    return is_kept(buffer) ||
           (geometry_.folds && group_.buffers[buffer].kind == GroupBuffer::Kind::cell);
  }
  Blocks pieces_of(int threads, int64_t width) const;
  void run_pointwise(const Call& call) const;
  void run_lanes(const Call& call) const;
  void run_columns(const Call& call) const;

  const Nest& nest() const { return cached_ != nullptr ? cached_->nest() : group_.nest; }

  GroupNest group_;
  std::vector<Reach> reaches_;
  LaunchGeometry geometry_;
  Chunks chunks_;
  int64_t weight_;  // Of one element.
  std::shared_ptr<CachedKernel> cached_;
  const Kernel* kernel_ = nullptr;
  bool shared_ = false;
  bool streams_ = false;
  int threads_ = 1;  // The number of threads that it is planned for.
  Share share_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace tidemark::compile

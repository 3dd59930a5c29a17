// Records a measured run: when each step ran and on which thread, and which blocks of the arena it
// used.
//
// The plan gives the lifetime of each block. A run uses a block from the first step that reads or
// writes it to the last. That may be less than the planned lifetime (a branch was not taken); if it
// is more, there is a bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tidemark/run/program.h"

namespace tidemark::run {

class Watch {
 public:
  struct Slice {
    int32_t step = 0, thread = 0;
    int64_t begin_ns = 0, end_ns = 0;  // Since the Watch was made.
  };
  struct StepRuns {
    int64_t runs = 0, time_ns = 0;
  };
  static constexpr size_t kMostSlices = 100'000;

  Watch(const Program& program, const std::byte* arena);

  // Any thread may call these: a step uses an address, and a step has run.
  int64_t now_ns() const;
  void handed(int32_t step, const Address& address, const std::byte* place);
  void ran(int32_t step, int thread, int64_t begin_ns);
  // The step that the calling thread runs, and the time that its workers spent on it. Times are on
  // the system's monotonic clock, not relative to the start of the watch.
  void set_current(int32_t step) { current_ = step; }
  void add_share(int worker, int64_t begin_ns, int64_t end_ns);

  const std::vector<StepRuns>& steps() const { return steps_; }
  const std::vector<Slice>& slices() const { return slices_; }
  int64_t slices_left_out() const { return slices_left_out_; }
  // The bytes of the arena in use at each step, as observed.
  std::vector<int64_t> in_use() const;

 private:
  struct UseRange {
    int32_t first = -1, last = -1;
  };
  void use(int32_t step, int32_t buffer);
  int32_t buffer_at(int32_t step, int64_t offset);
  void add(const Slice& slice);

  const Program& program_;
  const std::byte* arena_;
  int64_t began_ns_;
  std::mutex lock_;
  int32_t current_ = 0;
  std::vector<UseRange> used_;  // By buffer.
  // By step: the buffers that its registers pointed into.
  std::vector<std::vector<int32_t>> found_;
  std::vector<StepRuns> steps_;
  std::vector<Slice> slices_;
  int64_t slices_left_out_ = 0;
};

}  // namespace tidemark::run

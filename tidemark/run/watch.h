// What a measured run saw: when each step ran on which thread, and which blocks of the arena were
// handed to it.
//
// The plan says over which steps a block is wanted. The run shows over which it was used: a block
// counts from the first step it was handed to until the last. Where that is less, the plan was too
// cautious (a branch not taken); it can be more only by a bug.
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
    int64_t begin_ns = 0, end_ns = 0;  // Since the watch was made.
  };
  struct StepRuns {
    int64_t runs = 0, time_ns = 0;
  };
  static constexpr size_t kMostSlices = 100'000;

  Watch(const Program& program, const std::byte* arena);

  // Any thread may call these. A step begins, is handed places, and has run.
  int64_t now_ns() const;
  void handed(int32_t step, const Address& address, const std::byte* place);
  void ran(int32_t step, int thread, int64_t begin_ns);
  // The step that the caller's thread works on, and what workers did of it, by a clock that began
  // with the machine.
  void set_current(int32_t step) { current_ = step; }
  void add_share(int worker, int64_t begin_ns, int64_t end_ns);

  const std::vector<StepRuns>& steps() const { return steps_; }
  const std::vector<Slice>& slices() const { return slices_; }
  int64_t slices_left_out() const { return slices_left_out_; }
  // The bytes of the arena in use at each step, as seen.
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
  std::vector<UseRange> used_;               // By buffer.
  std::vector<std::vector<int32_t>> found_;  // By step: buffers that its registers pointed into.
  std::vector<StepRuns> steps_;
  std::vector<Slice> slices_;
  int64_t slices_left_out_ = 0;
};

}  // namespace tidemark::run

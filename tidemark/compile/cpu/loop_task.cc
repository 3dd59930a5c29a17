#include "tidemark/compile/cpu/loop_task.h"

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/cpu/kernels.h"

namespace tidemark::compile {
namespace {

int64_t bytes_of(const ScalarLoop& scalar) {
  const Recurrence& loop = scalar.recurrence;
  return heap_bytes(loop.exprs) + heap_bytes(loop.accesses) + heap_bytes(loop.registers) +
         heap_bytes(loop.before) + heap_bytes(loop.moves) + heap_bytes(loop.after) +
         heap_bytes(scalar.sites);
}

// Compiled when it is made, so that a run cannot run out of memory.
class ScalarLoopTask final : public run::Task {
 public:
  ScalarLoopTask(ScalarLoop loop, int64_t trips, bool counted)
      : loop_(std::move(loop)),
        kernel_(recurrence_kernel(loop_.recurrence)),
        trips_(trips),
        counted_(counted) {}

  void run(std::byte* const* places, std::byte*) const override {
    int64_t most = trips_ < 0 ? std::numeric_limits<int64_t>::max() : trips_;
    if (counted_) std::memcpy(&most, places[0], sizeof(most));
    alignas(64) std::array<int64_t, 8> report = {-1};
    KernelArgs args;
    args.columns = most;
    args.buffers = places + (counted_ ? 1 : 0);
    args.scratch = reinterpret_cast<std::byte*>(report.data());
    (*kernel_)(args);
    if (report[0] >= 0) fail(loop_.sites[static_cast<size_t>(report[0])], report[1]);
  }
  int64_t heap_bytes() const override {
    return static_cast<int64_t>(sizeof(*this)) + bytes_of(loop_);
  }

 private:
  [[noreturn]] static void fail(const ScalarLoop::Site& site, int64_t index) {
    const int64_t size = site.array.shape[0];
    throw UserError(cat(site.op, ": index ", index, " is out of range for axis 0 of ", site.array),
                    site.at, cat("indices go from ", -size, " to ", size - 1));
  }

  ScalarLoop loop_;
  std::unique_ptr<Kernel> kernel_;
  int64_t trips_;
  bool counted_;
};

}  // namespace

TaskPlan loop_task(const ScalarLoop& loop, int64_t trips, bool counted) {
  const int64_t held = static_cast<int64_t>(sizeof(loop)) + bytes_of(loop);
  auto make = [loop, trips, counted](TaskBatch&) {
    return std::make_unique<ScalarLoopTask>(loop, trips, counted);
  };
  return {.heap_bytes = held, .make = std::move(make)};
}

}  // namespace tidemark::compile

// Calls that wait until the memory limit leaves room for them, first come, first served.
//
// The queue orders calls that may wait, and nothing else: tensors of eager code and calls that do
// not wait take free bytes at any time, since the bytes that they release later may be what the
// queue waits for. Only the first call in the queue looks for room, so that a small call behind it
// cannot keep a large one out.
#pragma once

#include <cstdint>

#include "tidemark/base/source.h"

namespace tidemark {

// How long a call may wait for memory: td::wait_for(100ms).
struct WaitFor {
  int64_t nanoseconds = 0;
};

namespace detail {
// A negative time is a UserError.
WaitFor wait_for_seconds(double seconds, Source at);
}  // namespace detail

// Any std::chrono::duration; <chrono> is the caller's to include.
template <class Duration>
  requires requires(Duration time) {
    time.count();
    Duration::period::num;
  }
WaitFor wait_for(Duration time, Source at = Source::here()) {
  return detail::wait_for_seconds(
      static_cast<double>(time.count()) * Duration::period::num / Duration::period::den, at);
}

namespace device {

// The queue at one moment, and the calls that have left it since the process began.
struct WaitingCalls {
  int64_t calls = 0;       // That wait now.
  int64_t bytes = 0;       // That they ask for, all together.
  int64_t longest_ns = 0;  // The time that the first of them has waited.
  int64_t served = 0;      // Calls that found room after a wait.
  int64_t refused = 0;     // Calls whose time was up.
};
WaitingCalls waiting_calls();

// One call's place in the queue, which it joins with its first wait and leaves when destroyed. The
// caller takes its memory while it has the place.
class QueuePlace {
 public:
  QueuePlace(WaitFor most, Source at) : most_(most), at_(at) {}
  ~QueuePlace() { leave(); }
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;

  // Whether calls wait that came earlier.
  static bool is_queue() noexcept;
  // Returns when this call is the first in the queue and the limit leaves room for `bytes`. Another
  // thread may take the bytes before the caller does: then the caller waits again, still the first.
  // Throws OutOfMemory when the time is up, or at once for more bytes than the limit; rethrows what
  // an interrupt check throws. Outside of locks; leaves the fork gate meanwhile.
  void wait(int64_t bytes);
  // The caller has its memory: the next call may look for room.
  void served() noexcept;

 private:
  friend struct WaitQueue;
  void join(int64_t bytes);
  void leave() noexcept;
  bool has_room();
  void sleep();
  [[noreturn]] void give_up();

  WaitFor most_;
  Source at_;
  int64_t bytes_ = 0;
  int64_t since_ns_ = 0;  // When it joined the queue; 0: it has not.
  const void* thread_ = nullptr;
  QueuePlace* next_ = nullptr;
  alignas(4) uint32_t is_first_ = 0;  // Slept on; accessed atomically.
};

}  // namespace device
}  // namespace tidemark

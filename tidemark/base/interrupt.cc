#include "tidemark/base/interrupt.h"

#include <chrono>

namespace tidemark {
namespace {

constinit std::atomic<int64_t> interval{50};

int64_t now_ms() {
  using std::chrono::steady_clock, std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

namespace detail {

constinit std::atomic<void (*)()> interrupt_check{nullptr};

void poll_interrupt_now() {
  // The clock costs as much as a short trip of a loop: it is read at some of the polls only.
  constexpr uint32_t kPollsPerLook = 16;
  static constinit thread_local uint32_t polls = 0;
  static constinit thread_local int64_t last_ms = 0;
  const int64_t wait = interval.load(std::memory_order_relaxed);
  if (wait > 0) {
    if (++polls % kPollsPerLook != 0) return;
    const int64_t now = now_ms();
    if (now - last_ms < wait) return;
    last_ms = now;
  }
  if (void (*const check)() = interrupt_check.load(std::memory_order_acquire)) check();
}

}  // namespace detail

void set_interrupt_check(void (*check)(), int64_t interval_ms) {
  interval.store(interval_ms, std::memory_order_relaxed);
  detail::interrupt_check.store(check, std::memory_order_release);
}

}  // namespace tidemark

#include "tidemark/base/interrupt.h"

#include <ctime>

namespace tidemark {
namespace {

constinit std::atomic<int64_t> interval{50};

// To a few milliseconds, which costs a quarter of an exact time.
int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

namespace detail {

constinit std::atomic<void (*)()> interrupt_check{nullptr};

void poll_interrupt_now() {
  static constinit thread_local int64_t last_ms = 0;
  const int64_t wait = interval.load(std::memory_order_relaxed);
  if (wait > 0) {
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

// Stopping long work from outside: Ctrl-C in an interactive program.
//
// The library polls between the steps of a program, the trips of a loop, the passes of the
// compiler, the layouts of a search and the batches of fit, on the thread that made the call. A
// call that is stopped leaves everything as if it had not been made: from the first step that
// writes a Variable in place on, a program runs to its end.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark {

// `check` throws to stop the work it is called in. It is called at most once in `interval_ms` on
// each thread, or at every poll if that is 0. Null: nothing is checked.
void set_interrupt_check(void (*check)(), int64_t interval_ms = 50);

namespace detail {

extern constinit std::atomic<void (*)()> interrupt_check;
void poll_interrupt_now();

inline void poll_interrupt() {
  if (interrupt_check.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    poll_interrupt_now();
}

}  // namespace detail
}  // namespace tidemark

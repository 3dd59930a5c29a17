// A mutex of one word: two instructions when nobody else wants it, a sleep in the kernel otherwise.
//
// Made of std::atomic only, so that the thread sanitizer follows it and a forked child can reset
// it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark::device {

class Lock {
 public:
  constexpr Lock() = default;
  void lock() {
    int32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) wait();
  }
  bool try_lock() {
    int32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) state_.notify_one();
  }

 private:
  static constexpr int32_t kFree = 0, kTaken = 1, kWanted = 2;
  void wait() {
    // Whoever has slept takes the lock as `wanted`: others may still sleep and must be woken.
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
      state_.wait(kWanted, std::memory_order_relaxed);
    }
  }
  std::atomic<int32_t> state_{kFree};
};

}  // namespace tidemark::device

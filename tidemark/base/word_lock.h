// The lock that all others are built on. It does not know about forks.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark {

// A mutex of one word: two atomic instructions if it is free, a sleep in the kernel otherwise. A
// fork may happen while it is locked, so every such lock is known to the fork handlers
// (device/fork.h).
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
    // A thread that has slept takes the lock in state `wanted`: others may still sleep and must be
    // woken.
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
      state_.wait(kWanted, std::memory_order_relaxed);
    }
  }
  std::atomic<int32_t> state_{kFree};
};

}  // namespace tidemark

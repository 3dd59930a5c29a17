// The lock that all others are made of: it knows nothing of forks.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark {

// A mutex of one word: two instructions when nobody else wants it, a sleep in the kernel otherwise.
// A fork may catch it taken: whoever has one tells the fork handlers (device/fork.h).
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

}  // namespace tidemark

// Locks. All are made of std::atomic only, so that the thread sanitizer follows them, they need no
// destructor, and a forked child finds them as they were.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/fork.h"
#include "tidemark/base/word_lock.h"

namespace tidemark {

// A mutex that a fork waits for: no child finds it taken by a thread that it does not have, nor
// what it guards half changed. Not to be held while waiting for other threads.
class Mutex {
 public:
  constexpr Mutex() = default;
  void lock() {
    ForkGate::enter();
    lock_.lock();
  }
  bool try_lock() {
    ForkGate::enter();
    if (lock_.try_lock()) return true;
    ForkGate::leave();
    return false;
  }
  void unlock() {
    lock_.unlock();
    ForkGate::leave();
  }

 private:
  Lock lock_;
};

// The same for one that its thread may take again while it has it.
class RecursiveMutex {
 public:
  constexpr RecursiveMutex() = default;
  void lock() {
    if (!is_mine()) {
      mutex_.lock();
      owner_.store(ForkGate::this_thread(), std::memory_order_relaxed);
    }
    ++depth_;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  // Only a thread itself writes its own address, so what it reads of its own is true.
  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == ForkGate::this_thread(); }

  Mutex mutex_;
  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  // Of the owner.
};

// A mutex that is held for long, while users' code runs and threads are waited for, so that no fork
// waits for it. In a forked child it is free where a thread held it that is not there; what it
// guards must be whole at every moment.
class LongMutex {
 public:
  void lock() {
    for (;;) {
      lock_.lock();
      const bool free = owner_ == nullptr || is_lost();
      if (free) {
        owner_ = ForkGate::this_thread();
        generation_ = ForkGate::generation();
      }
      const uint32_t seen = changes_.load(std::memory_order_relaxed);
      lock_.unlock();
      if (free) return;
      changes_.wait(seen);
    }
  }
  void unlock() {
    lock_.lock();
    owner_ = nullptr;
    changes_.fetch_add(1, std::memory_order_relaxed);
    lock_.unlock();
    changes_.notify_all();
  }

 private:
  bool is_lost() const {
    return generation_ != ForkGate::generation() && owner_ != ForkGate::this_thread();
  }

  Mutex lock_;  // Of the next three.
  const void* owner_ = nullptr;
  uint64_t generation_ = 0;
  std::atomic<uint32_t> changes_{0};
};

}  // namespace tidemark

// Locks. All are built from std::atomic alone, so that the thread sanitizer understands them, they
// need no destructor, and a forked child finds them as they were.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/fork.h"
#include "tidemark/base/word_lock.h"

namespace tidemark {

// A mutex that a fork waits for, so that a child never finds it locked by a thread that the child
// does not have. It must not be held while waiting for other threads.
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

// The same, for a mutex that its owner may lock again.
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
  // Only the thread itself writes its own address, so a relaxed read of it is reliable.
  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == ForkGate::this_thread(); }

  Mutex mutex_;
  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  // Of the owner.
};

// A mutex that may be held for long, while users' code runs or other threads are waited for, and so
// a fork does not wait for it. If a thread held it that a forked child does not have, it is free in
// the child; the data it guards must therefore be consistent at every moment.
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

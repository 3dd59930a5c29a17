// Every wait is a loop over the condition itself, and each change that can make the condition true
// is followed by a wake-up:
//
// - A call becomes the first: leave(), under the queue's lock, sets is_first_ and wakes it.
// - The limit leaves room: unreserve() and set_limit_bytes() read `counters.wanted` after they have
//   changed a counter; the first call writes `wanted` before it reads the counters. All four
//   accesses are sequentially consistent, so one side sees the other.
#include "tidemark/device/wait_queue.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "tidemark/base/error.h"
#include "tidemark/base/fork.h"
#include "tidemark/base/interrupt.h"
#include "tidemark/base/word_lock.h"
#include "tidemark/device/account.h"
#include "tidemark/device/fork.h"
#include "tidemark/device/out_of_memory.h"

namespace tidemark {

WaitFor detail::wait_for_seconds(double seconds, Source at) {
  if (!(seconds >= 0)) {
    throw UserError(cat("wait_for: a call cannot wait ", seconds, " seconds"), at,
                    "give the longest time that it may wait: td::wait_for(100ms)");
  }
  constexpr double most = 1e9 * 86'400 * 365;  // A year: far from the end of an int64_t.
  return {static_cast<int64_t>(std::min(seconds * 1e9, most))};
}

namespace device {
namespace {

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Sleeps while the word is `seen`, for at most this time; signals end it too.
void sleep_on(uint32_t& word, uint32_t seen, int64_t most_ns) {
  const timespec most{.tv_sec = most_ns / 1'000'000'000, .tv_nsec = most_ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &most, nullptr, 0);
}

void wake_one(uint32_t& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Changes whenever the limit leaves room for the first call, which sleeps on it.
alignas(4) constinit uint32_t room_signal = 0;

}  // namespace

struct WaitQueue {
  Lock lock;
  QueuePlace* first = nullptr;
  std::atomic<int64_t> count{0};
  int64_t served = 0, refused = 0;

  WaitingCalls now() const {
    WaitingCalls now{.served = served, .refused = refused};
    if (first != nullptr) now.longest_ns = now_ns() - first->since_ns_;
    for (const QueuePlace* each = first; each != nullptr; each = each->next_) {
      ++now.calls;
      now.bytes += each->bytes_;
    }
    return now;
  }
  int64_t number_of(const QueuePlace& place) const {
    int64_t number = 1;
    for (const QueuePlace* each = first; each != &place; each = each->next_) ++number;
    return number;
  }
  QueuePlace** last() {
    QueuePlace** end = &first;
    while (*end != nullptr) end = &(*end)->next_;
    return end;
  }
  void remove(QueuePlace& place) {
    QueuePlace** at = &first;
    while (*at != &place) at = &(*at)->next_;
    *at = place.next_;
    count.fetch_sub(1);
    if (at == &first) promote_first();
  }
  // The first call announces its bytes itself, when it is awake.
  void promote_first() {
    counters.wanted.store(0);
    if (first == nullptr) return;
    std::atomic_ref(first->is_first_).store(1);
    wake_one(first->is_first_);
  }
  // A forked child has none of the other threads that were waiting.
  void keep_only(const void* thread) {
    QueuePlace** at = &first;
    while (*at != nullptr) {
      if ((*at)->thread_ == thread) {
        at = &(*at)->next_;
        continue;
      }
      *at = (*at)->next_;
      count.fetch_sub(1);
    }
    promote_first();
  }
};

namespace {

constinit WaitQueue queue;

void before_fork() { queue.lock.lock(); }
void after_fork() { queue.lock.unlock(); }
void in_child() { queue.keep_only(ForkGate::this_thread()); }

}  // namespace

void signal_room() noexcept {
  std::atomic_ref(room_signal).fetch_add(1);
  wake_one(room_signal);
}

WaitingCalls waiting_calls() {
  add_fork_hook(before_fork, after_fork, in_child);
  const std::lock_guard guard(queue.lock);
  return queue.now();
}

bool QueuePlace::is_queue() noexcept { return queue.count.load(std::memory_order_relaxed) > 0; }

void QueuePlace::join(int64_t bytes) {
  add_fork_hook(before_fork, after_fork, in_child);
  const std::lock_guard guard(queue.lock);
  bytes_ = bytes;
  if (since_ns_ != 0) return;
  since_ns_ = now_ns();
  thread_ = ForkGate::this_thread();
  *queue.last() = this;
  queue.count.fetch_add(1);
  is_first_ = queue.first == this ? 1 : 0;
}

void QueuePlace::leave() noexcept {
  if (since_ns_ == 0) return;
  const std::lock_guard guard(queue.lock);
  queue.remove(*this);
  since_ns_ = 0;
}

void QueuePlace::served() noexcept {
  if (since_ns_ == 0) return;
  leave();
  const std::lock_guard guard(queue.lock);
  ++queue.served;
}

// Whether it is the first, and the limit leaves room.
bool QueuePlace::has_room() {
  if (std::atomic_ref(is_first_).load() == 0) return false;
  counters.wanted.store(bytes_);
  return counters.in_use.load() + bytes_ <= counters.limit.load();
}

void QueuePlace::sleep() {
  // A signal may reach another thread than the one that must check for it.
  constexpr int64_t slice_ns = 50'000'000;
  void (*const check)() = tidemark::detail::interrupt_check.load(std::memory_order_acquire);
  const int64_t left = since_ns_ + most_.nanoseconds - now_ns();
  const int64_t most = check != nullptr ? std::min(left, slice_ns) : left;
  const uint32_t seen = std::atomic_ref(room_signal).load();
  if (has_room()) return;  // The signal was read before, so that none is lost from here on.
  if (left <= 0) give_up();
  if (std::atomic_ref(is_first_).load() != 0)
    sleep_on(room_signal, seen, most);
  else
    sleep_on(is_first_, 0, most);
  if (check != nullptr) check();
}

void QueuePlace::give_up() {
  OutOfMemoryRecord::Wait wait{.most_ns = most_.nanoseconds};
  {
    const std::lock_guard guard(queue.lock);
    const WaitingCalls now = queue.now();
    wait.calls = now.calls;
    wait.bytes = now.bytes;
    wait.longest_ns = now.longest_ns;
    wait.place = queue.number_of(*this);
    queue.remove(*this);
    since_ns_ = 0;
    ++queue.refused;
  }
  refuse_after(wait, bytes_, at_);
}

void QueuePlace::wait(int64_t bytes) {
  if (bytes > limit_bytes()) refuse_after({}, bytes, at_);
  join(bytes);
  // A fork does not wait for calls that wait.
  ForkGate::leave();
  struct Enter {
    ~Enter() { ForkGate::enter(); }
  } const enter_again;
  while (!has_room()) sleep();
}

}  // namespace device
}  // namespace tidemark

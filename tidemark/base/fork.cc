#include "tidemark/base/fork.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <new>

#include "tidemark/base/word_lock.h"

namespace tidemark {

constinit thread_local int detail::gate_depth = 0;

namespace {

// Threads are counted in several cache lines, so that they do not all write to one.
struct alignas(64) Stripe {
  std::atomic<int> inside{0};
};
constexpr unsigned kStripes = 64;

enum class State : int { open, wanted, closed };

struct Gate {
  std::atomic<State> state{State::open};
  Stripe stripes[kStripes];
  std::atomic<unsigned> next{0};
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> installed{false};
  std::atomic<const ForkHandlers*> handlers{nullptr};
  Lock forking;                           // One fork at a time.
  const ForkHandlers* running = nullptr;  // Of that fork.
};
constinit Gate gate;

constinit thread_local Stripe* stripe __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local bool counted __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local int forks __attribute__((tls_model("initial-exec"))) = 0;

constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 100'000};
constexpr int kMomentsToEnter = 500;     // 50 ms, and more where the machine is busy.
constexpr int kMomentsToFork = 600'000;  // A minute.

void sleep_a_moment() { nanosleep(&kMoment, nullptr); }

// A thread's count is written before the state is read, and the state by the fork before the
// counts: one of the two sees the other.
void wait_for_fork() noexcept {
  for (int moment = 0;; ++moment) {
    const State now = gate.state.load();
    if (now == State::open || (now == State::wanted && moment >= kMomentsToEnter)) return;
    stripe->inside.fetch_sub(1);
    sleep_a_moment();
    stripe->inside.fetch_add(1);
  }
}

// A thread that is inside on behalf of another is part of that thread's count.
bool others_are_inside() {
  int count = detail::gate_depth > 0 ? -1 : 0;
  for (const Stripe& each : gate.stripes) count += each.inside.load();
  return count > 0;
}

void close_gate() {
  gate.forking.lock();
  for (int moment = 0; moment < kMomentsToFork; ++moment) {
    gate.state.store(State::closed);
    if (!others_are_inside()) return;
    gate.state.store(State::wanted);
    sleep_a_moment();
  }
}

void open_gate() {
  gate.state.store(State::open);
  gate.forking.unlock();
}

// If two threads installed the handlers at once they run twice, both times in the thread that
// forks.
void before_fork() {
  if (forks++ > 0) return;
  close_gate();
  gate.running = gate.handlers.load();
  if (gate.running != nullptr) gate.running->before();
}

void after_fork() {
  if (forks == 0) return;
  if (--forks > 0) return;
  if (gate.running != nullptr) gate.running->after();
  open_gate();
}

void in_child() {
  if (forks == 1) {
    gate.generation.fetch_add(1);
    for (Stripe& each : gate.stripes) each.inside.store(0);
    if (counted) stripe->inside.store(1);
    if (gate.running != nullptr) gate.running->in_child();
  }
  after_fork();
}

bool install() noexcept {
  if (gate.installed.load(std::memory_order_acquire)) return true;
  if (pthread_atfork(before_fork, after_fork, in_child) != 0) return false;
  gate.installed.store(true, std::memory_order_release);
  return true;
}

}  // namespace

uint64_t ForkGate::generation() noexcept { return gate.generation.load(std::memory_order_acquire); }

void ForkGate::enter_first() noexcept {
  (void)install();  // If the system refuses, forks do not wait.
  if (stripe == nullptr) stripe = &gate.stripes[gate.next.fetch_add(1) % kStripes];
  counted = true;
  stripe->inside.fetch_add(1);
  if (gate.state.load() != State::open) [[unlikely]]
    wait_for_fork();
}

void ForkGate::leave_last() noexcept {
  stripe->inside.fetch_sub(1);
  counted = false;
}

void install_fork_handlers(const ForkHandlers& handlers) {
  if (!install()) throw std::bad_alloc();
  gate.handlers.store(&handlers);
}

}  // namespace tidemark

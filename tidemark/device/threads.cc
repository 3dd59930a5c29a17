// How a parallel job runs. The caller opens a gate, signals, and starts on the first segment of the
// work. Workers that are awake enter the gate and take pieces, first of their own segment, then of
// others. When no piece is left, the caller closes the gate and waits for the workers inside. A
// worker that comes late finds the gate closed and goes back to sleep. So no one waits for a worker
// to wake up, except when all workers must take part.
//
// Workers spin for a short while after a job, since ops come in bursts and waking a sleeping core
// takes tens of microseconds; then they sleep until the next signal.
#include "tidemark/device/threads.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>

#include "tidemark/base/environment.h"
#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/device/fork.h"
#include "tidemark/device/limit.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/scope.h"
#include "tidemark/device/work_share.h"

namespace tidemark {
namespace device {
namespace {

constexpr int kMaxThreads = 256;
// Of address space; only pages that are touched count.
constexpr int64_t kStackBytes = int64_t{1} << 20;
constexpr int64_t kSpinNs = 150'000;
// Pieces of a segment: several, so that other threads can help one that is preempted.
constexpr int64_t kPiecesPerThread = 4;
// Workers are pinned on machines with at most this many cores. With more, the scheduler does well.
constexpr int kPinnedCores = 16;

constinit thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local bool all_take_part __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local int planned_threads __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local const SharesScope::Told* shares_told
    __attribute__((tls_model("initial-exec"))) = nullptr;

struct InsideGuard {
  InsideGuard() { inside = true; }
  ~InsideGuard() { inside = false; }
};

// A range of work, counted in grains.
struct alignas(64) Segment {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

using Body = FunctionRef<void(int64_t begin, int64_t end, int worker)>;

struct Job {
  const Body* body = nullptr;
  int64_t count = 0, grain = 1;
  int64_t step = 1;  // The grains of one piece.
  int threads = 1;
  bool all_take_part = false;  // Whether every worker must do its own share.
  const SharesScope::Told* told = nullptr;
  ScopeAccount* scope = nullptr;
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // Written once, by the thread that set `failed`.
};

struct Worker {
  pthread_t thread{};
  std::byte* stack = nullptr;
  int cpu = -1;  // The core it is pinned to, or -1.
};

constexpr int32_t kClosed = 1 << 30;

struct Pool {
  Lock lock;  // Held during a job: one job runs at a time.
  std::atomic<int> wanted{0};
  int started = 0;    // The number of workers; they are numbered from 1.
  int free_cpu = -1;  // A core that no worker is pinned to, usually the caller's.
  Worker workers[kMaxThreads];

  alignas(64) std::atomic<uint32_t> signal{0};  // Changes when workers should look for work.
  std::atomic<int> keep{0};                     // Workers with a higher number end.
  std::atomic<bool> spin{true};
  alignas(64) std::atomic<int> sleepers{0};
  alignas(64) std::atomic<int32_t> gate{kClosed};  // The number of workers inside, plus kClosed.
  Job* job = nullptr;  // On the caller's stack; read only inside the gate.
  Segment segments[kMaxThreads];
};
constinit Pool pool;

// --- Running pieces -------------------------------------------------------------------------

void run_piece(Job& job, int64_t first, int64_t last, int worker) {
  if (job.failed.load(std::memory_order_relaxed)) return;
  try {
    (*job.body)(first* job.grain, std::min(job.count, last * job.grain), worker);
  } catch (...) {
    if (!job.failed.exchange(true, std::memory_order_relaxed)) job.error = std::current_exception();
  }
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void run_segments(Job& job, int worker) {
  const int64_t begin_ns = job.told != nullptr ? now_ns() : 0;
  const FloatEnvironment environment;
  const InsideGuard guard;
  const ForkGate::InsideForAnother inside_gate;
  bool worked = false;  // A worker may enter twice, and find nothing left.
  for (int offset = 0; offset < (job.all_take_part ? 1 : job.threads); ++offset) {
    Segment& segment = pool.segments[(worker + offset) % job.threads];
    for (;;) {
      const int64_t first = segment.next.fetch_add(job.step, std::memory_order_relaxed);
      if (first >= segment.end) break;
      run_piece(job, first, std::min(segment.end, first + job.step), worker);
      worked = true;
    }
  }
  if (job.told != nullptr && worked) (*job.told)(worker, begin_ns, now_ns());
}

// --- A worker -------------------------------------------------------------------------------

bool spin_for_signal(uint32_t seen) {
  const int64_t end = now_ns() + kSpinNs;
  do {
    for (int i = 0; i < 32; ++i) {
      if (pool.signal.load(std::memory_order_relaxed) != seen) return true;
      _mm_pause();
    }
  } while (now_ns() < end);
  return false;
}

uint32_t wait_for_signal(uint32_t seen) {
  if (!pool.spin.load(std::memory_order_relaxed) || !spin_for_signal(seen)) {
    // Counted before the last check, so that either the caller sees the sleeper or the sleeper sees
    // the signal.
    pool.sleepers.fetch_add(1);
    pool.signal.wait(seen);
    pool.sleepers.fetch_sub(1);
  }
  return pool.signal.load(std::memory_order_acquire);
}

bool enter_gate() {
  int32_t now = pool.gate.load(std::memory_order_relaxed);
  while ((now & kClosed) == 0) {
    if (pool.gate.compare_exchange_weak(now, now + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void leave_gate() {
  if (pool.gate.fetch_sub(1, std::memory_order_release) == kClosed + 1) pool.gate.notify_one();
}

void take_part(int worker) {
  Job& job = *pool.job;
  if (worker >= job.threads) return;
  try {
    if (job.scope != current_scope()) set_current_scope(job.scope);
  } catch (...) {
    // There is no memory for this thread's record: the other threads do its work if they may.
    if (!job.all_take_part) return;
  }
  run_segments(job, worker);
  if (job.scope != nullptr) set_current_scope(nullptr);
}

void* worker_main(void* argument) {
  const auto worker = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  // A new thread inherits the floating-point modes of the thread that started it.
  const FloatEnvironment environment;
  uint32_t seen = 0;
  while (worker <= pool.keep.load(std::memory_order_acquire)) {
    if (enter_gate()) {
      take_part(worker);
      leave_gate();
    }
    seen = wait_for_signal(seen);
  }
  return nullptr;
}

// --- Starting and ending workers, under the lock --------------------------------------------

void raise_signal() {
  pool.signal.fetch_add(1);
  if (pool.sleepers.load() > 0) pool.signal.notify_all();
}

void move_to(Worker& worker, int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (pthread_setaffinity_np(worker.thread, sizeof(one), &one) == 0) worker.cpu = cpu;
}

bool is_taken(int cpu, int workers) {
  return std::any_of(pool.workers + 1, pool.workers + workers + 1,
                     [&](const Worker& worker) { return worker.cpu == cpu; });
}

// Pins a worker to the highest free core, so that the first stays free for the caller.
void pin(Worker& worker, int number) {
  worker.cpu = -1;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return;
  if (CPU_COUNT(&mask) > kPinnedCores || number >= CPU_COUNT(&mask) || !cores_are_ours()) return;
  pool.free_cpu = -1;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &mask) || is_taken(cpu, number - 1)) continue;
    if (worker.cpu < 0)
      move_to(worker, cpu);
    else
      pool.free_cpu = cpu;
  }
}

// The scheduler chooses the caller's core. A worker pinned to the same core would wait until the
// caller has finished the whole job, so it moves to the free core.
void make_room_for_caller(int threads) {
  const int here = sched_getcpu();
  for (int number = 1; number < threads; ++number) {
    Worker& worker = pool.workers[number];
    if (worker.cpu != here || here < 0 || pool.free_cpu < 0) continue;
    const int freed = worker.cpu;
    move_to(worker, pool.free_cpu);
    if (worker.cpu != freed) pool.free_cpu = freed;
    return;
  }
}

// The lowest page is not accessible: a stack overflow faults instead of overwriting other memory.
std::byte* map_stack() noexcept {
  std::byte* stack = nullptr;
  try {
    stack = map_pages(kStackBytes + kPageBytes, MappingOwner::stacks);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (stack == nullptr || mprotect(stack, kPageBytes, PROT_NONE) == 0) return stack;
  unmap_pages(stack, kStackBytes + kPageBytes);
  return nullptr;
}

bool start_worker(int number) {
  Worker& worker = pool.workers[number];
  if (worker.stack == nullptr) worker.stack = map_stack();
  if (worker.stack == nullptr) return false;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, worker.stack + kPageBytes, kStackBytes);
  // Signals are for the user's threads; a new thread inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&worker.thread, &attributes, worker_main,
                                    reinterpret_cast<void*>(static_cast<intptr_t>(number)));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (failed == 0) pin(worker, number);
  return failed == 0;
}

// Workers spin only if each has its own core.
void choose_spin(int workers) {
  pool.spin.store(workers < usable_cores(), std::memory_order_relaxed);
}

// If the system refuses more threads, those that exist do the work.
void start_workers(int count) {
  if (pool.started >= count) return;
  install_fork_handlers();
  choose_spin(count);
  // Before they start, because a new worker reads it first.
  pool.keep.store(count, std::memory_order_release);
  while (pool.started < count && start_worker(pool.started + 1)) ++pool.started;
}

void end_workers(int remaining) {
  choose_spin(remaining);
  pool.keep.store(remaining, std::memory_order_release);
  raise_signal();
  for (; pool.started > remaining; --pool.started) {
    Worker& worker = pool.workers[pool.started];
    pthread_join(worker.thread, nullptr);
    unmap_pages(worker.stack, kStackBytes + kPageBytes);
    worker.stack = nullptr;
  }
}

// Ends the workers at the end of the program, or when the library is unloaded.
struct EndOfProgram {
  ~EndOfProgram() {
    if (inside) return;
    const std::lock_guard guard(pool.lock);
    end_workers(0);
  }
} end_of_program;

// --- A job, on the caller -------------------------------------------------------------------

int default_threads() {
  const int asked = environment_number("TIDEMARK_THREADS", 1, kMaxThreads, 0);
  return asked > 0 ? asked : std::clamp(usable_cores(), 1, kMaxThreads);
}

void run_inline(int64_t count, const Body& body) {
  const FloatEnvironment environment;
  body(0, count, 0);
}

// The grains of one piece.
int64_t step_of(int64_t grains, int workers) {
  return std::max<int64_t>(1, grains / (workers * kPiecesPerThread));
}

void set_up(Job& job, const Body& body, int64_t count, int64_t grain, int threads) {
  const int64_t grains = (count + grain - 1) / grain;
  job.body = &body;
  job.count = count;
  job.grain = grain;
  job.threads = workers_of(count, grain, threads);
  job.all_take_part = all_take_part;
  job.told = shares_told;
  job.step = step_of(grains, job.threads);
  job.scope = current_scope();
  job.failed.store(false, std::memory_order_relaxed);
  // The last worker, whose scratch is at the highest address, gets the first segment: none is
  // larger.
  for (int i = 0; i < job.threads; ++i) {
    Segment& segment = pool.segments[job.threads - 1 - i];
    segment.next.store(grains * i / job.threads, std::memory_order_relaxed);
    segment.end = grains * (i + 1) / job.threads;
  }
}

// Waits until every worker has taken the last piece of its share.
void wait_for_all(const Job& job) {
  for (int i = 0; i < job.threads; ++i) {
    const Segment& segment = pool.segments[i];
    while (segment.next.load(std::memory_order_relaxed) < segment.end) sched_yield();
  }
}

void close_gate() {
  int32_t now = pool.gate.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
  for (int spin = 0; now != kClosed; ++spin) {
    if (spin < 4000) {
      _mm_pause();
    } else {
      pool.gate.wait(now, std::memory_order_acquire);
    }
    now = pool.gate.load(std::memory_order_acquire);
  }
}

void run_job(int64_t count, int64_t grain, int threads, const Body& body) {
  // At most as many as are wanted now: set_num_threads() may have been called in between.
  threads = std::min(threads, wanted_threads());
  start_workers(threads - 1);
  Job job;
  set_up(job, body, count, grain, std::min(threads, pool.started + 1));
  if (job.threads == 1) return run_inline(count, body);
  make_room_for_caller(job.threads);
  pool.job = &job;
  pool.gate.store(0, std::memory_order_release);
  raise_signal();
  run_segments(job, 0);
  if (job.all_take_part) wait_for_all(job);
  close_gate();
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace

void parallel_for(int64_t count, int64_t grain, Body body) {
  parallel_for(count, grain, num_threads(), body);
}

void parallel_for(int64_t count, int64_t grain, int threads, Body body) {
  if (count <= 0) return;
  if (inside || threads == 1 || count <= grain) return run_inline(count, body);
  // Before the lock, which a fork takes after it closed the gate.
  const ForkGate::Inside inside_gate;
  // If another thread's job is running, its workers are busy, and waiting would not be faster.
  if (all_take_part)
    pool.lock.lock();
  else if (!pool.lock.try_lock())
    return run_inline(count, body);
  const std::lock_guard guard(pool.lock, std::adopt_lock);
  run_job(count, std::max<int64_t>(1, grain), threads, body);
}

int64_t most_at_once(int64_t count, int64_t grain, int threads) {
  const int workers = workers_of(count, grain, threads);
  return workers == 1 ? count
                      : std::min(count, step_of((count + grain - 1) / grain, workers) * grain);
}

AllTakePart::AllTakePart() { all_take_part = true; }
AllTakePart::~AllTakePart() { all_take_part = false; }

SharesScope::SharesScope(const Told& told) : told_(told), previous_(shares_told) {
  shares_told = &told_;
}
SharesScope::~SharesScope() { shares_told = previous_; }

ThreadsScope::ThreadsScope(int threads) : previous_(planned_threads) { planned_threads = threads; }
ThreadsScope::~ThreadsScope() { planned_threads = previous_; }

// A body may fork; its thread already holds the lock.
void lock_workers() {
  if (!inside) pool.lock.lock();
}
void unlock_workers() {
  if (!inside) pool.lock.unlock();
}

// Their stacks are kept for reuse.
void forget_workers() {
  pool.started = 0;
  pool.sleepers.store(0);
  pool.gate.store(kClosed);
}

}  // namespace device

void set_num_threads(int count) {
  if (count < 1 || count > device::kMaxThreads) {
    throw UserError(cat("set_num_threads: ", count, " threads"), Source::none(),
                    cat("give a number from 1 to ", device::kMaxThreads));
  }
  if (device::inside) {
    throw UserError("set_num_threads: called while an op runs on several threads", Source::none(),
                    "set the number before the op");
  }
  const std::lock_guard guard(device::pool.lock);
  device::pool.wanted.store(count, std::memory_order_relaxed);
  if (count - 1 < device::pool.started) device::end_workers(count - 1);
}

int num_threads() {
  return device::planned_threads > 0 ? device::planned_threads : device::wanted_threads();
}

int device::wanted_threads() {
  int count = device::pool.wanted.load(std::memory_order_relaxed);
  if (count != 0) return count;
  const int usual = device::default_threads();
  device::pool.wanted.compare_exchange_strong(count, usual, std::memory_order_relaxed);
  return device::pool.wanted.load(std::memory_order_relaxed);
}

}  // namespace tidemark

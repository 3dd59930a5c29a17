// One pool of worker threads, and the floating-point environment kernels run in.
//
// Work is split by position, never by who is free first in a way that could change a result:
// kernels give the same bits for any number of threads because each piece is computed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <xmmintrin.h>

namespace tidemark {

// How many threads work on one op, the caller included. Default: the cores this process may use
// (affinity mask and cgroup quota), or TIDEMARK_THREADS.
void set_num_threads(int count);
int num_threads();

namespace device {

// IEEE, round to nearest, no flush to zero, all exceptions masked; the caller's modes come back.
class FloatEnvironment {
 public:
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if (saved_ != kIeee) _mm_setcsr(kIeee);
  }
  // Restored with its sticky flags as they were: kernels leave no trace in the caller's modes.
  ~FloatEnvironment() { _mm_setcsr(saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr unsigned kIeee = 0x1F80;
  unsigned saved_;
};

// While it exists, num_threads() is this on its thread: what a program was planned for.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int previous_;
};

// How many workers a parallel_for of `count` by `grain` has on so many threads: those that need
// scratch.
inline int workers_of(int64_t count, int64_t grain, int threads) {
  const int64_t grains = (count + grain - 1) / grain;
  return grains <= threads ? (grains < 1 ? 1 : static_cast<int>(grains)) : threads;
}

// While it exists, work of its thread is done by all workers that may take part, each its share,
// also where a slow one is waited for: the schedule that touches all of the scratch.
class AllTakePart {
 public:
  AllTakePart();
  ~AllTakePart();
  AllTakePart(const AllTakePart&) = delete;
  AllTakePart& operator=(const AllTakePart&) = delete;
};

// What set_num_threads() said last, whatever the scope.
int wanted_threads();

// A reference to a callable, without owning it and without the heap.
template <class Signature>
class FunctionRef;
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, A... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(A... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

// While it exists, work of its thread tells `told` when each worker took part in it, by the
// monotonic clock; on the worker's thread. `told` outlives the scope.
class SharesScope {
 public:
  using Told = FunctionRef<void(int worker, int64_t begin_ns, int64_t end_ns)>;
  explicit SharesScope(const Told& told);
  ~SharesScope();
  SharesScope(const SharesScope&) = delete;
  SharesScope& operator=(const SharesScope&) = delete;

 private:
  const Told told_;
  const Told* const previous_;
};

// Calls body(begin, end, worker) over pieces that cover [0, count), each at least `grain` long (but
// for the last) and a multiple of it; worker < num_threads() names who runs it, for scratch. Runs
// in the IEEE environment on every thread. Nested calls, and counts of one piece, run on the
// caller. The first exception a piece throws is thrown again on the caller, after all have ended.
void parallel_for(int64_t count, int64_t grain,
                  FunctionRef<void(int64_t begin, int64_t end, int worker)> body);
// The same with worker < threads: for a caller that made scratch for as many, since num_threads()
// may change between its reading and the call.
void parallel_for(int64_t count, int64_t grain, int threads,
                  FunctionRef<void(int64_t begin, int64_t end, int worker)> body);

}  // namespace device
}  // namespace tidemark

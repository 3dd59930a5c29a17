// The pool of worker threads, and the floating-point environment that kernels run in.
//
// Work is cut by position, and each piece is computed independently, so the bits are the same for
// any number of threads and whichever thread runs a piece.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <xmmintrin.h>

namespace tidemark {

// The number of threads that work on one op, including the caller. Default: the cores this process
// may use (affinity mask and cgroup quota), or TIDEMARK_THREADS.
void set_num_threads(int count);
int num_threads();

namespace device {

// While it exists: IEEE, round to nearest, no flush to zero, all exceptions masked.
class FloatEnvironment {
 public:
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if (saved_ != kIeee) _mm_setcsr(kIeee);
  }
  // Restores the caller's modes and sticky flags.
  ~FloatEnvironment() { _mm_setcsr(saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr unsigned kIeee = 0x1F80;
  unsigned saved_;
};

// While it exists, num_threads() returns this number on its thread: the number that a program was
// planned for.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int previous_;
};

// The number of workers of a parallel_for with this count and grain, given so many threads: each of
// them needs scratch.
inline int workers_of(int64_t count, int64_t grain, int threads) {
  const int64_t grains = (count + grain - 1) / grain;
  return grains <= threads ? (grains < 1 ? 1 : static_cast<int>(grains)) : threads;
}

// While it exists, parallel work of this thread is done by all workers, each its own share, even if
// a slow worker must be waited for. So a measured run touches all of the scratch.
class AllTakePart {
 public:
  AllTakePart();
  ~AllTakePart();
  AllTakePart(const AllTakePart&) = delete;
  AllTakePart& operator=(const AllTakePart&) = delete;
};

// The last argument of set_num_threads(), regardless of any ThreadsScope.
int wanted_threads();

// A reference to a callable; it does not own it and needs no heap.
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

// While it exists, parallel work of this thread calls `told`, on the worker's thread, with the time
// that each worker spent on it (monotonic clock). `told` must outlive the scope.
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

// Calls body(begin, end, worker) for pieces that cover [0, count). Each piece is a multiple of
// `grain` long, except for the last. worker < num_threads() is the number of the thread that runs
// the piece, which selects its scratch. All threads run in the IEEE environment. Nested calls, and
// counts of one piece, run on the caller. The first exception of a piece is rethrown on the caller,
// after all pieces have ended.
void parallel_for(int64_t count, int64_t grain,
                  FunctionRef<void(int64_t begin, int64_t end, int worker)> body);
// The same with worker < threads, for a caller that has allocated scratch for that many:
// num_threads() may change between that and the call.
void parallel_for(int64_t count, int64_t grain, int threads,
                  FunctionRef<void(int64_t begin, int64_t end, int worker)> body);

}  // namespace device
}  // namespace tidemark

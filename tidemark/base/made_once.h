// A value that is made at first use. If two threads come at once, both make it and one copy is
// discarded. A function-local static would make the second thread wait for the first, and a child
// forked meanwhile would wait for a thread that it does not have.
#pragma once

#include <atomic>
#include <memory>

namespace tidemark {

// Constant-initialised and never destroyed: detached threads may use the value until the process
// ends.
template <class T>
class MadeOnce {
 public:
  // `make` returns a T, or a value that a T can be constructed from; any caller's result will do.
  template <class Make>
  T& get(Make make) {
    T* made = value_.load(std::memory_order_acquire);
    if (made != nullptr) return *made;
    std::unique_ptr<T> fresh(new T(make()));
    if (value_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
    return *made;
  }
  T& get() {
    return get([] { return T(); });
  }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace tidemark

// A value made at first use, by whoever comes first. Where two come at once both make it and one is
// thrown away: a static of a function would instead make the second wait for the first, and a child
// forked meanwhile for a thread that it does not have.
#pragma once

#include <atomic>
#include <memory>

namespace tidemark {

// Constant-initialised and never destroyed: threads that nobody joined may use the value to the
// end.
template <class T>
class MadeOnce {
 public:
  // `make` gives a T, or what a T is made of; the result of any caller will do.
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

// Counts the steps of a search and decides when to stop. The clock is read only if a time limit was
// given, so that without one the result is the same everywhere.
#pragma once

#include <chrono>
#include <cstdint>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

class SearchLimit {
 public:
  explicit SearchLimit(const Limits& limits)
      : limits_(limits), timed_(limits.seconds < 1e9), start_(std::chrono::steady_clock::now()) {}

  // Takes `nodes` steps; false once it is time to stop, and from then on.
  bool spend(int64_t nodes = 1) {
    nodes_ += nodes;
    if (nodes_ < next_check_ && !over_) [[likely]]
      return true;
    return check();
  }
  bool over() const { return over_; }
  int64_t nodes() const { return nodes_; }
  int64_t nodes_left() const { return over_ ? 0 : limits_.nodes - nodes_; }
  const Limits& limits() const { return limits_; }

  // Reports a tidemark that was reached to the progress callback.
  void note(int64_t tidemark_bytes) {
    if (best_ < 0 || tidemark_bytes < best_) best_ = tidemark_bytes;
  }

 private:
  bool check() {
    if (nodes_ >= limits_.nodes || limits_.stop.stop_requested()) over_ = true;
    if (timed_) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
      if (elapsed.count() >= limits_.seconds) over_ = true;
    }
    if (limits_.progress && best_ >= 0) limits_.progress(best_);
    next_check_ = nodes_ + 256 < limits_.nodes ? nodes_ + 256 : limits_.nodes;
    return !over_;
  }

  const Limits& limits_;
  bool timed_;
  std::chrono::steady_clock::time_point start_;
  int64_t nodes_ = 0;
  int64_t next_check_ = 0;
  int64_t best_ = -1;
  bool over_ = false;
};

}  // namespace tidemark::plan

// A number that is read once a step, and the test whether it grows. Internal to report/.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tidemark/report/growth_kind.h"

namespace tidemark::report {

// Windows are the second halves of intervals that double. If two windows touched, the minimum of
// the second would about equal the maximum of the first even for a number that always rises; the
// gap between them lets it rise.
//
//   steps     4    7-8     13-16         25-32                  49-64
//   windows   #  --##  ----####  --------########  ----------------################
class Series {
 public:
  // A series that begins at a later step was 0 before.
  explicit Series(int64_t first_step = 1) : window_(window_of(first_step)) {}

  // Steps may be skipped, but not powers of 2.
  void add(int64_t step, int64_t value);

  Growth growth(int64_t steps, int64_t slack = 0) const;
  // Over the last four windows.
  double per_step(int64_t steps) const;
  int64_t now() const { return now_; }

 private:
  struct Window {
    int64_t least = 0, most = 0, last = 0;
  };
  static constexpr int kWindows = 4;

  static int log2_of(int64_t n) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(n))) - 1;
  }
  // The window that a step belongs to: window k ends at step 2^(k + 1); 0 in a gap.
  static int window_of(int64_t step) {
    if (step < 4) return 0;
    const int window = log2_of(step - 1);
    return 2 * step > int64_t{3} << window ? window : 0;
  }
  static int windows_complete(int64_t steps) { return steps < 4 ? 0 : log2_of(steps) - 1; }

  Window complete_[kWindows];  // The last ones, oldest first.
  Window running_;
  int window_;              // The current window.
  int64_t most_since_ = 0;  // Since the last complete window.
  int64_t now_ = 0;
};

}  // namespace tidemark::report

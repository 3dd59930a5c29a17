#include "tidemark/report/series.h"

namespace tidemark::report {

void Series::add(int64_t step, int64_t value) {
  now_ = value;
  most_since_ = std::max(most_since_, value);
  const int window = window_of(step);
  if (window == 0) return;
  if (window != window_) running_ = {value, value, value};
  window_ = window;
  running_ = {std::min(running_.least, value), std::max(running_.most, value), value};
  if (step != int64_t{2} << window) return;
  std::shift_left(complete_, complete_ + kWindows, 1);
  complete_[kWindows - 1] = running_;
  most_since_ = 0;
}

Growth Series::growth(int64_t steps, int64_t slack) const {
  const int windows = windows_complete(steps);
  if (windows < kWindows) return Growth::cannot_tell;
  int exceeding = 0;
  for (int i = kWindows - 1; i > 0; --i, ++exceeding)
    if (complete_[i].least <= complete_[i - 1].most + slack) break;
  // Growth has stopped if nothing was added for as long as the last gap.
  const int64_t since = steps - (int64_t{2} << windows), gap = int64_t{1} << (windows - 1);
  const bool stopped = since >= gap && most_since_ <= complete_[kWindows - 1].most + slack;
  if (stopped) return Growth::flat;
  // More than in the last window: perhaps the beginning of growth.
  if (exceeding == 0 && now_ <= complete_[kWindows - 1].most + slack) return Growth::flat;
  return exceeding == kWindows - 1 ? Growth::growing : Growth::cannot_tell;
}

double Series::per_step(int64_t steps) const {
  const int windows = windows_complete(steps);
  if (windows < kWindows) return 0;
  const int64_t from = int64_t{2} << (windows - (kWindows - 1));
  return static_cast<double>(now_ - complete_[0].last) / static_cast<double>(steps - from);
}

}  // namespace tidemark::report

// Timing on a machine whose cores come and go: candidates take turns in short samples, and ratios
// are between their best samples and between their tenth percentiles.
#pragma once

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tidemark::bench {

inline double now_s(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Candidate {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};  // One per sample, of one call.

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double tenth() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 10];
  }
};

// Takes samples for about `budget_s`, at least three rounds. With several threads each turn begins
// by waiting until those of the candidate before have stopped spinning, and then by calls enough
// for its own to have woken up.
inline void interleave(std::vector<Candidate>& candidates, double budget_s, bool many_threads) {
  const clockid_t clock = many_threads ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  const double start = now_s();
  for (int round = 0; round < 3 || now_s() - start < budget_s; ++round) {
    for (Candidate& candidate : candidates) {
      if (many_threads) usleep(15'000);
      const double warm = now_s() + (many_threads ? 8e-3 : 0);
      do candidate.run();
      while (now_s() < warm);
      const double once = now_s(clock);
      candidate.run();
      const double estimate = now_s(clock) - once;
      const int calls = std::clamp(static_cast<int>(5e-4 / estimate), 1, 2000);
      const int samples = std::clamp(static_cast<int>(5e-3 / (calls * estimate)), 1, 8);
      for (int sample = 0; sample < samples; ++sample) {
        const double begin = now_s(clock);
        for (int call = 0; call < calls; ++call) candidate.run();
        candidate.seconds.push_back((now_s(clock) - begin) / calls);
      }
    }
  }
}

}  // namespace tidemark::bench

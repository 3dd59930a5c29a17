// CPU time, which other work on the machine does not lengthen.
#pragma once

#include <ctime>

namespace tidemark::bench {

// Of CLOCK_THREAD_CPUTIME_ID or CLOCK_PROCESS_CPUTIME_ID.
inline double cpu_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Do>
double cpu_ms_of(clockid_t clock, Do run) {
  const double before = cpu_ms(clock);
  run();
  return cpu_ms(clock) - before;
}

}  // namespace tidemark::bench

// The memory and the cores that this process may use, as the system reports them.
#pragma once

#include <cstdint>
#include <limits>

namespace tidemark::device {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The limits of the control groups (version 1 and 2) of this process: bytes of memory, or
// kUnlimited, and CPU time in cores, or infinity. `root` is put in front of /proc and /sys, for
// tests.
int64_t cgroup_memory_bytes(const char* root = "");
double cgroup_cores(const char* root = "");

// 90 % of the least of: memory.max of the cgroup and of every cgroup that encloses it, RLIMIT_AS,
// and the memory available now.
int64_t default_limit_bytes();

// The cores in the affinity mask, or fewer if a cgroup quota allows less CPU time; at least 1.
int usable_cores();

// Whether neither an affinity mask nor a quota restricts this process. Only then are threads
// pinned: otherwise a chosen core may be shared with other processes.
bool cores_are_ours();

}  // namespace tidemark::device

// How much of the machine this process may use: memory and cores, by what the system says.
#pragma once

#include <cstdint>
#include <limits>

namespace tidemark::device {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// What the control groups (version 1 and 2) around this process allow: bytes of memory, or
// kUnlimited, and cores' worth of time, or infinity. `root` stands before /proc and /sys.
int64_t cgroup_memory_bytes(const char* root = "");
double cgroup_cores(const char* root = "");

// 90 % of the least of the cgroup's memory.max (and of every cgroup around it), RLIMIT_AS and the
// memory available now.
int64_t default_limit_bytes();

// Cores in the affinity mask, or fewer when a cgroup quota allows less time than that; at least 1.
int usable_cores();

// True when nobody narrowed the affinity mask or the quota, so that threads may be pinned without
// standing on a core somebody chose for us to share.
bool cores_are_ours();

}  // namespace tidemark::device

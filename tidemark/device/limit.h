// How much of the machine this process may use: memory and cores, by what the system says.
#pragma once

#include <cstdint>

namespace tidemark::device {

// 90 % of the least of the cgroup's memory.max (and of every cgroup around it), RLIMIT_AS and the
// memory available now.
int64_t default_limit_bytes();

// Cores in the affinity mask, or fewer when a cgroup quota allows less time than that; at least 1.
int usable_cores();

// True when nobody narrowed the affinity mask or the quota, so that threads may be pinned without
// standing on a core somebody chose for us to share.
bool cores_are_ours();

}  // namespace tidemark::device

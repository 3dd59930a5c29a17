// How work is cut among workers, for those who give each its scratch.
#pragma once

#include <cstdint>

namespace tidemark::device {

// How many of `count` one of the workers of a parallel_for has at once, at most.
int64_t most_at_once(int64_t count, int64_t grain, int threads);

}  // namespace tidemark::device

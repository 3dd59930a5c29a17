// How parallel_for divides work, for callers that allocate scratch for each worker.
#pragma once

#include <cstdint>

namespace tidemark::device {

// The most of `count` that one worker of a parallel_for handles at once.
int64_t most_at_once(int64_t count, int64_t grain, int threads);

}  // namespace tidemark::device

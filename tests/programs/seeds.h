// How many random programs or functions a test tries, and from which seed on.
#pragma once

#include <cstdint>

namespace tidemark::testing {

struct Seeds {
  uint64_t begin = 1, end = 1;
  int64_t count() const { return static_cast<int64_t>(end - begin); }
};

// `usual` seeds from 1 on; `full` with TIDEMARK_TEST_COUNTS=full, 30 with small. By hand,
// TIDEMARK_FUZZ is the number and TIDEMARK_FUZZ_SEED the first.
struct SeedCounts {
  int64_t usual = 0, full = 0;
};
Seeds seeds_to_try(const SeedCounts& counts);

}  // namespace tidemark::testing

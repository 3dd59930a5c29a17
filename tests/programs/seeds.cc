#include "tests/programs/seeds.h"

#include <cstdlib>

#include "tests/sweep/values.h"

namespace tidemark::testing {

Seeds seeds_to_try(const SeedCounts& counts) {
  const char* const wanted = std::getenv("TIDEMARK_FUZZ");
  const char* const first = std::getenv("TIDEMARK_FUZZ_SEED");
  const int64_t count = wanted != nullptr       ? std::atoll(wanted)
                        : sweep::full_counts()  ? counts.full
                        : sweep::small_counts() ? 30
                                                : counts.usual;
  const uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  return {begin, begin + static_cast<uint64_t>(count)};
}

}  // namespace tidemark::testing

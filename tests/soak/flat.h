// What it means that nothing grows, for tests that do the same many times.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "tests/soak/footprint.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark::testing {

inline constexpr int64_t kResidentGrowth = 64 << 10;

inline bool full_counts() {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  return counts != nullptr && std::string_view(counts) == "full";
}

inline void repeat(int64_t rounds, const std::function<void()>& round) {
  for (int64_t i = 0; i < rounds; ++i) round();
}

// `round` does everything once.
inline void expect_flat(int64_t rounds, const std::function<void()>& round) {
  // Else an eager op is compiled when it has done enough work, which may be long after its first.
  const MachineCode machine;
  repeat(2, round);
  repeat(rounds, round);
  resident_bytes();  // Touches what it needs.
  const Footprint once = footprint();
  const int64_t pages = resident_bytes();
  repeat(rounds, round);
  const int64_t grown = resident_bytes() - pages;
  EXPECT_EQ(footprint(), once);
  EXPECT_LE(grown, kResidentGrowth);
}

inline Tensor drawn(Shape shape, uint64_t key = 1) {
  return random::normal(std::move(shape), {.key = random::Key(key)});
}

}  // namespace tidemark::testing

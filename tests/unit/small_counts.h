// Whether a test tries few cases, because it runs again on narrower instruction sets.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tidemark {

inline bool small_counts() {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  return counts != nullptr && std::string_view(counts) == "small";
}

}  // namespace tidemark

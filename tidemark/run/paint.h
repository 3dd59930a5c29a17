// Fills an arena with a pattern, so that a test can tell which bytes a run wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tidemark/base/text.h"

namespace tidemark::run {

// Every word has another value, so that a copy of one painted word over another shows too.
constexpr uint64_t paint_at(int64_t word) {
  return (static_cast<uint64_t>(word) + 1) * 0x9e3779b97f4a7c15ULL;
}

inline void paint(std::byte* arena, int64_t bytes) {
  for (int64_t word = 0; word < bytes / 8; ++word) {
    const uint64_t value = paint_at(word);
    std::memcpy(arena + word * 8, &value, 8);
  }
}

// The bytes up to the last one that was written, rounded up to a block.
inline int64_t touched_bytes(const std::byte* arena, int64_t bytes) {
  for (int64_t word = bytes / 8; word-- > 0;) {
    uint64_t value = 0;
    std::memcpy(&value, arena + word * 8, 8);
    if (value != paint_at(word)) return granted_bytes((word + 1) * 8);
  }
  return 0;
}

}  // namespace tidemark::run

// Counters of one source line. Made once per line and kept: there are only so many lines.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/source.h"

namespace tidemark::device {

enum LineSum { kLineBytes, kLineCount, kLineViewed, kLinePinned, kLineSums };

struct LineAccount {
  Source at;      // The file's name is a copy: the user's library may be unloaded.
  uint32_t slot;  // Where thread records keep their share of it.
  // What no thread record holds: shares of threads that ended or whose slot was wanted for
  // another line.
  std::atomic<int64_t> sums[kLineSums] = {};
  LineAccount* next = nullptr;   // In its bucket.
  LineAccount* older = nullptr;  // In the list of all.
  uint32_t number = 0;           // From 0 up, in the order they were met.
};

}  // namespace tidemark::device

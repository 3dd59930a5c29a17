// Counters of one source line. They are never freed: a program has a bounded number of lines.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/source.h"

namespace tidemark::device {

enum LineSum { kLineBytes, kLineCount, kLineViewed, kLinePinned, kLineSums };

struct LineAccount {
  Source at;      // The file's name is a copy, since the user's library may be unloaded.
  uint32_t slot;  // The slot of thread records that counts this line.
  // Counts that are in no thread record: those of threads that ended, and those whose slot was
  // given to another line.
  std::atomic<int64_t> sums[kLineSums] = {};
  LineAccount* next = nullptr;   // In the same hash bucket.
  LineAccount* older = nullptr;  // In the list of all lines.
  uint32_t number = 0;           // Counts up from 0, in the order of first use.
};

}  // namespace tidemark::device

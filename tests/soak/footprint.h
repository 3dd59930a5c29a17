// All that a process holds, in numbers that are equal where nothing grows.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace tidemark::testing {

struct Footprint {
  int64_t current = 0, cached = 0;  // The accounts of tensors.
  int64_t by_class[9] = {};
  int64_t heap_bytes = 0, heap_blocks = 0;
  int64_t code = 0;
  int64_t mappings = 0, threads = 0, files = 0;
  bool operator==(const Footprint&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Footprint& footprint);

Footprint footprint();

// Pages in memory, which may differ by what the kernel and the C library keep.
int64_t resident_bytes();

}  // namespace tidemark::testing

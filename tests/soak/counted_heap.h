// The C library's allocator, counted: linked into a program, it takes the place of malloc and its
// kin, and with them of operator new, in every library of the process.
#pragma once

#include <cstdint>

namespace tidemark::testing {

// Bytes that are allocated now, as they were asked for.
int64_t live_heap_bytes();
// Blocks that are allocated now.
int64_t live_heap_blocks();

}  // namespace tidemark::testing

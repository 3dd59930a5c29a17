// The C library's allocator, counted, and failing on request: linked into a program, it takes the
// place of malloc and its kin, and with them of operator new, in every library of the process.
#pragma once

#include <cstdint>

namespace tidemark::testing {

// Bytes that are allocated now, as they were asked for.
int64_t live_heap_bytes();
// Blocks that are allocated now.
int64_t live_heap_blocks();
// Allocations asked for since the process began, by all threads, those that failed included.
int64_t heap_allocations();

// The allocation with this number, counted from 1 on, over all threads, fails; 0: none does. Those
// after it are granted again, or fail as well.
void fail_heap_allocation(int64_t number, bool and_all_after = false);
// Ends that. True where the failure asked for has not happened.
bool heap_failure_is_pending();

}  // namespace tidemark::testing

// The bytes that traces and programs hold on the heap. Internal to the library.
#pragma once

#include <cstdint>

#include "tidemark/function/compiled_function.h"

namespace tidemark::detail {

// As requested from the allocator: every list with its capacity, every object with its block.
// Captured tensors, Variables and kernels (which programs share) are not included.
int64_t held_bytes(const TracedGraph& traced);
int64_t held_bytes(const CompiledFunction& compiled);
int64_t held_bytes(const compile::Placements& placements);

}  // namespace tidemark::detail

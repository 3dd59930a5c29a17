// What traces and programs hold on the heap. Internal to the library.
#pragma once

#include <cstdint>

#include "tidemark/function/compiled_function.h"

namespace tidemark::detail {

// As asked of the allocator: every list by its capacity, every object by its block. The bytes of
// captured tensors and of Variables are not a program's, nor are kernels, which programs share.
int64_t held_bytes(const TracedGraph& traced);
int64_t held_bytes(const CompiledFunction& compiled);
int64_t held_bytes(const compile::Placements& placements);

}  // namespace tidemark::detail

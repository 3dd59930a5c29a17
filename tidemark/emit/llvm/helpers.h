// Functions that compiled code calls, by absolute address, instead of inlining them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidemark/loops/nest.h"

namespace tidemark::jit {

// x[i] = fmod(x[i], y[i]).
void fmod_f32(void* x, const void* y, int64_t count);
void fmod_f64(void* x, const void* y, int64_t count);

// Copies `count` elements of `size` bytes (1, 2, 4 or 8) that lie `stride` bytes apart to or from a
// dense array: the partial vectors of instruction sets without masked access.
void copy_in(std::byte* dense, const std::byte* strided, int64_t stride, int64_t count,
             int64_t size);
void copy_out(std::byte* strided, const std::byte* dense, int64_t stride, int64_t count,
              int64_t size);

// `pairwise.h` for `width` folds side by side: levels[level][i], values[i]. Takes the results of
// block number `block` in `values`; after the last of `blocks` they are the results of all. Bool
// folds as u8.
using Pairwise = void(void* levels, int64_t block, int64_t blocks, void* values, int64_t width);
Pairwise* pairwise(Monoid monoid, DType dtype);

// Functions code generation may call by name for an instruction set that lacks an instruction
// (floorf, fmaf, memcpy, ...). Null for any other name.
void* library_function(const char* name);

}  // namespace tidemark::jit

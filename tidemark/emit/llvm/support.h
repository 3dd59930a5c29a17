// Decisions about a nest that need no LLVM.
#pragma once

#include "tidemark/device/cpu/features.h"
#include "tidemark/loops/nest.h"

namespace tidemark::jit {

// jit.h has the list of what is not compiled.
bool can_compile(const Nest& nest);

// An estimate of the vector instructions for one vector of a sweep.
int64_t weight(const Nest& nest, const Sweep& sweep);

// Lanes of a vector: as many of the commonest element size as a register holds. A power of two that
// divides 64.
int64_t choose_width(const Nest& nest, device::Isa isa);

// How many vectors of columns are folded side by side in the order `columns`: a power of two.
int64_t choose_column_vectors(const Nest& nest, device::Isa isa);

// How many columns the order `columns` folds at a time, their cells kept in the first cache.
int64_t choose_column_block(const Nest& nest);

// The scratch bytes of a call of the compiled nest.
int64_t scratch_bytes(const Nest& nest, int64_t steps, int64_t columns);

}  // namespace tidemark::jit

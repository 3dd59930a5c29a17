// A long fold with few results, cut so that every thread has part of it.
//
// Chunks of 2^k blocks are subtrees of the pairwise sum (`loops/pairwise.h`), so each is folded on
// its own, and the results are combined as the whole would have been.
#pragma once

#include <cstdint>

#include "tidemark/loops/nest.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// How much of `length` a chunk has, where it pays; else 0.
int64_t chunk_length(Nest::Order order, int64_t length, int64_t rows, int64_t columns, int threads);

// partials is [rows, chunks, columns], result [rows, columns]: chunks are combined pairwise by
// position, each into its left neighbour.
void combine_chunks(Monoid monoid, const ArrayRef& partials, const ArrayRef& result);

}  // namespace tidemark::compile

// Cuts a long reduction with few results into chunks, so that all threads take part.
//
// Chunks of 2^k blocks are subtrees of the pairwise sum (`loops/pairwise.h`), so folding each chunk
// separately and combining the results gives the same bits.
#pragma once

#include <cstdint>

#include "tidemark/loops/nest.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// The length of a chunk of `length` elements, or 0 if cutting does not pay.
int64_t chunk_length(Nest::Order order, int64_t length, int64_t rows, int64_t columns, int threads);

// partials is [rows, chunks, columns], result is [rows, columns]. Chunks are combined pairwise by
// position, each into its left neighbour.
void combine_chunks(Monoid monoid, const ArrayRef& partials, const ArrayRef& result);

}  // namespace tidemark::compile

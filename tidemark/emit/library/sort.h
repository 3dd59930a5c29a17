// Sorting of rows: the kernel of sort, argsort and top_k.
//
// The order is total and the same for every number of threads: NaNs are the largest and equal to
// each other, -0 equals 0, and of two equal elements the one with the smaller position comes first,
// both ascending and descending.
#pragma once

#include <cstdint>

#include "tidemark/types/array_ref.h"

namespace tidemark::library {

struct Sorting {
  ArrayRef x;  // Of any strides.
  int64_t axis = 0;
  bool descending = false;
  int64_t count = 0;  // The number of elements of each sorted row to write.
  // [outer, count, inner], dense; either may be null.
  std::byte* values = nullptr;
  int64_t* indices = nullptr;
};

int64_t sort_scratch_bytes(const Sorting& work, int threads);
void sort(const Sorting& work, int threads, std::byte* scratch);

}  // namespace tidemark::library

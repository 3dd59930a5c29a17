// Linear algebra on batches of matrices: the kernels of td::linalg.
//
// Every matrix of a batch is a problem of its own. A batch is split over threads by matrix; the
// products inside a single matrix are. Both leave the bits alone, since those of a product do not
// depend on threads (emit/contract).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tidemark/types/array_ref.h"

namespace tidemark::factor {

// Operands have any strides, results are dense. All are f32 or f64, of one dtype.
enum class Problem : uint8_t {
  cholesky,          // a -> l
  solve_triangular,  // t, b -> x
  lu,                // a -> l and u in one matrix, the order of its rows (i64)
  solve,             // a, b -> x
  qr,                // a -> q, r; either may be unused
  eigh,              // a -> values, vectors
  svd,               // a -> u, values, v^T
  pinv,              // a -> its pseudoinverse
  expm,              // a -> its exponential
};

struct Work {
  Problem problem = Problem::cholesky;
  std::span<const ArrayRef> operands;
  std::span<const ArrayRef> results;  // A result without data is unused.
  bool lower = true;                  // solve_triangular: which triangle is read.
  bool transposed = false;            // solve_triangular, solve: with the transpose of it.
  bool unit = false;                  // solve_triangular: the diagonal counts as ones.
  double cutoff = 0;                  // pinv: smaller values, relative to the largest, count as 0.
};

// The most scratch that `run` uses with this many threads, whichever results are used. Does not
// read the operands.
int64_t scratch_bytes(const Work& work, int threads);
void run(const Work& work, int threads, std::byte* scratch);

}  // namespace tidemark::factor
